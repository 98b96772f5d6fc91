package cpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of CPU numbers in ascending order. Its methods change neither set.
type Set []int

// NewSet returns the set of these numbers, in any order and however often.
func NewSet(ids ...int) Set {
	all := slices.Clone(ids)
	slices.Sort(all)
	return Set(slices.Compact(all))
}

// Parse reads a list such as "0-3,8". An empty text is the empty set. Its errors are those of a
// kubelet.
func Parse(text string) (Set, error) {
	if text == "" {
		return nil, nil
	}
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		for id := first; id <= last; id++ {
			all = append(all, id)
		}
	}
	return NewSet(all...), nil
}

// mostCPUs bounds the numbers in a list: a mistyped range must not fill the memory.
const mostCPUs = 1 << 16

func parseRange(part string) (first, last int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	first, err = strconv.Atoi(from)
	if err != nil {
		return 0, 0, err
	}
	last = first
	if isRange {
		last, err = strconv.Atoi(to)
		if err != nil {
			return 0, 0, err
		}
	}
	if first > last || last >= mostCPUs {
		return 0, 0, fmt.Errorf("invalid range %q (%d > %d)", part, first, min(last, mostCPUs))
	}
	return first, last, nil
}

// String returns the list of the set: "0-3,8".
func (s Set) String() string {
	var parts []string
	for from := 0; from < len(s); {
		to := from
		for to+1 < len(s) && s[to+1] == s[to]+1 {
			to++
		}
		part := strconv.Itoa(s[from])
		if to > from {
			part += "-" + strconv.Itoa(s[to])
		}
		parts = append(parts, part)
		from = to + 1
	}
	return strings.Join(parts, ",")
}

// Has reports whether the CPU is in the set.
func (s Set) Has(id int) bool {
	_, found := slices.BinarySearch(s, id)
	return found
}

// Minus returns what is in s and not in other.
func (s Set) Minus(other Set) Set {
	return slices.DeleteFunc(slices.Clone(s), other.Has)
}

// And returns what is in both sets.
func (s Set) And(other Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(id int) bool { return !other.Has(id) })
}

// Or returns what is in any of the two sets.
func (s Set) Or(other Set) Set { return NewSet(slices.Concat(s, other)...) }

// Equal reports whether both sets are the same.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }
