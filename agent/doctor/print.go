package doctor

import (
	"fmt"
	"io"
	"strings"

	"monopod/agent/print"
)

// Print prints a line for each finding, and its remedy below; or all as output, which
// is json or yaml.
func Print(w io.Writer, output string, found []Finding) error {
	if output != "" {
		return print.As(w, output, found)
	}
	var out strings.Builder
	counts := map[Level]int{}
	for _, f := range found {
		counts[f.Level]++
		fmt.Fprintf(&out, "%-7s  %-13s  %s\n", f.Level, f.Check, print.OneLine(f.Message))
		if f.Remedy != "" {
			fmt.Fprintf(&out, "%24s-> %s\n", "", print.OneLine(f.Remedy))
		}
	}
	fmt.Fprintf(&out, "errors: %d, warnings: %d\n", counts[Error], counts[Warning])
	_, err := io.WriteString(w, out.String())
	return err
}
