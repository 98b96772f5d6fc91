package admission

import (
	"maps"
	"slices"

	"monopod/manifests"
)

// Swaps returns the pods that wait for each other's allocations while their previous
// versions run, such as two that exchange their ports or uids: each of them fits once
// all of them have moved, none before. The only way there is to stop all their
// previous versions first.
func (s *Table) Swaps() []manifests.Key {
	moving := map[manifests.Key]bool{}
	for key := range s.Rejected {
		// One that has ended takes only its uid.
		if at := s.Entries[key]; at != nil && at.Pod != nil && (!at.over || s.Rejected[key].Reason == ReasonUIDInUse) {
			moving[key] = true
		}
	}
	for again := true; again; {
		again = false
		for key := range moving {
			if !s.uidMoves(key, moving) || Admit(s.Rejected[key].Pod.Pod, s.afterSwap(key, moving), &s.Facts) != nil {
				delete(moving, key)
				again = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(moving), func(a, b manifests.Key) int { return ByArrival(s.Rejected[a].Pod, s.Rejected[b].Pod) })
}

// afterSwap returns the allocations of all pods but key's once those that move have moved.
func (s *Table) afterSwap(key manifests.Key, moving map[manifests.Key]bool) []Allocation {
	var out []Allocation
	for k, at := range s.Entries {
		switch {
		case k == key:
		case moving[k]:
			out = append(out, Allocation{s.Rejected[k].Pod.Pod})
		default:
			if of := at.allocation(); len(of) > 0 {
				out = append(out, of)
			}
		}
	}
	return out
}
