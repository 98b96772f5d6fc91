package admission

import (
	"maps"
	"slices"

	"monopod/manifests"
)

// Swaps returns the pods that wait for each other's places while their former
// versions run, such as two that exchange their ports or uids: each of them fits once
// all of them have moved, none before. Nothing but letting all former versions
// go first gets them there.
func (s *Table) Swaps() []manifests.Key {
	moving := map[manifests.Key]bool{}
	for key := range s.Rejected {
		// One that has ended takes nothing but its uid.
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

// afterSwap returns what all pods but key's take once those that move have moved.
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
