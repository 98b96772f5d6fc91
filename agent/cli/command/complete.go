package command

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"monopod/agent/cli/client"
)

// Lines of the answer to a shell that ask it for names of its own.
const (
	completeFiles = ":files"
	completeDirs  = ":dirs"
)

// completion is what a Tab stands for: words of the table, of flags, of the
// agent's pods.
type completion struct {
	table []*Command
	ask   func(socket string) Candidates
}

// Complete is the command that the scripts of Completion run at each Tab.
func Complete(table func() []*Command) *Command {
	return &Command{
		Name: "__complete", Args: "-- WORD ...", Usage: "answer a shell that completes the last word", hidden: true,
		Run: func(ctx context.Context, c *Call) error {
			ask := func(socket string) Candidates { return AskCandidates(ctx, socket) }
			for _, found := range Completions(table(), c.Args, ask) {
				line := found.Text
				if found.About != "" {
					line += "\t" + found.About
				}
				fmt.Fprintln(c.Out, line)
			}
			return nil
		},
	}
}

// Completions returns the candidates for the last word; an answer in Text that
// starts with a colon asks the shell for files or folders. ask asks the agent
// behind a socket for names.
func Completions(table []*Command, words []string, ask func(socket string) Candidates) []Candidate {
	k := &completion{table, ask}
	words, whole := joinEquals(words)
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	if len(words) == 1 {
		return starting(last, k.commands())
	}
	i := slices.IndexFunc(k.table, func(c *Command) bool { return c.Name == words[0] })
	if words[0] == "help" && len(words) == 2 {
		return starting(last, k.commands())
	}
	if i < 0 {
		return nil
	}
	t := typed{k, k.table[i], k.table[i].flagSet(), nil, false, nil}
	t.read(words[1 : len(words)-1])
	name, value, is := strings.Cut(last, "=")
	switch {
	case t.dashed:
		return nil // the command's own words
	case t.open != nil:
		return t.values(t.open, last, "")
	case is && flagOf(t.flags, name) != nil:
		if !whole { // the shell holds "--flag" and "=" for words of their own
			return t.values(flagOf(t.flags, name), value, "")
		}
		return t.values(flagOf(t.flags, name), value, name+"=")
	case strings.HasPrefix(last, "-"):
		return starting(last, flagNames(t.flags))
	}
	return t.argument(last)
}

func (k *completion) commands() []Candidate {
	var out []Candidate
	for _, c := range k.table {
		if !c.hidden {
			out = append(out, Candidate{Text: c.Name, About: c.Usage})
		}
	}
	return append(out, Candidate{Text: "help", About: "say more of a command"})
}

// joinEquals puts "--flag", "=", "value" together, which bash holds for three
// words; whole reports that the last word is one for the shell, too.
func joinEquals(words []string) (joined []string, whole bool) {
	whole = true
	for k, w := range words {
		n := len(joined)
		if k > 0 && n > 0 && (w == "=" || words[k-1] == "=") && strings.HasPrefix(joined[n-1], "--") {
			joined[n-1] += w
			whole = k < len(words)-1
			continue
		}
		joined = append(joined, w)
	}
	return joined, whole
}

func flagNames(f *pflag.FlagSet) []Candidate {
	var out []Candidate
	f.VisitAll(func(f *pflag.Flag) {
		_, about := pflag.UnquoteUsage(f)
		out = append(out, Candidate{Text: "--" + f.Name, About: about})
	})
	return append(out, Candidate{Text: "--help", About: "say more"})
}

// typed is a command line so far.
type typed struct {
	*completion
	command *Command
	flags   *pflag.FlagSet
	args    []string
	dashed  bool        // "--" came
	open    *pflag.Flag // whose value comes next
}

// read takes in the words before the last one.
func (t *typed) read(words []string) {
	for k := 0; k < len(words); k++ {
		w := words[k]
		f := flagOf(t.flags, w)
		switch {
		case t.dashed:
			t.args = append(t.args, w)
		case w == "--":
			t.dashed = true
		case f == nil && !strings.HasPrefix(w, "-"):
			t.args = append(t.args, w)
		case f == nil || f.NoOptDefVal != "" || strings.Contains(w, "="):
			if f != nil && strings.Contains(w, "=") {
				_ = f.Value.Set(w[strings.Index(w, "=")+1:])
			}
		case k+1 < len(words):
			k++
			_ = f.Value.Set(words[k])
		default:
			t.open = f
		}
	}
}

