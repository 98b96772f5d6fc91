package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
)

// outputFlag declares -o; text lists the choices as in "wide, json or yaml", and
// may go on behind a colon.
func outputFlag(f *pflag.FlagSet, to *string, text string) {
	choices, _, _ := strings.Cut(text, ":")
	f.VarP(&choice{to: to, of: choices}, "output", "o", "print as `FORMAT`: "+text)
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	to *string
	of string // "a, b or c"
}

func (c *choice) String() string { return *c.to }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(word string) error {
	if !slices.Contains(strings.Split(strings.Replace(c.of, " or ", ", ", 1), ", "), word) {
		return fmt.Errorf("choose %s", c.of)
	}
	*c.to = word
	return nil
}

func socketFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "socket", defaultSocket, "the `PATH` of the agent's socket")
}

func selectorFlag(f *pflag.FlagSet, to *string) {
	f.StringVarP(to, "selector", "l", "", "only pods with these `LABELS`, such as app=web,tier!=db")
}

func sourceFlags(f *pflag.FlagSet, to *client.Source) {
	socketFlag(f, &to.Socket)
	f.StringVar(&to.Root, "root", defaultRoot, "the `DIR` of the agent, for when it does not run")
}

func namespaceFlag(f *pflag.FlagSet, to *string) {
	f.StringVarP(to, "namespace", "n", "", "the `NAMESPACE` to look in (default: all)")
}

func configFlag(f *pflag.FlagSet) {
	f.String("config", "", "the `FILE` of settings; flags win over it, monopod config --defaults documents it")
}
