package diff

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"monopod/agent/outlook"
	"monopod/agent/print"
	"monopod/agent/update"
)

// Print prints a report for a person, or as json or yaml.
func Print(w io.Writer, r *outlook.Report, output string) error {
	if output != "" {
		return print.As(w, output, r)
	}
	var b strings.Builder
	for k := range r.Pods {
		printPod(&b, &r.Pods[k])
	}
	fmt.Fprintln(&b, cmp.Or(strings.Join(counts(r), ", "), "no pods"))
	_, err := io.WriteString(w, b.String())
	return err
}

func printPod(b *strings.Builder, p *outlook.Pod) {
	line := p.Name
	if p.File != "" {
		line += " (" + p.File + ")"
	}
	fmt.Fprintf(b, "%-9s   %s\n", p.Action, print.OneLine(line))
	add := func(what, text string) {
		if text != "" {
			fmt.Fprintln(b, "    "+what+print.OneLine(text))
		}
	}
	add("because: ", p.Reason)
	add("in place: ", inPlace(p))
	add("waits: ", p.Waits)
	add("on trial: ", p.Trial)
	add("", p.RolledBack)
	for _, line := range p.Objects {
		add("", line)
	}
	if p.Difference == nil {
		return
	}
	for _, f := range p.Difference.Fields {
		add("", f.String())
		add("    ", f.Note)
	}
	if len(p.Difference.Fields) == 0 {
		add("", "means the same, and is written otherwise")
	}
}

// inPlace returns what happens to a pod that stays; "": it does not change, or does not stay.
func inPlace(p *outlook.Pod) string {
	if p.Difference == nil || p.Action == outlook.Replaced {
		return ""
	}
	var all []string
	restart, resize := p.Difference.Named(update.Restart), p.Difference.Named(update.Resize)
	if len(restart) > 0 {
		all = append(all, called(restart)+" restart"+one(restart, "s", ""))
	}
	if len(resize) > 0 {
		all = append(all, called(resize)+one(resize, " is", " are")+" resized")
	}
	if len(restart) == 0 {
		all = append(all, "nothing restarts")
	}
	return strings.Join(all, ", ")
}

func called(containers []string) string {
	return "container" + one(containers, "", "s") + " " + strings.Join(containers, ", ")
}

func one(all []string, single, several string) string {
	if len(all) == 1 {
		return single
	}
	return several
}

// counts returns how many pods have each action, the most frequent ones first.
func counts(r *outlook.Report) []string {
	n := map[outlook.Action]int{}
	for _, p := range r.Pods {
		n[p.Action]++
	}
	all := slices.SortedFunc(maps.Keys(n), func(a, b outlook.Action) int { return cmp.Or(n[b]-n[a], cmp.Compare(a, b)) })
	var out []string
	for _, a := range all {
		out = append(out, fmt.Sprintf("%d %s", n[a], a))
	}
	return out
}
