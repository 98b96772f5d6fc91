package command

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
)

// Lines of the answer that request the shell's own completion.
const (
	completeFiles = ":files"
	completeDirs  = ":dirs"
)

// Complete is the command that the scripts of Completion run at each Tab. The
// library's own completion runs the command that is typed if the line has "--".
func Complete() *cli.Command {
	return &cli.Command{
		Name: "__complete", ArgsUsage: "-- WORD ...", Usage: "answer a shell that completes the last word", Hidden: true,
		Action: func(c *cli.Context) error {
			ask := Asking{
				Pods:     func(socket string) Pods { return AskPods(c.Context, socket) },
				Versions: func(socket, pod, namespace string) []string { return AskVersions(c.Context, socket, pod, namespace) },
			}
			for _, found := range Completions(c.App.Commands, c.Args().Slice(), ask) {
				fmt.Fprintln(c.App.Writer, found)
			}
			return nil
		},
	}
}

// Asking requests names from the agent behind a socket.
type Asking struct {
	Pods     func(socket string) Pods
	Versions func(socket, pod, namespace string) []string // to which a pod can go back
}

// Completions returns the possible last words, some behind a tab with their description; what
// starts with a colon requests files or folders from the shell.
func Completions(table []*cli.Command, words []string, ask Asking) []string {
	words = joinEquals(words)
	last := ""
	if n := len(words); n > 0 {
		words, last = words[:n-1], words[n-1]
	}
	t := typed{line{command: &cli.Command{ArgsUsage: "COMMAND"}, dash: -1}, table, ask}
	if len(words) > 0 {
		i := slices.IndexFunc(table, func(k *cli.Command) bool { return k.Name == words[0] })
		if i < 0 {
			return nil
		}
		t.command, words = table[i], words[1:]
	}
	for len(words) > 0 {
		words, _ = t.take(words) // errors are printed when the line is run
	}
	return t.complete(last)
}

// joinEquals joins "--flag", "=", "value", which are three words for bash.
func joinEquals(words []string) (joined []string) {
	for k, w := range words {
		n := len(joined)
		if k > 0 && (w == "=" || words[k-1] == "=") && strings.HasPrefix(joined[n-1], "--") {
			joined[n-1] += w
			continue
		}
		joined = append(joined, w)
	}
	return joined
}

// typed is an incomplete line, and the source of names.
type typed struct {
	line
	table []*cli.Command
	ask   Asking
}

func (t *typed) complete(last string) []string {
	name, value, is := strings.Cut(last, "=")
	f := flagOf(t.command, name)
	switch {
	case t.dash >= 0:
		return nil // the command's own words
	case t.open != nil:
		return starting("", last, t.values(t.open))
	case is && f != nil:
		return starting(name+"=", value, t.values(f))
	case !strings.HasPrefix(last, "-"):
		return starting("", last, t.words(t.kind(), last))
	}
	var flags []string
	for _, f := range t.command.VisibleFlags() {
		_, about := explain(f)
		flags = append(flags, longName(f)+"\t"+about)
	}
	return starting("", last, append(flags, "--help\tsay more"))
}

// kind returns the usage line's name of the next argument, such as POD, without brackets; "" if
// none may follow.
func (t *typed) kind() string {
	usage, _, _ := strings.Cut(t.command.ArgsUsage, " | ") // the alternatives are flags
	kinds := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(usage))
	at := len(t.args)
	if n := len(kinds); n > 1 && kinds[n-1] == "..." {
		at = min(at, n-2)
	}
	if at >= len(kinds) {
		return ""
	}
	return kinds[at]
}

// values returns the possible values of a flag: its words, or those of the kind that its text
// names.
func (t *typed) values(f cli.Flag) []string {
	if one, is := f.(*ChoiceFlag); is {
		return one.Words
	}
	kind, _ := explain(f)
	if longName(f) == "--container" {
		kind = "CONTAINER"
	}
	return t.words(kind, "")
}

// words returns the possible words of that kind.
func (t *typed) words(kind, last string) []string {
	socket := cmp.Or(t.value("--socket"), os.Getenv(socketVariable), DefaultSocket)
	pods := func() Pods { return t.ask.Pods(socket) }
	namespace := t.value("--namespace")
	switch {
	case kind == "COMMAND":
		var names []string
		for _, k := range slices.DeleteFunc(slices.Clone(t.table), func(k *cli.Command) bool { return k.Hidden }) {
			names = append(names, k.Name+"\t"+k.Usage)
		}
		return names
	case kind == "DIR":
		return []string{completeDirs}
	case kind == "FILE" || kind == "PATH" || strings.HasPrefix(kind, "FILE|"):
		return []string{completeFiles}
	case kind == "NAMESPACE":
		return pods().Namespaces()
	case kind == "POD":
		return pods().Names(namespace, last)
	case kind == "POD:PATH":
		var places []string
		for _, name := range pods().Names(namespace, last) {
			name, about, _ := strings.Cut(name, "\t")
			places = append(places, name+":\t"+about)
		}
		return append(places, completeFiles)
	case kind == "POD|FILE":
		if names := pods().Names(namespace, last); len(starting("", last, names)) > 0 {
			return names
		}
		return []string{completeFiles}
	case kind == "POD/CONTAINER":
		all := pods()
		pod, _ := path.Split(last)
		containers := all.Containers(strings.TrimSuffix(pod, "/"), namespace)
		return append(all.Names(namespace, last), starting(pod, "", containers)...)
	case kind == "CONTAINER" && len(t.args) > 0:
		return pods().Containers(t.args[0], namespace)
	case kind == "HASH" && len(t.args) > 0:
		return t.ask.Versions(socket, t.args[0], namespace)
	case kind == "OUTCOME":
		return client.Outcomes()
	case kind == "--":
		return []string{"--\tthe command goes behind it"}
	case strings.Contains(kind, "|"):
		return strings.Split(kind, "|")
	}
	return nil
}

// starting returns the words that start with the typed text, behind front, and the requests to the
// shell.
func starting(front, typed string, words []string) (out []string) {
	for _, w := range words {
		if w[0] == ':' {
			out = append(out, w)
		} else if strings.HasPrefix(w, typed) {
			out = append(out, front+w)
		}
	}
	return out
}
