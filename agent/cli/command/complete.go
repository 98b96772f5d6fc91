package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"monopod/agent/cli/client"
)

// Lines of the answer to a shell that ask it for names of its own.
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
			ask := func(socket string) Pods { return AskPods(c.Context, socket) }
			for _, found := range Completions(c.App.Commands, c.Args().Slice(), ask) {
				fmt.Fprintln(c.App.Writer, strings.TrimSuffix(found.Text+"\t"+found.About, "\t"))
			}
			return nil
		},
	}
}

// Completions returns the candidates for the last word; a Text that starts with
// a colon asks the shell for files or folders. ask asks the agent behind a socket.
func Completions(table []*cli.Command, words []string, ask func(socket string) Pods) []Candidate {
	words, whole := joinEquals(words)
	last := len(words) - 1
	if last < 1 || last == 1 && words[0] == "help" {
		return starting(strings.Join(words[max(last, 0):], ""), commands(table))
	}
	i := slices.IndexFunc(table, func(k *cli.Command) bool { return k.Name == words[0] })
	if i < 0 {
		return nil
	}
	t := typed{line{command: table[i], dash: -1}, ask}
	for rest := words[1:last]; len(rest) > 0; {
		rest, _ = t.take(rest) // what is wrong is said when the line is run
	}
	return t.complete(words[last], whole)
}

func commands(table []*cli.Command) (out []Candidate) {
	for _, k := range table {
		if !k.Hidden {
			out = append(out, Candidate{k.Name, k.Usage})
		}
	}
	return out
}

// joinEquals puts "--flag", "=", "value" together, which bash holds for three
// words; whole reports that the last word is one for the shell, too.
func joinEquals(words []string) (joined []string, whole bool) {
	whole = true
	for k, w := range words {
		n := len(joined)
		if k > 0 && (w == "=" || words[k-1] == "=") && strings.HasPrefix(joined[n-1], "--") {
			joined[n-1] += w
			whole = k < len(words)-1
			continue
		}
		joined = append(joined, w)
	}
	return joined, whole
}

// typed is a line that is not complete, and whom to ask for names.
type typed struct {
	line
	ask func(socket string) Pods
}

func (t *typed) complete(last string, whole bool) (out []Candidate) {
	name, value, is := strings.Cut(last, "=")
	f := flagOf(t.command, name)
	switch {
	case t.dash >= 0:
		return nil // the command's own words
	case t.open != nil:
		return starting(last, t.values(t.open))
	case is && f != nil && whole:
		return within(name+"=", starting(value, t.values(f)))
	case is && f != nil: // the shell completes the value alone
		return starting(value, t.values(f))
	case !strings.HasPrefix(last, "-"):
		return starting(last, t.argument(last))
	}
	for _, f := range t.command.VisibleFlags() {
		_, about := explain(f)
		out = append(out, Candidate{longName(f), about})
	}
	return starting(last, append(out, Candidate{"--help", "say more"}))
}

// pods asks for those of the agent, and returns the namespace to look in.
func (t *typed) pods() (all Pods, namespace string) {
	return t.ask(t.value("socket")), t.value("namespace")
}

// argument returns what may stand for a word that is no flag, by what the usage
// line calls it.
func (t *typed) argument(last string) (out []Candidate) {
	switch kind := t.kind(); {
	case strings.Contains(kind, "FILE"):
		return []Candidate{{Text: completeFiles}}
	case kind == "POD" || kind == "POD/CONTAINER":
		pods, namespace := t.pods()
		out = pods.Names(namespace, last)
		if k := strings.LastIndexByte(last, '/'); k >= 0 && kind != "POD" {
			out = append(out, within(last[:k+1], pods.Containers(last[:k], namespace))...)
		}
	case kind == "CONTAINER":
		pods, namespace := t.pods()
		return pods.Containers(t.args[0], namespace)
	case kind == "--":
		return []Candidate{{"--", "the command goes behind it"}}
	case strings.Contains(kind, "|"):
		return words(strings.Split(kind, "|"))
	}
	return out
}

// kind returns what the usage line calls the argument that comes next, such as
// POD, without brackets; "" where none may come.
func (t *typed) kind() string {
	usage, _, _ := strings.Cut(t.command.ArgsUsage, " | ") // what else may stand there are flags
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

var (
	// choices finds what a flag's text says can be chosen: "print as FORMAT: wide, json or yaml".
	choices = regexp.MustCompile(": ([a-z]+(?:, [a-z]+)*(?: or [a-z]+))$")
	asides  = regexp.MustCompile(` \([^)]*\)`)
)

// values returns what a flag may be given, by its name and by what its text calls it.
func (t *typed) values(f cli.Flag) []Candidate {
	kind, about := explain(f)
	switch name := longName(f); {
	case name == "--namespace":
		pods, _ := t.pods()
		return pods.Namespaces()
	case name == "--container" && len(t.args) > 0:
		pods, namespace := t.pods()
		return pods.Containers(t.args[0], namespace)
	case name == "--for":
		return words(client.Outcomes())
	case kind == "DIR":
		return []Candidate{{Text: completeDirs}}
	case kind == "FILE" || kind == "PATH":
		return []Candidate{{Text: completeFiles}}
	}
	if m := choices.FindStringSubmatch(asides.ReplaceAllString(about, "")); m != nil {
		return words(strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", "))
	}
	return nil
}

func words(all []string) (out []Candidate) {
	for _, w := range all {
		out = append(out, Candidate{Text: w})
	}
	return out
}

// starting returns the candidates that start with the typed text, and all that ask the shell.
func starting(typed string, all []Candidate) []Candidate {
	return slices.DeleteFunc(all, func(c Candidate) bool { return c.Text[0] != ':' && !strings.HasPrefix(c.Text, typed) })
}

// within puts something in front of each, but of those that ask the shell.
func within(front string, all []Candidate) []Candidate {
	for k := range all {
		if all[k].Text[0] != ':' {
			all[k].Text = front + all[k].Text
		}
	}
	return all
}
