package admission

import (
	"slices"

	"monopod/agent/panics"
	"monopod/manifests"
)

// Swaps returns the pods that wait for each other's allocations while their previous
// versions run, such as two that exchange their ports or uids, and that have all else
// that they need: each of them fits once
// all of them have moved, none before. The only way there is to stop all their
// previous versions first. Those that the gate does not let change now stay. It returns none
// unless something has changed since the last call.
func (s *Table) Swaps(mayChange func(manifests.Key) bool) []manifests.Key {
	if !s.moved {
		return nil
	}
	s.moved = false
	var moving []manifests.Key // the last to arrive is the first to be left out
	for _, r := range slices.Backward(s.movable(mayChange)) {
		key := r.Pod.Key()
		s.totals.replace(key, &s.entries[key].counted, r.claims)
		moving = append(moving, key)
	}
	for again := true; again; {
		again = false
		for _, key := range slices.Clone(moving) {
			if !s.fitsAfter(key, moving) {
				s.totals.replace(key, s.rejected[key].claims, &s.entries[key].counted)
				moving = slices.DeleteFunc(moving, func(k manifests.Key) bool { return k == key })
				again = true
			}
		}
	}
	for _, key := range moving {
		s.totals.replace(key, s.rejected[key].claims, &s.entries[key].counted)
	}
	slices.Reverse(moving)
	return moving
}

// movable returns the waiting pods whose previous versions are admitted, in order of
// arrival. Those that the gate keeps are asked about again: it opens without a change here.
func (s *Table) movable(mayChange func(manifests.Key) bool) []*rejected {
	var all []*rejected
	for key, r := range s.rejected {
		// One that has ended takes only its uid.
		at := s.entries[key]
		switch isWaiting := at != nil && at.pod != nil && r.claims != nil && !r.early && (!at.over || r.Reason == ReasonUIDInUse); {
		case !isWaiting:
		case mayChange(key):
			all = append(all, r)
		default:
			s.moved = true
		}
	}
	slices.SortFunc(all, func(a, b *rejected) int { return a.compare(b.arrival) })
	return all
}

// fitsAfter reports whether a pod that moves can be admitted once all have moved, as
// the totals have it.
func (s *Table) fitsAfter(key manifests.Key, moving []manifests.Key) (fits bool) {
	r := s.rejected[key]
	err := panics.Contain(func() {
		s.checks++
		fits = s.uidMoves(key, moving) && check(r.Pod, r.claims, r.claims, &s.entries[key].spared, &s.totals, &s.facts) == nil
	})
	return err == nil && fits
}

// uidMoves reports whether the uid of a waiting pod is free once all pods that move
// have moved.
func (s *Table) uidMoves(key manifests.Key, moving []manifests.Key) bool {
	uid := s.rejected[key].Pod.UID
	if slices.ContainsFunc(moving, func(k manifests.Key) bool { return k != key && s.rejected[k].Pod.UID == uid }) {
		return false
	}
	other, taken := s.Uids.Other(uid, key)
	return !taken || slices.Contains(moving, other)
}
