package diff

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"monopod/agent/cli/print"
)

// Print prints the report for a person, or as json or yaml.
func (r Report) Print(w io.Writer, output string) error {
	if output != "" {
		return print.As(w, output, r)
	}
	var b strings.Builder
	for _, p := range r.Pods {
		p.print(&b)
	}
	fmt.Fprintln(&b, cmp.Or(strings.Join(r.counts(), ", "), "no pods"))
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Pod) print(b *strings.Builder) {
	line := p.Name
	if p.File != "" {
		line += " (" + p.File + ")"
	}
	fmt.Fprintf(b, "%-9s   %s\n", p.Action, print.OneLine(line))
	if p.Reason != "" {
		fmt.Fprintln(b, "    because: "+print.OneLine(p.Reason))
	}
	if p.Waits != "" {
		fmt.Fprintln(b, "    waits: "+print.OneLine(p.Waits))
	}
	if p.Trial != "" {
		fmt.Fprintln(b, "    on trial: "+print.OneLine(p.Trial))
	}
	for _, line := range p.Objects {
		fmt.Fprintln(b, "    "+print.OneLine(line))
	}
	if p.Difference == nil {
		return
	}
	for _, f := range p.Difference.Fields {
		fmt.Fprintln(b, "    "+print.OneLine(f.String()))
		if f.Note != "" {
			fmt.Fprintln(b, "        "+print.OneLine(f.Note))
		}
	}
	if len(p.Difference.Fields) == 0 {
		fmt.Fprintln(b, "    means the same, and is written otherwise")
	}
}
