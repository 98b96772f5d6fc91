package once

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
)

// note records which containers ended badly, in the order in which it sees them.
func (j *evaluator) note(all []view) {
	for k := range all {
		for _, s := range all[k].containers() {
			if t := lastEnd(&s); t != nil && t.ExitCode != 0 && j.seen[t.ContainerID] == 0 {
				if j.seen == nil {
					j.seen = map[string]int{}
				}
				j.seen[t.ContainerID] = len(j.seen) + 1
			}
		}
	}
}

// compare orders two containers by the time at which the runtime reports that they ended: on a
// busy machine the ends of several are seen together, or in another order. Equal times are ordered
// by when the end was seen, and no container comes last.
func (j *evaluator) compare(a, b *v1.ContainerStatus) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	x, y := lastEnd(a), lastEnd(b)
	ended, other := known(x.FinishedAt.Time), known(y.FinishedAt.Time)
	if !ended.IsZero() && !other.IsZero() && !ended.Equal(other) {
		return ended.Compare(other)
	}
	return cmp.Compare(j.seen[x.ContainerID], j.seen[y.ContainerID])
}
