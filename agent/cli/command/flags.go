package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Where an agent is unless it was told otherwise.
const (
	DefaultSocket = "/run/monopod.sock"
	DefaultRoot   = "/var/lib/monopod"
)

// OutputFlag is -o; text lists the choices as in "wide, json or yaml", and may go
// on behind a colon.
func OutputFlag(to *string, text string) cli.Flag {
	choices, _, _ := strings.Cut(text, ":")
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: to, Usage: "print as `FORMAT`: " + text,
		Action: func(c *cli.Context, word string) error {
			if slices.Contains(strings.Split(strings.Replace(choices, " or ", ", ", 1), ", "), word) {
				return nil
			}
			return wrongFlags(c.Command, fmt.Errorf(`invalid argument %q for "-o, --output" flag: choose %s`, word, choices))
		}}
}

// SocketFlag is --socket.
func SocketFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "socket", Value: DefaultSocket, Destination: to,
		Usage: "the `PATH` of the agent's socket"}
}

// SelectorFlag is -l.
func SelectorFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Destination: to,
		Usage: "only pods with these `LABELS`, such as app=web,tier!=db"}
}

// RootFlag is --root of a command that asks an agent.
func RootFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "root", Value: DefaultRoot, Destination: to,
		Usage: "the `DIR` of the agent, for when it does not run"}
}

// NamespaceFlag is -n.
func NamespaceFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Destination: to,
		Usage: "the `NAMESPACE` to look in (default: all)"}
}

// ConfigFlag is --config.
func ConfigFlag() cli.Flag {
	return &cli.StringFlag{Name: "config",
		Usage: "the `FILE` of settings; flags win over it, monopod config --defaults documents it"}
}

// flagOf returns the flag that has a name, which is written with its dashes; nil
// if there is none.
func flagOf(k *cli.Command, name string) cli.Flag {
	for _, f := range k.Flags {
		if slices.Contains(dashed(f), name) {
			return f
		}
	}
	return nil
}

// dashed returns the names of a flag as they are typed, the long one last.
func dashed(f cli.Flag) []string {
	names := strings.Split(cli.FlagNamePrefixer(f.Names(), ""), ", ")
	slices.Reverse(names)
	return names
}

func longName(f cli.Flag) string { return "--" + f.Names()[0] }

func takesValue(f cli.Flag) bool { return f.(cli.DocGenerationFlag).TakesValue() }

// explain returns what a flag's text calls its value, "" if it takes none, and
// what the flag means.
func explain(f cli.Flag) (kind, about string) {
	doc := f.(cli.DocGenerationFlag)
	kind, about = flag.UnquoteUsage(&flag.Flag{Usage: doc.GetUsage()})
	if !doc.TakesValue() {
		return "", about
	}
	if value := doc.GetDefaultText(); value != "" && value != "0" && value != "0s" {
		about += " (default " + value + ")"
	}
	return kind, about
}
