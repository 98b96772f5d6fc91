package agent

import (
	"maps"
	"slices"

	"monopod/manifests"
)

// swaps returns the pods that wait for each other's places while their former
// versions run, such as two that exchange their ports or uids: each of them fits once
// all of them have moved, none before. Nothing but letting all former versions
// go first gets them there.
func (s *seats) swaps() []manifests.Key {
	moving := map[manifests.Key]bool{}
	for key := range s.refused {
		// One that has ended takes nothing but its uid.
		if at := s.taken[key]; at != nil && at.pod != nil && (!at.over || s.refused[key].Reason == reasonUIDInUse) {
			moving[key] = true
		}
	}
	for again := true; again; {
		again = false
		for key := range moving {
			if !s.uidMoves(key, moving) || admit(s.refused[key].pod.Pod, s.moved(key, moving), &s.facts) != nil {
				delete(moving, key)
				again = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(moving), func(a, b manifests.Key) int { return byArrival(s.refused[a].pod, s.refused[b].pod) })
}

// moved returns what all pods but key's take once those that move have moved.
func (s *seats) moved(key manifests.Key, moving map[manifests.Key]bool) []place {
	var out []place
	for k, at := range s.taken {
		switch {
		case k == key:
		case moving[k]:
			out = append(out, place{s.refused[k].pod.Pod})
		default:
			if of := at.place(); len(of) > 0 {
				out = append(out, of)
			}
		}
	}
	return out
}
