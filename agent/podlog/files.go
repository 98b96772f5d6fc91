package podlog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"monopod/agent/disk"
)

// fileName matches a log, <attempt>.log, and its rotated forms.
var fileName = regexp.MustCompile(`^(\d{1,9})\.log(?:\.(\d{8}-\d{6})(\.gz)?)?$`)

// segment is one file of a container's log.
type segment struct {
	attempt int
	stamp   string // of a rotated one; "": the runtime writes to it
	zipped  bool
}

func (s segment) name() string {
	name := strconv.Itoa(s.attempt) + ".log"
	if s.stamp != "" {
		name += "." + s.stamp
	}
	if s.zipped {
		name += ".gz"
	}
	return name
}

// compare orders by age, the oldest first. The stamps of one attempt give the order.
func (s segment) compare(t segment) int {
	if c := cmp.Compare(s.attempt, t.attempt); c != 0 || s.stamp == t.stamp {
		return c
	}
	if s.stamp == "" || t.stamp == "" {
		return -cmp.Compare(s.stamp, t.stamp)
	}
	return cmp.Compare(s.stamp, t.stamp)
}

// depth is how many folders above a log others may write to: the pod's and the
// container's.
const depth = 2

// maxSegments bounds the listed files of one container's log.
const maxSegments = 10_000

// open opens a container's folder. The caller closes it.
func open(dir string) (*disk.Dir, error) {
	d, err := disk.OpenDir(dir, depth)
	if err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	return d, nil
}

// list returns the files in a folder, oldest first. If a file exists with and without compression,
// which is so while one is replaced by the other, it returns the compressed one.
func list(d *disk.Dir) ([]segment, error) {
	var all []segment
	err := d.Each(func(name string) error {
		if s, ok := parseName(name); ok {
			all = append(all, s)
		}
		if len(all) > maxSegments {
			return fmt.Errorf("more than %d logs are in it", maxSegments)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	slices.SortFunc(all, func(a, b segment) int {
		if c := a.compare(b); c != 0 || a.zipped == b.zipped {
			return c
		}
		if a.zipped {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(all, func(a, b segment) bool { return a.compare(b) == 0 }), nil
}

func parseName(name string) (s segment, ok bool) {
	m := fileName.FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	n, err := strconv.Atoi(m[1])
	return segment{attempt: n, stamp: m[2], zipped: m[3] != ""}, err == nil
}

// Attempts returns the attempts of a container whose logs are in its folder, oldest first.
func Attempts(dir string) ([]int, error) {
	d, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := list(d)
	var attempts []int
	for _, s := range all {
		attempts = append(attempts, s.attempt)
	}
	return slices.Compact(attempts), err
}

// choose returns the range of attempts that o selects from the existing ones; none is first >
// last. A range that is open at its end has last = openEnd.
func choose(all []segment, o Options) (first, last int) {
	switch {
	case o.Which == Only:
		return o.Attempt, o.Attempt
	case len(all) == 0:
		return 1, 0
	}
	newest := all[len(all)-1].attempt
	switch o.Which {
	case Previous:
		k := slices.IndexFunc(all, func(s segment) bool { return s.attempt == newest })
		if k == 0 {
			return 1, 0
		}
		return all[k-1].attempt, all[k-1].attempt
	case All:
		first = all[0].attempt
	default:
		first = newest
	}
	if o.Follow {
		return first, openEnd
	}
	return first, newest
}

const openEnd = int(^uint(0) >> 1)
