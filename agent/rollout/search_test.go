package rollout

import (
	"slices"
	"testing"
	"time"

	"monopod/agent/prepare"
	"monopod/agent/update"
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
		{nothing, prepared, preparing, func(r *Record) { prepared(r); seenLast(r) }},
		{nothing, held, unknown},
		{nothing, stopped, starts, func(r *Record) { stopped(r); bare(r) }, func(r *Record) { starts(r); bare(r) }},
		{nothing, waitsTurn, func(r *Record) { waitsTurn(r); olderBoot(r) }},
	}
	worlds := [][]func(*World){}
	for mask := range 1 << 4 {
		for _, shutdown := range []func(*World){func(*World) {}, down, waves} {
			all := []func(*World){shutdown}
			for k, do := range []func(*World){full, heldNode, stopFirst, replaces} {
				if mask>>k&1 == 1 {
					all = append(all, do)
				}
			}
			worlds = append(worlds, all)
		}
	}
	seen := search(t, sets, worlds)
	// And all that the start order knows.
	turns := slices.Clone(sets)
	turns[5] = []func(*Record){waitsAWhile, waitedLong, turnComes, hadTurn}
	seen += search(t, turns, [][]func(*World){nil, {full}, {waves}, {heldNode, stopFirst}, {replaces, down}})
	// And all that the gate asks.
	sets[3] = []func(*Record){nothing, held, unknown, lockIs(Held, time.Minute), lockIs(Held, time.Hour)}
	sets = append(sets, []func(*Record){nothing, back, outdated})
	seen += search(t, sets, [][]func(*World){nil, {full}, {heldNode}, {sundays}, {sundays, stopFirst}, {replaces, down}})
	// And all that a trial does beside it.
	seen += search(t, [][]func(*Record){
		{nothing, restarted, ended, terminated},
		{nothing, func(r *Record) { r.Offered = v2nd }, gone, notRead},
		{nothing, prepared}, {nothing, held}, {nothing, stopped, starts},
		{tried(unready, 0), tried(unready, asked.Within), wasReady, gaveWay(time.Second), gaveWay(fileWithin), func(r *Record) { wasReady(r); waitsForDisk(r) }},
	}, [][]func(*World){nil, {full}, {waves}, {blind}, {heldNode, stopFirst}, {sundays}})
	if seen < 20_000 {
		t.Errorf("%d combinations", seen)
	}
}

// search decides in each combination of one of each set, in each of the worlds.
func search(t *testing.T, sets [][]func(*Record), worlds [][]func(*World)) (seen int) {
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
	return seen
}

func checkDecision(t *testing.T, r Record, w *World) {
	t.Helper()
	before, waits := r, r.AwaitsTurn() && r.Order.After[0].Name == "db" && (r.Order.Timeout == 0 || w.Now.Wall.Before(r.Order.Since.Add(r.Order.Timeout)))
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
	case runsOffered && waits && !manifests.Same(r.Accepted, r.Offered):
		fail("it starts before its turn")
	case d.Takes && !manifests.Same(r.Accepted, r.Offered) && (w.Down || w.Room(r.Offered) != nil):
		fail("it starts without room, or as the machine goes down")
	case stops && r.Offered != nil && !r.IsHalted() && isClosed(&r, w) && !r.Back && !(r.Seen.Unmade && r.Now.Prepare != nil):
		fail("what runs is stopped for a change through a closed gate")
	case d.Restarts && isClosed(&r, w):
		fail("a container restarts for its config through a closed gate")
	case r.Seen.Outdated != "" && r.Running() != nil && manifests.Same(d.Run, r.Running()) && d.Halt.Reason == "" && d.Restarts == (len(d.RestartWaits) > 0):
		fail("a restart for changed config neither happens nor waits")
	case runsOffered && r.Stop != nil && r.Stop.Version != nil && (r.Hold != nil || w.NodeHold != nil) && !r.Back && !manifests.Same(r.Stop.Version, r.Offered):
		fail("a held name changes its version as it starts")
	case d.Again.IsZero() && (d.WaitsBy(ByWindow) || d.WaitsBy(ByLock) || d.WaitsBy(ByLook)):
		fail("it waits for what is not looked at again")
	case stops && r.Offered == nil && !r.Gone:
		fail("what runs is stopped though nobody knows whether its manifest is gone")
	case stops && d.Takes && r.Prepared.Ready && !r.Prepared.Final && !r.Seen.Unmade && !w.StopsFirst(nil) && r.Becomes(r.Offered, w.Policy) != update.Resize:
		fail("what runs is stopped for a version that was not looked at last")
	case stops && r.Offered == nil && (r.Hold != nil || w.NodeHold != nil || len(w.Rules.Windows) > 0):
		fail("what is held is removed")
	case r.Gone && r.IsThere() && r.Stop != nil && r.Stop.Version != nil && (r.Hold != nil || w.NodeHold != nil || len(w.Rules.Windows) > 0) && d.Run == nil:
		fail("what is held is removed because it is stopped")
	case d.Prepare != nil && d.Run == nil:
		fail("a version is prepared beside nothing")
	case d.Rests && r.Works:
		fail("it rests and has a worker")
	case d.WaitsBy(ByStartOrder) && r.Order.Timeout > 0 && d.Again.IsZero():
		fail("its time is not awaited")
	case !d.Again.IsZero() && !d.Again.After(w.Now.Wall):
		fail("it is to be decided on again at once")
	case d.Rests && (d.Run != nil || d.Prepare != nil || d.Halt.Reason != ""):
		fail("it rests and runs")
	case d.Takes && d.Refused != nil:
		fail("it takes its room and is refused")
	}
	checkTrial(&r, &d, w, fail)
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

