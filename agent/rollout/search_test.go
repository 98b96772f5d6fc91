package rollout

import (
	"testing"

	"monopod/agent/prepare"
	"monopod/manifests"
)

// TestEveryCombination decides in each combination of what may be known of a pod name with two
// versions: no panic, a wait for whatever is offered and does not run, no change of what runs
// without its gate, room and turn, and after three turns nothing changes any more.
func TestEveryCombination(t *testing.T) {
	nothing := func(*Record) {}
	sets := [][]func(*Record){
		{nothing, fresh, ended, restarted, unmade, stray, terminated},
		{nothing, func(r *Record) { r.Offered = v2nd }, func(r *Record) { r.Offered = labelled("one") }, gone, notRead},
		{nothing, prepared, preparing},
		{nothing, held, unknown},
		{nothing, stopped, starts, func(r *Record) { stopped(r); bare(r) }, func(r *Record) { starts(r); bare(r) }},
		{nothing, waitsTurn, func(r *Record) { waitsTurn(r); olderBoot(r) }},
	}
	worlds := [][]func(*World){}
	for mask := range 1 << 6 {
		var all []func(*World)
		for k, do := range []func(*World){full, down, nodeHeld, stopFirst, replaces, waves} {
			if mask>>k&1 == 1 {
				all = append(all, do)
			}
		}
		worlds = append(worlds, all)
	}
	seen := 0
	var walk func(r Record, k int)
	walk = func(r Record, k int) {
		if k < len(sets) {
			for _, do := range sets[k] {
				walk(changed(r, do), k+1)
			}
			return
		}
		for _, world := range worlds {
			seen++
			checkDecision(t, r, worldOf(world...))
		}
	}
	walk(running(v1st), 0)
	if seen < 20_000 {
		t.Errorf("%d combinations", seen)
	}
}

func checkDecision(t *testing.T, r Record, w *World) {
	t.Helper()
	before := r
	d := Decide(&r, w)
	fail := func(what string) {
		t.Fatalf("%s: %s\nof %+v\nin %+v", what, d, before, *w)
	}
	runsOffered := r.Offered != nil && manifests.Same(d.Run, r.Offered) && d.Halt.Reason == ""
	stops := r.Running() != nil && r.Works && manifests.Same(r.Now.Run, r.Running()) && !manifests.Same(d.Run, r.Running())
	switch {
	case r.Offered != nil && !runsOffered && len(d.Waits) == 0:
		fail("the offered version does not run, and nothing says why")
	case runsOffered && r.IsHalted():
		fail("a stopped pod runs")
	case runsOffered && r.Turn.Waits && !manifests.Same(r.Accepted, r.Offered):
		fail("it starts before its turn")
	case d.Takes && !manifests.Same(r.Accepted, r.Offered) && (w.Down || w.Room(r.Offered) != nil):
		fail("it starts without room, or as the machine goes down")
	case stops && r.Offered != nil && !r.IsHalted() && !r.Turn.Waits && !r.Gate.Open && !(r.Seen.Unmade && r.Now.Prepare != nil):
		fail("what runs is stopped for a change through a closed gate")
	case stops && r.Offered == nil && !r.Gone:
		fail("what runs is stopped though nobody knows whether its manifest is gone")
	case stops && r.Offered == nil && r.Gate.Removal != "":
		fail("what is held is removed")
	case d.Prepare != nil && d.Run == nil:
		fail("a version is prepared beside nothing")
	case d.Rests && r.Works:
		fail("it rests and has a worker")
	case !d.Again.IsZero() && !d.Again.After(w.Now):
		fail("it is to be decided on again at once")
	case d.Rests && (d.Run != nil || d.Prepare != nil || d.Halt.Reason != ""):
		fail("it rests and runs")
	case d.Takes && d.Refused != nil:
		fail("it takes its room and is refused")
	}
	for turns := 0; ; turns++ {
		carryOut(&r, &d)
		next := Decide(&r, w)
		if next.String() == d.String() {
			return
		}
		if d = next; turns > 3 {
			fail("no end")
		}
	}
}

// carryOut is what the sync loop makes of a decision, as far as the record shows it.
func carryOut(r *Record, d *Decision) {
	switch {
	case r.IsHalted():
		r.Accepted = nil
	case r.Gone && d.Run == nil:
		r.Accepted = nil
	case d.Takes || d.Replaces:
		r.Accepted, r.Over, r.Stop = r.Offered, false, nil
	}
	if d.Rests {
		return
	}
	if !manifests.Same(r.Now.Prepare, d.Prepare) {
		r.Seen, r.Prepared = Seen{}, prepare.State{}
	}
	r.Now, r.Works, r.Left, r.Stray = *d, true, nil, false
}
