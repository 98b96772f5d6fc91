package docs

import (
	"regexp"
	"slices"
	"strings"
)

// varying is what two runs of a command do not print alike, with the word that stands for it. The
// order counts: what an earlier rule has taken, a later one does not see.
var varying = []struct {
	name string
	text *regexp.Regexp
	word string
}{
	{"what a command waits for, if it takes a while", regexp.MustCompile(`(?m)^monopod: (waiting until .*|.*; waiting for it)\n`), ""},
	{"whether a former version runs yet", regexp.MustCompile(`the former version (comes back|is back until the manifest\s+changes)`), "the former version is back"},
	{"where a line is broken", regexp.MustCompile(`\n  (\S)`), " $1"},
	{"versions of monopod", regexp.MustCompile(`\bmonopod \S+ \(([0-9a-f]{12} of [^,]+, )?go\S+, \S+\)`), "monopod VERSION"},
	{"versions of containerd", regexp.MustCompile(`\bcontainerd \d\S+`), "containerd VERSION"},
	{"times", regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?( UTC)?`), "TIME"},
	{"days", regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DAY"},
	{"hours", regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?( UTC)?\b`), "HOUR"},
	{"uids and ids", regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{10,64}\b`), "ID"},
	{"hashes of versions", regexp.MustCompile(`\bversion [0-9a-f]{8}\b`), "version HASH"},
	{"times of a report", regexp.MustCompile(`\btime="\d+\.\d+"`), `time="AGE"`},
	{"ages and durations", regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|s|m|h|d))+\b|\b\d+(\.\d+)? (s|min|h|days?)\b`), "AGE"},
	{"restarts of what crashes", regexp.MustCompile(`\b\d+ \(AGE ago\)`), "TIMES (AGE ago)"},
	{"addresses of pods", regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "ADDRESS"},
	{"sizes that are measured", regexp.MustCompile(`\b\d+(\.\d+)?( ?[KMG]i?B?| B)\b`), "SIZE"},
	{"processes", regexp.MustCompile(`\b(process|pid) \d+\b`), "process"},
	{"how often something crashed", regexp.MustCompile(`\b\d+ times?\b`), "TIMES"},
	{"widths of columns", regexp.MustCompile(` {2,}`), "  "},
	{"ends of lines", regexp.MustCompile(`(?m)[ \t\r]+$`), ""},
}

// Plain returns a text with words in place of what varies.
func Plain(text string) string {
	for _, v := range varying {
		text = v.text.ReplaceAllString(text, v.word)
	}
	return sortWaited(strings.Trim(text, "\n"))
}

// waited are lines of monopod wait, which come in the order in which pods get there.
var waited = regexp.MustCompile(`(?m)(^\S+/\S+: (ready|updated|gone)(\n|\z)){2,}`)

func sortWaited(text string) string {
	return waited.ReplaceAllStringFunc(text, func(lines string) string {
		all := strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
		slices.Sort(all)
		return strings.Join(all, "\n") + lines[len(strings.TrimSuffix(lines, "\n")):]
	})
}

// anyLines is a line of a page that stands for any number of lines.
const anyLines = "..."

// Same reports whether a screen shows what a page quotes, except for what varies.
func Same(quoted, shown string) bool {
	return matches(strings.Split(Plain(quoted), "\n"), strings.Split(Plain(shown), "\n"))
}

func matches(quoted, shown []string) bool {
	for k, line := range quoted {
		if line == anyLines {
			rest := quoted[k+1:]
			return slices.ContainsFunc(tails(shown[min(k, len(shown)):]), func(tail []string) bool { return matches(rest, tail) })
		}
		if k >= len(shown) || shown[k] != line {
			return false
		}
	}
	return len(shown) == len(quoted)
}

// tails returns all ends of a list of lines, from the whole of it to none.
func tails(lines []string) (all [][]string) {
	for k := range len(lines) + 1 {
		all = append(all, lines[k:])
	}
	return all
}
