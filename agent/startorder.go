package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/rollout"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// startOrder is an index of the records by the pods that they start after. It is derived from
// their Orders, and a part of the records: what happens to one pod costs as much as there are
// pods that start after it.
type startOrder struct {
	names   rollout.Names
	after   map[manifests.Key]map[*podRecord]bool // who names a pod, under each name that may be meant
	rewired bool                                  // who starts after whom is another since the last look for circles
}

// past is what a previous agent reported of a pod that waits for others to start. The identity of
// the pointer marks one wait: what is read for an earlier wait is not taken.
type past struct {
	known bool
	last  *v1.PodStatus // as reported last, by that agent or by this one; nil: never
}

// inheritStarts takes over which pods previous agents let start in this boot. admitted gives
// their accepted versions.
func (s *records) inheritStarts(b checkpoint.Boot, admitted func(manifests.Key) *manifests.Pod, checkpoints []*checkpoint.Checkpoint) {
	for _, c := range checkpoint.Accepted(checkpoints) {
		if admitted(c.Key()) != nil && (c.Boot == "" || c.Boot == b.ID || c.Ended() != "") {
			s.of(c.Key()).Started = rollout.Version{UID: c.Pod.UID, Digest: c.Digest}
		}
	}
}

// enter takes over the place of the offered version in the start order. One that is new waits
// from now on if it must. All offered names must be known.
func (s *records) enter(r *podRecord, policy string, now time.Time) {
	if r.Order.Of != nil && manifests.Same(r.Order.Of, r.Offered) {
		r.Order.Of = r.Offered
		return
	}
	waited := r.AwaitsTurn()
	s.leave(r)
	r.Order = s.order.names.OrderOf(r.Offered)
	if len(r.Order.After) > 0 {
		if r.MustWait(policy) {
			r.Order.Since = now
		}
		s.link(r, annotations.OrderOf(r.Offered.Pod).After, true)
	}
	if waited != r.AwaitsTurn() {
		s.markWaiting(r.Key)
	}
}

// leave forgets the place of a name in the start order.
func (s *records) leave(r *podRecord) {
	if r.Order.Of != nil {
		s.link(r, annotations.OrderOf(r.Order.Of.Pod).After, false)
	}
	r.Order, r.past = rollout.Order{}, nil
}

// forget forgets that a pod was let start, too: if it starts again, it waits for its turn.
func (s *records) forget(r *podRecord) {
	s.leave(r)
	r.Started = rollout.Version{}
	s.markWaiting(r.Key)
}

// link adds a record to the index, or removes it.
func (s *records) link(r *podRecord, names []manifests.Key, is bool) {
	o := &s.order
	o.rewired = true
	for _, name := range names {
		for _, meant := range []manifests.Key{name, o.names.Long(name)} {
			if is && o.after[meant] == nil {
				o.after[meant] = map[*podRecord]bool{}
			}
			if is {
				o.after[meant][r] = true
				continue
			}
			delete(o.after[meant], r)
			if len(o.after[meant]) == 0 {
				delete(o.after, meant)
			}
		}
	}
}

// markWaiting marks the pods that wait for another, of which something is different: whether it is
// ready, or waits for its own turn.
func (s *records) markWaiting(key manifests.Key) {
	for r := range s.order.after[key] {
		if r.AwaitsTurn() {
			s.mark(r.Key)
		}
	}
}

// renamed takes over that there is a pod of this name now, or none any more: it may be the one
// that others mean.
func (s *records) renamed(key manifests.Key) {
	for r := range s.order.after[key] {
		after := s.order.names.OrderOf(r.Order.Of).After
		if !slices.Equal(after, r.Order.After) {
			r.Order.After, s.order.rewired = after, true
		}
	}
	s.markWaiting(key)
}

// findCircles looks for pods that start after themselves, if who starts after whom is another,
// and marks those that wait and of which that is new.
func (s *records) findCircles() {
	if !s.order.rewired {
		return
	}
	s.order.rewired = false
	after := map[manifests.Key][]manifests.Key{}
	for key, r := range s.all {
		if r.Order.Of != nil {
			after[key] = r.Order.After
		}
	}
	circles := rollout.Circles(after)
	for key := range after {
		r := s.all[key]
		if slices.Equal(circles[key], r.Order.Circle) {
			continue
		}
		r.Order.Circle = circles[key]
		if r.AwaitsTurn() {
			s.mark(key)
		}
	}
}

// dependents returns the records of the pods that start after others, by name.
func (s *records) dependents() []*podRecord {
	found := map[*podRecord]bool{}
	for _, all := range s.order.after {
		for r := range all {
			found[r] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b *podRecord) int { return strings.Compare(a.Key.String(), b.Key.String()) })
}
