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

// startOrder is an index of the records by the pods that they start after. It is derived from their
// Orders, and a part of the records: with it, the cost of a change of one pod depends only on the
// number of pods that start after it.
type startOrder struct {
	names   rollout.Names
	after   map[manifests.Key]map[*podRecord]bool // the records that name a pod, under each name that may be meant
	rewired bool                                  // the order has changed since the last search for circles
}

// past is what a previous agent reported of a pod that waits for others to start. The identity of
// the pointer marks one wait: what was read for an earlier wait is dropped.
type past struct {
	known bool
	last  *v1.PodStatus // the last report, by that agent or by this one; nil: none
}

// inheritStarts records which pods previous agents started in this boot. admitted returns the
// accepted version of a name.
func (s *records) inheritStarts(b checkpoint.Boot, admitted func(manifests.Key) *manifests.Pod, checkpoints []*checkpoint.Checkpoint) {
	for _, c := range checkpoint.Accepted(checkpoints) {
		if admitted(c.Key()) != nil && (c.Boot == "" || c.Boot == b.ID || c.Ended() != "") {
			s.of(c.Key()).Started = rollout.Version{UID: c.Pod.UID, Digest: c.Digest}
		}
	}
}

// enter records the place of the offered version in the start order. A new version waits from now
// on if it must. All offered names must be known.
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
			r.Order.Since, r.Order.Former = now, s.order.formerOf(&r.Record)
		}
		s.link(r, true)
	}
	if waited != r.AwaitsTurn() {
		s.markWaiting(r.Key)
	}
}

// formerOf returns the place of the version that a pod had before the offered one, if that has to
// start again and starts after others; nil: it need not wait.
func (s *startOrder) formerOf(r *rollout.Record) *rollout.Order {
	former := r.Present()
	if former == nil || manifests.Same(former, r.Offered) || r.WasStarted(former) {
		return nil
	}
	o := s.names.OrderOf(former)
	if len(o.After) == 0 {
		return nil
	}
	return &o
}

// leave removes a name from the start order.
func (s *records) leave(r *podRecord) {
	if r.Order.Of != nil {
		s.link(r, false)
	}
	r.Order, r.past = rollout.Order{}, nil
}

// forget also forgets that a pod was started: if it starts again, it waits for its turn.
func (s *records) forget(r *podRecord) {
	s.leave(r)
	r.Started = rollout.Version{}
	s.markWaiting(r.Key)
}

// link adds a record to the index, or removes it.
func (s *records) link(r *podRecord, is bool) {
	o := &s.order
	o.rewired = true
	names := annotations.OrderOf(r.Order.Of.Pod).After
	if f := r.Order.Former; f != nil {
		names = slices.Concat(names, annotations.OrderOf(f.Of.Pod).After)
	}
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

// markWaiting marks the pods that wait for another one, after a change of whether that one is ready
// or waits for its own turn.
func (s *records) markWaiting(key manifests.Key) {
	for r := range s.order.after[key] {
		if r.AwaitsTurn() {
			s.mark(r.Key)
		}
	}
}

// renamed handles that a pod of this name exists now, or no longer does: other pods may mean it.
func (s *records) renamed(key manifests.Key) {
	for r := range s.order.after[key] {
		after := s.order.names.OrderOf(r.Order.Of).After
		if !slices.Equal(after, r.Order.After) {
			r.Order.After, s.order.rewired = after, true
		}
		if f := r.Order.Former; f != nil {
			f.After = s.order.names.OrderOf(f.Of).After
		}
	}
	s.markWaiting(key)
}

// findCircles searches for pods that start after themselves, if the order has changed, and marks
// the waiting pods for which the result is new.
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
