package agent

import (
	"slices"
	"time"

	"monopod/agent/admission"
	"monopod/agent/rollout"
	"monopod/manifests"
)

// agenda has the names to be decided on: the dirty ones now, and the timed ones at the time in
// their decisions, without an event. It is a part of the records.
type agenda struct {
	dirty  []*podRecord        // each once
	timed  []*podRecord        // those whose decisions have an Again, each once
	denied map[*podRecord]bool // those whose decisions have a refusal
	rearms bool                // an Again has changed since the timer was set
	timer  *time.Timer         // fires when Again may have come: then due must be called
}

// lookAtLeast is the longest sleep of the timer while any name is timed: some names wait for a wall
// clock time, which may be set, and no timer runs while the machine is suspended.
const lookAtLeast = time.Minute

func newAgenda() agenda {
	a := agenda{timer: time.NewTimer(time.Hour), denied: map[*podRecord]bool{}}
	a.timer.Stop()
	return a
}

// mark makes a name dirty: it is decided on before the loop waits for its next event. The handler
// of an event marks the names whose decisions depend on the event.
func (s *records) mark(key manifests.Key) {
	r := s.of(key)
	if !r.dirty {
		r.dirty = true
		s.agenda.dirty = append(s.agenda.dirty, r)
	}
}

// takeDirty returns the dirty names: first those that are removed, then the others in order of
// arrival, in which they get their room. Those that wait for their turn come last: only then is it
// known which of the pods that they start after are still ready.
func (s *records) takeDirty() []*podRecord {
	all := s.agenda.dirty
	s.agenda.dirty = nil
	for _, r := range all {
		r.dirty = false
	}
	if len(all) < 2 {
		return all
	}
	sorted := make([]*podRecord, 0, len(all))
	var arrived, waiting []*manifests.Pod
	for _, r := range all {
		switch {
		case r.Offered == nil:
			sorted = append(sorted, r)
		case r.AwaitsTurn():
			waiting = append(waiting, r.Offered)
		default:
			arrived = append(arrived, r.Offered)
		}
	}
	admission.ByArrival(arrived)
	admission.ByArrival(waiting)
	for _, p := range slices.Concat(arrived, waiting) {
		sorted = append(sorted, s.all[p.Key()])
	}
	return sorted
}

// decided records the decision that was carried out.
func (s *records) decided(r *podRecord, d rollout.Decision) {
	a := &s.agenda
	a.rearms = a.rearms || !r.Now.Again.Equal(d.Again)
	r.Now = d
	s.touch(r.Key)
	if d.Refused != nil {
		a.denied[r] = true
	} else {
		delete(a.denied, r)
	}
	switch {
	case d.Again.IsZero():
		s.drop(r.Key) // the record may be empty now
	case !r.timed:
		r.timed = true
		a.timed = append(a.timed, r)
	}
}

// markRefused marks the names that may start once the node has room.
func (s *records) markRefused() {
	for r := range s.agenda.denied {
		if r.Now.IsRetried() {
			s.mark(r.Key)
		}
	}
}

// awaitRoom reports whether any name may start once the node has room.
func (s *records) awaitRoom() bool {
	for r := range s.agenda.denied {
		if r.Now.IsRetried() {
			return true
		}
	}
	return false
}

// due marks the names whose time has passed.
func (s *records) due(now time.Time) {
	s.agenda.rearms = true
	for _, r := range s.agenda.timed {
		if !r.Now.Again.IsZero() && !now.Before(r.Now.Again) {
			s.mark(r.Key)
		}
	}
}

// arm sets the timer to the earliest Again, if that may have changed.
func (s *records) arm(now time.Time) {
	a := &s.agenda
	if !a.rearms {
		return
	}
	a.rearms = false
	sleep, timed := lookAtLeast, a.timed[:0]
	for _, r := range a.timed {
		r.timed = !r.Now.Again.IsZero()
		if r.timed {
			sleep, timed = min(sleep, r.Now.Again.Sub(now)), append(timed, r)
		}
	}
	clear(a.timed[len(timed):])
	a.timed = timed
	a.timer.Stop()
	if len(timed) > 0 {
		a.timer.Reset(sleep)
	}
}