// flagOf returns the flag that a word names; of several letters the last.
func flagOf(f *pflag.FlagSet, word string) *pflag.Flag {
	word, _, _ = strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(word, "--") && len(word) > 2:
		return f.Lookup(word[2:])
	case strings.HasPrefix(word, "-") && len(word) > 1 && word[1] != '-':
		return f.ShorthandLookup(word[len(word)-1:])
	}
	return nil
}

// argument completes a word that is no flag, by what the usage line calls it.
func (t *typed) argument(last string) []Candidate {
	namespace := Text(t.flags, "namespace")
	switch kind := t.kind(); {
	case strings.Contains(kind, "FILE"):
		return []Candidate{{Text: completeFiles}}
	case kind == "POD":
		return starting(last, t.candidates().Pods(namespace, last))
	case kind == "POD/CONTAINER":
		c := t.candidates()
		all := c.Pods(namespace, last)
		if k := strings.LastIndexByte(last, '/'); k >= 0 {
			all = append(all, within(last[:k+1], c.Containers(last[:k], namespace))...)
		}
		return starting(last, all)
	case kind == "CONTAINER" && len(t.args) > 0:
		return starting(last, t.candidates().Containers(t.args[0], namespace))
	case kind == "--":
		return starting(last, []Candidate{{Text: "--", About: "the command goes behind it"}})
	case strings.Contains(kind, "|"):
		var out []Candidate
		for c := range strings.SplitSeq(kind, "|") {
			out = append(out, Candidate{Text: c})
		}
		return starting(last, out)
	}
	return nil
}

// kind returns what the usage line calls the argument that comes next, such as
// POD, without brackets; "" where none may come.
func (t *typed) kind() string {
	line, _, _ := strings.Cut(t.command.Args, " | ") // what else may stand there are flags
	kinds := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(line))
	at := len(t.args)
	if at >= len(kinds) {
		if at = len(kinds) - 1; at < 0 || kinds[at] != "..." {
			return ""
		}
	}
	if kinds[at] == "..." && at > 0 {
		at--
	}
	return kinds[at]
}

func (t *typed) candidates() Candidates { return t.ask(Text(t.flags, "socket")) }

// choices finds what a flag's text says can be chosen: "print as FORMAT: wide, json or yaml".
var choices = regexp.MustCompile(": ([a-z]+(?:, [a-z]+)*(?: or [a-z]+))$")

// values completes a flag's value, by its name and by what its text calls it.
func (t *typed) values(f *pflag.Flag, last, front string) []Candidate {
	kind, _ := pflag.UnquoteUsage(f)
	var out []Candidate
	switch {
	case f.Name == "namespace":
		out = t.candidates().Namespaces()
	case f.Name == "container" && len(t.args) > 0:
		out = t.candidates().Containers(t.args[0], Text(t.flags, "namespace"))
	case f.Name == "for":
		for _, o := range client.Outcomes() {
			out = append(out, Candidate{Text: o})
		}
	case kind == "DIR":
		return []Candidate{{Text: completeDirs}}
	case kind == "FILE" || kind == "PATH":
		return []Candidate{{Text: completeFiles}}
	default:
		if m := choices.FindStringSubmatch(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(f.Usage, "")); m != nil {
			for _, c := range strings.Split(strings.ReplaceAll(m[1], " or ", ", "), ", ") {
				out = append(out, Candidate{Text: c})
			}
		}
	}
	return within(front, starting(last, out))
}

// starting returns the candidates that start with the typed text.
func starting(typed string, all []Candidate) []Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return !strings.HasPrefix(c.Text, typed) })
}

// within puts something in front of each.
func within(front string, all []Candidate) []Candidate {
	for k := range all {
		all[k].Text = front + all[k].Text
	}
	return all
}
