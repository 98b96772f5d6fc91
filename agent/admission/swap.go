package admission

import (
	"slices"

	"monopod/agent/panics"
	"monopod/manifests"
)

// Waiter is a version that waits for room, or for a uid, while its former version runs, and that
// lacks nothing else.
type Waiter struct {
	Pod *manifests.Pod
	Why Rejection
}

// mover is a Waiter whose claims temporarily replace the allocation of its name in the totals, to
// find out which waiters fit.
type mover struct {
	pod    *manifests.Pod
	key    manifests.Key
	claims claims
}

// Swaps returns the pods that wait for each other's allocations, such as two that exchange their
// ports or uids: each of them fits only after all of them have moved. This requires that all their
// previous versions stop first. Swaps changes nothing.
func (s *Table) Swaps(waiting []Waiter) []manifests.Key {
	moving := s.movers(waiting)
	for _, m := range moving {
		s.totals.replace(m.key, &s.entries[m.key].counted, &m.claims)
	}
	for fit := s.fitting(moving); len(fit) < len(moving); fit = s.fitting(moving) {
		moving = fit
	}
	keys := make([]manifests.Key, len(moving))
	for k, m := range moving {
		keys[k] = m.key
		s.totals.replace(m.key, &m.claims, &s.entries[m.key].counted)
	}
	return keys
}

// movers returns the waiters that have an allocation to give, in order of arrival. A version that
// has ended has only its uid: it moves if it waits for a uid, or if another waits for its own.
func (s *Table) movers(waiting []Waiter) (all []*mover) {
	asked := s.askedUIDs(waiting)
	for _, w := range waiting {
		m := &mover{pod: w.Pod, key: w.Pod.Key()}
		at := s.entries[m.key]
		if at == nil || at.pod == nil || at.over && w.Why.Reason != ReasonUIDInUse && !asked[m.key] {
			continue
		}
		if panics.Contain(func() { m.claims = claimsOf(w.Pod.Pod) }) == nil {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *mover) int { return arrivalOf(a.pod).compare(arrivalOf(b.pod)) })
	return all
}

// askedUIDs returns the pods whose uids waiters wait for.
func (s *Table) askedUIDs(waiting []Waiter) map[manifests.Key]bool {
	asked := map[manifests.Key]bool{}
	for _, w := range waiting {
		if w.Why.Reason != ReasonUIDInUse {
			continue
		}
		if other, taken := s.Uids.Other(w.Pod.UID, w.Pod.Key()); taken {
			asked[other] = true
		}
	}
	return asked
}

// fitting returns the waiters that fit into the present totals. The last to arrive is the first to
// be left out: its present claims are added to the totals before the others are checked.
func (s *Table) fitting(moving []*mover) []*mover {
	left := slices.Clone(moving)
	for k, m := range slices.Backward(moving) {
		if !s.fitsAfter(m, left) {
			s.totals.replace(m.key, &m.claims, &s.entries[m.key].counted)
			left = slices.Delete(left, k, k+1)
		}
	}
	return left
}

// fitsAfter reports whether a mover can be admitted once all have moved.
func (s *Table) fitsAfter(m *mover, moving []*mover) (fits bool) {
	err := panics.Contain(func() {
		theirs := owned{func(p *manifests.Pod) *Rejection { return s.admitMoved(p, moving) }, s.devices.Has}
		fits = s.uidMoves(m, moving) && check(m.pod, &m.claims, &m.claims, &s.entries[m.key].spared, &s.totals, &s.facts, theirs) == nil
	})
	return err == nil && fits
}

// uidMoves reports whether the uid of a waiting pod is free once all movers have moved.
func (s *Table) uidMoves(m *mover, moving []*mover) bool {
	isTwice := func(o *mover) bool { return o != m && o.pod.UID == m.pod.UID }
	if slices.ContainsFunc(moving, isTwice) {
		return false
	}
	other, taken := s.Uids.Other(m.pod.UID, m.key)
	return !taken || slices.ContainsFunc(moving, func(o *mover) bool { return o.key == other })
}
