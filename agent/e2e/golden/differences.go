package golden

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Score sums up how two runs compare.
type Score struct {
	Facts  int // of both runs, each key once
	Equal  int
	Meant  int // differ, as differences.md says they shall
	NotYet int // differ, and differences.md says that they shall not for ever

	Waiting []string // the differences of NotYet, a line each
	Unknown []string // those that are not in differences.md
}

// Add compares what two runs did with one case. Facts that begin with one of
// left do not count.
func (s *Score) Add(name string, want, got Facts, left []string, meant Meant) {
	for _, key := range keys(want, got, left) {
		w, inWant := want[key]
		g, inGot := got[key]
		if !inWant && want.cyclesWhenStopped(key) {
			continue
		}
		s.Facts++
		if inWant == inGot && reflect.DeepEqual(w, g) {
			s.Equal++
			continue
		}
		line := fmt.Sprintf("%s: %s: the kubelet has %v, we have %v", name, key, w, g)
		listed := meant.find(name, key)
		if listed == nil {
			s.Unknown = append(s.Unknown, line)
			continue
		}
		listed.used++
		if listed.notYet {
			s.NotYet++
			s.Waiting = append(s.Waiting, line)
		} else {
			s.Meant++
		}
	}
}

// cyclesWhenStopped reports whether a fact is the stop of a container that restarts: whether it runs
// when its pod goes is chance.
func (f Facts) cyclesWhenStopped(key string) bool {
	name, isStop := strings.CutPrefix(key, "stop[")
	name, _, _ = strings.Cut(name, "]")
	for _, kind := range []string{"containerStatuses", "initContainerStatuses"} {
		state, _ := f["status."+kind+"["+name+"].state"].(string)
		if isStop && strings.HasPrefix(state, "cycling/") {
			return true
		}
	}
	return false
}

func keys(want, got Facts, left []string) []string {
	all := maps.Clone(want)
	maps.Copy(all, got)
	maps.DeleteFunc(all, func(k string, _ any) bool {
		return slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(k, l) })
	})
	return slices.Sorted(maps.Keys(all))
}

// Percent is the part of the facts that are equal, or differ as they shall.
func (s *Score) Percent() float64 { return 100 * float64(s.Equal+s.Meant) / float64(max(s.Facts, 1)) }

func (s *Score) String() string {
	return fmt.Sprintf("%.2f %% of %d facts: %d equal, %d differ as meant; %d are not yet equal, %d differ for no known reason",
		s.Percent(), s.Facts, s.Equal, s.Meant, s.NotYet, len(s.Unknown))
}

// Meant are the lines of differences.md: CASE-REGEX: KEY-REGEX  # why
type Meant []*rule

type rule struct {
	line      string
	name, key *regexp.Regexp
	notYet    bool // it will go
	used      int  // how many differences it stood for
}

// ReadMeant reads a file as ParseMeant parses it.
func ReadMeant(path string) (Meant, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("list of differences: %w", err)
	}
	return ParseMeant(path, string(b))
}

// ParseMeant reads the lines of a list of differences, which are indented as
// code; the others are prose. Those below "## Not yet" will go. Errors name the list.
func ParseMeant(list, all string) (Meant, error) {
	var out Meant
	notYet := false
	for line := range strings.Lines(all) {
		text, code := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !code {
			notYet = notYet || strings.HasPrefix(text, "## Not yet")
			continue
		}
		text, why, _ := strings.Cut(text, "  # ")
		name, key, ok := strings.Cut(text, ": ")
		if !ok || why == "" {
			return nil, fmt.Errorf("%s: %q is not CASE-REGEX: KEY-REGEX  # why", list, text)
		}
		r := &rule{line: text, notYet: notYet}
		var err error
		if r.name, err = whole(name); err == nil {
			r.key, err = whole(key)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", list, text, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func whole(expr string) (*regexp.Regexp, error) { return regexp.Compile("^(" + expr + ")$") }

// Unused returns the lines that stood for no difference so far.
func (m Meant) Unused() []string {
	var out []string
	for _, r := range m {
		if r.used == 0 {
			out = append(out, r.line)
		}
	}
	return out
}

// Used says of each line how many differences it stood for so far.
func (m Meant) Used() []string {
	var out []string
	for _, r := range m {
		if r.used > 0 {
			out = append(out, fmt.Sprintf("%d differences are known: %s", r.used, r.line))
		}
	}
	return out
}

// find returns the line that a difference is listed in, or nil.
func (m Meant) find(name, key string) *rule {
	for _, r := range m {
		if r.name.MatchString(name) && r.key.MatchString(key) {
			return r
		}
	}
	return nil
}
