package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
)

// Where an agent is unless it was told otherwise.
const (
	DefaultSocket = "/run/monopod.sock"
	DefaultRoot   = "/var/lib/monopod"
)

// OutputFlag declares -o; text lists the choices as in "wide, json or yaml", and
// may go on behind a colon.
func OutputFlag(f *pflag.FlagSet, to *string, text string) {
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

// SocketFlag declares --socket.
func SocketFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "socket", DefaultSocket, "the `PATH` of the agent's socket")
}

// SelectorFlag declares -l.
func SelectorFlag(f *pflag.FlagSet, to *string) {
	f.StringVarP(to, "selector", "l", "", "only pods with these `LABELS`, such as app=web,tier!=db")
}

// SourceFlags declares --socket and --root.
func SourceFlags(f *pflag.FlagSet, to *client.Source) {
	SocketFlag(f, &to.Socket)
	f.StringVar(&to.Root, "root", DefaultRoot, "the `DIR` of the agent, for when it does not run")
}

// NamespaceFlag declares -n.
func NamespaceFlag(f *pflag.FlagSet, to *string) {
	f.StringVarP(to, "namespace", "n", "", "the `NAMESPACE` to look in (default: all)")
}

// ConfigFlag declares --config.
func ConfigFlag(f *pflag.FlagSet) {
	f.String("config", "", "the `FILE` of settings; flags win over it, monopod config --defaults documents it")
}

// Text returns the value of a flag of text, "" where the command has no such flag.
func Text(f *pflag.FlagSet, name string) string {
	value, _ := f.GetString(name)
	return value
}
