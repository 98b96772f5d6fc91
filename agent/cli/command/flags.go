package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/choice"
)

// Default places of an agent.
const (
	DefaultSocket = "/run/monopod.sock"
	DefaultRoot   = "/var/lib/monopod"
)

// ChoiceFlag is a flag whose value is one of a few words. The code that reads the value checks it.
type ChoiceFlag struct {
	*cli.StringFlag
	Words choice.Words
}

// Choice returns a flag whose value is one of these words, which its text then lists.
func Choice(f *cli.StringFlag, words ...string) *ChoiceFlag {
	f.Usage += ": " + choice.Words(words).String()
	return &ChoiceFlag{f, words}
}

// OutputFlag is -o, which takes one of these words.
func OutputFlag(to *string, words ...string) *ChoiceFlag {
	f := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: to, Usage: "print as `FORMAT`"}
	f.Action = func(c *cli.Context, word string) error {
		if choice.Words(words).Has(word) {
			return nil
		}
		return wrongFlags(c.Command, fmt.Errorf("-o: %q: choose %s", word, choice.Words(words)))
	}
	return Choice(f, words...)
}

const socketVariable = "MONOPOD_SOCKET"

// variables replace flags; crictl reads the one of the endpoint, too.
var variables = []struct{ flag, name string }{
	{"socket", socketVariable}, {"root", "MONOPOD_ROOT"}, {"config", "MONOPOD_CONFIG"}, {"runtime-endpoint", "CONTAINER_RUNTIME_ENDPOINT"},
}

// Variables returns those that replace a flag, by its long name.
func Variables(flag string) []string {
	for _, v := range variables {
		if v.flag == flag {
			return []string{v.name}
		}
	}
	return nil
}

// SocketFlag is --socket.
func SocketFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "socket", EnvVars: Variables("socket"), Value: DefaultSocket, Destination: to,
		Usage: "the `PATH` of the agent's socket"}
}

// SelectorFlag is -l.
func SelectorFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Destination: to,
		Usage: "only pods with these `LABELS`, such as app=web,tier!=db"}
}

// RootFlag is --root of a command that queries an agent.
func RootFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "root", EnvVars: Variables("root"), Value: DefaultRoot, Destination: to,
		Usage: "the `DIR` of the agent, for when it does not run"}
}

// NamespaceFlag is -n.
func NamespaceFlag(to *string) cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Destination: to,
		Usage: "the `NAMESPACE` to look in (default: all)"}
}

// AllNamespacesFlag is -A.
func AllNamespacesFlag(to *bool) cli.Flag {
	return &cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Destination: to,
		Usage: "of all namespaces, as without -n, and name them",
		Action: func(c *cli.Context, all bool) error {
			if all && c.String("namespace") != "" {
				return UsageError("-A and -n exclude each other")
			}
			return nil
		}}
}

// EndpointFlag is --runtime-endpoint of a command that may query the runtime itself.
func EndpointFlag(to *string, when string) cli.Flag {
	return &cli.StringFlag{Name: "runtime-endpoint", EnvVars: Variables("runtime-endpoint"), Destination: to,
		Usage: "the CRI runtime's socket, unix://`PATH`" + when,
		Action: func(c *cli.Context, endpoint string) error {
			if !strings.HasPrefix(strings.TrimPrefix(endpoint, "unix://"), "/") {
				return UsageError("%s %q: want unix:///path/to/socket", GivenBy(c, "runtime-endpoint"), endpoint)
			}
			return nil
		}}
}

// GivenBy returns where a flag has its value from: "--root", or the variable that replaces it; ""
// if it has the default.
func GivenBy(c *cli.Context, flag string) string {
	typed, _ := c.App.Metadata["typed"].([]string)
	for _, word := range typed {
		if name, _, _ := strings.Cut(word, "="); name == "--"+flag {
			return name
		}
	}
	if c.IsSet(flag) {
		return Variables(flag)[0]
	}
	return ""
}

// ConfigFlag is --config.
func ConfigFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", EnvVars: Variables("config"),
		Usage: "the `FILE` of settings; flags win over it, monopod config --defaults documents it"}
}

// flagOf returns the flag with a name, which is written with its dashes; nil if there is none.
func flagOf(k *cli.Command, name string) cli.Flag {
	for _, f := range k.Flags {
		if slices.Contains(dashed(f), name) {
			return f
		}
	}
	return nil
}

// dashed returns the names of a flag as typed, the long one last.
func dashed(f cli.Flag) []string {
	names := strings.Split(cli.FlagNamePrefixer(f.Names(), ""), ", ")
	slices.Reverse(names)
	return names
}

func longName(f cli.Flag) string { return "--" + f.Names()[0] }

func takesValue(f cli.Flag) bool { return f.(cli.DocGenerationFlag).TakesValue() }

// explain returns the name of a flag's value in its text, "" if it takes none, and the meaning of
// the flag.
func explain(f cli.Flag) (kind, about string) {
	doc := f.(cli.DocGenerationFlag)
	kind, about = flag.UnquoteUsage(&flag.Flag{Usage: doc.GetUsage()})
	if !doc.TakesValue() {
		return "", about
	}
	if value := doc.GetDefaultText(); value != "" && value != "0" && value != "0s" {
		about += " (default " + value + ")"
	}
	for _, name := range doc.GetEnvVars() {
		about += " [$" + name + "]"
	}
	return kind, about
}