// checkTrial checks how the trial of a record goes on: it has a next look, nothing that is not seen
// counts, and what runs is another only once another version is offered.
func checkTrial(r *Record, d *Decision, w *World, fail func(string)) {
	if r.Trial == nil {
		return
	}
	isSeen := d.Trial.IsOn() && d.Trial.Health.Seen && !d.Removes // while a removal waits it rests
	isAwaited := d.Trial != nil && d.Trial.Reason != "" && !d.Trial.Judged
	alone := *r
	alone.Trial = nil
	other := Decide(&alone, w)
	other.Outcome = d.Outcome
	switch {
	case (isSeen || isAwaited) && d.Again.IsZero():
		fail("its trial is not looked at again")
	case !isSeen && !isAwaited && d.Outcome == Watching && !d.Again.Equal(other.Again):
		fail("a trial of which there is nothing to see is looked at")
	case d.Outcome == RollBack && (r.Trial.Health.Ready || w.Blind || d.Halt.Reason != ""):
		fail("a version gives way for what it did not do")
	case d.Outcome == Healthy && (!r.Trial.Health.Ready || !r.Trial.Safe):
		fail("a version is healthy that was not seen to be")
	case d.Outcome == Overdue && w.Now.Wall.Before(r.Trial.Found.Add(10*time.Second)):
		fail("the disk has no time for a verdict")
	case d.String() != other.String():
		fail("a trial decides on what runs: without it " + other.String())
	}
}

// isClosed reports whether the gate is closed, told in other words than by the rule itself.
func isClosed(r *Record, w *World) bool {
	isFree := r.Lock.File == "" || r.Lock.State == Free || !r.Lock.Since.IsZero() && r.Lock.Since != ago(time.Minute)
	return r.Hold != nil || w.NodeHold != nil || len(w.Rules.Windows) > 0 || !isFree
}

// carryOut is what the sync loop makes of a decision, as far as the record shows it.
func carryOut(r *Record, d *Decision) {
	r.Trial = d.Trial
	r.Prepared.Final = r.Prepared.Final && d.Final
	switch {
	case r.IsHalted():
		r.Accepted = nil
	case r.Gone && d.Run == nil:
		r.Accepted = nil
	case d.Takes || d.Replaces:
		r.Accepted, r.Over, r.Stop = d.Run, false, nil
	}
	if r.Offered != nil && !r.IsHalted() && !d.WaitsBy(ByStartOrder) {
		r.Order.Since = time.Time{}
	}
	if d.Rests {
		return
	}
	if d.Run != nil && d.Halt.Reason == "" {
		r.Started = VersionOf(d.Run)
	}
	if !manifests.Same(r.Now.Prepare, d.Prepare) {
		r.Seen, r.Prepared = Seen{}, prepare.State{}
	}
	r.Now, r.Works, r.Left, r.Stray = *d, true, nil, false
}
