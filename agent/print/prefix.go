package print

import "strings"

// prefixColours distinguish containers (SGR codes of ECMA-48).
var prefixColours = []string{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

// Prefixes returns the prefix of the lines of each of these containers: its name, all of one
// width, and a bar.
func Prefixes(names []string, isColoured bool) []string {
	widest := 0
	for _, name := range names {
		widest = max(widest, Width(name))
	}
	all := make([]string, len(names))
	for k, name := range names {
		text := name + strings.Repeat(" ", widest-Width(name)) + " |"
		if isColoured {
			text = "\x1b[" + prefixColours[k%len(prefixColours)] + "m" + text + "\x1b[0m"
		}
		all[k] = text + " "
	}
	return all
}
