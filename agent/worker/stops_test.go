package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/plan"
	"monopod/agent/slots"
	"monopod/cri/critest"
)

// stopOf is the stop of the one container that runs.
func (r *rig) stopOf(grace time.Duration) plan.Action {
	r.Helper()
	for _, c := range r.Containers() {
		return plan.Action{Do: plan.DoStopContainer, UID: string(r.pod.current.Pod.UID), ID: c.ID, Name: "c", Grace: grace}
	}
	r.Fatal("no container")
	return plan.Action{}
}

// stopping runs a test with a pod that runs, whose process does not heed SIGTERM, and the
// action that stops it.
func stopping(t *testing.T, test func(r *rig, stop plan.Action)) {
	bubble(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.passes(Update{Pod: r.web("img:1")})
		r.runs("default/web-n/c")
		test(r, r.stopOf(30*time.Second))
	})
}

// The process of a container that does not heed its signal is killed when its grace is over.
func TestAStopRunsInTheBackgroundAndWakesTheWorker(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		r.stops.start(nil, []plan.Action{a})
		synctest.Wait()
		if s, is := r.stops.states()[a.ID]; !is || !s.Retry.IsZero() || len(r.pod.woken) != 0 {
			r.Errorf("while it stops the plan is told %+v, %v", s, is)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		r.runs()
		if len(r.pod.woken) != 1 {
			r.Error("its end does not wake the worker")
		}
		r.stops.forget(map[string]bool{})
		if len(r.stops.all) != 0 {
			r.Errorf("left: %v", r.stops.all)
		}
	})
}

// A stop that fails is tried again after longer and longer waits; once the grace of the
// first is over the plan knows that it is late.
func TestAStopThatFailsIsTriedAgain(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		r.Fault(critest.On("StopContainer").Fail(codes.Internal, "no"))
		var waits []time.Duration
		for range 3 {
			r.stops.start(nil, []plan.Action{a})
			synctest.Wait()
			s := r.stops.states()[a.ID]
			waits = append(waits, time.Until(s.Retry))
			if s.Late {
				r.Errorf("it is late after %d tries", len(waits))
			}
			time.Sleep(time.Until(s.Retry))
			if _, is := r.stops.states()[a.ID]; is {
				r.Error("it is not tried again when it is time")
			}
		}
		if want := []time.Duration{plan.RetryFirst, 2 * plan.RetryFirst, 4 * plan.RetryFirst}; !slices.Equal(waits, want) {
			r.Errorf("it waits %v, want %v", waits, want)
		}
		time.Sleep(30 * time.Second)
		r.stops.start(nil, []plan.Action{a})
		synctest.Wait()
		if s := r.stops.states()[a.ID]; !s.Late {
			r.Errorf("after its grace period the plan is told %+v", s)
		}
	})
}

// A container whose process ends by itself needs no stop any more.
func TestAStopOfWhatHasExitedIsForgotten(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		r.stops.start(nil, []plan.Action{a})
		synctest.Wait()
		r.stops.forget(map[string]bool{a.ID: true})
		synctest.Wait()
		if s, is := r.stops.states()[a.ID]; !is || !s.Retry.IsZero() {
			r.Errorf("of the stop of a container that lives the plan is told %+v, %v", s, is)
		}
		r.stops.forget(map[string]bool{})
		synctest.Wait()
		r.stops.forget(map[string]bool{})
		if len(r.stops.all) != 0 || r.pod.shared.kills.Load() != 0 {
			r.Errorf("left: %v; %d kills", r.stops.all, r.pod.shared.kills.Load())
		}
	})
}

// A container stops behind those that it must outlive, and their time is of its own grace.
func TestAStopWaitsForThoseBeforeIt(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		first := &stop{job: newJob(r.Context(), func() {})}
		r.stops.all["first"] = first
		a.Behind = []string{"first", "unknown"}
		before := r.Count("StopContainer")
		r.stops.start(nil, []plan.Action{a})
		time.Sleep(20 * time.Second)
		if n := r.Count("StopContainer") - before; n != 0 {
			r.Errorf("%d calls while the other stops", n)
		}
		close(first.job.done)
		synctest.Wait()
		if n := r.Count("StopContainer") - before; n != 1 {
			r.Errorf("%d calls once it has stopped", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.runs()
	})
}

// A runtime that is to stop very many containers gets so many at a time. The grace of those that wait
// begins with their call.
func TestAStopWaitsForASlot(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		release := make(chan struct{})
		r.pool.ContainerStops = slots.NewWindow(1)
		go func() {
			_ = r.pool.ContainerStops.Do(context.Background(), false, time.Second, func() error { <-release; return nil })
		}()
		synctest.Wait()
		before := r.Count("StopContainer")
		r.stops.start(nil, []plan.Action{a})
		time.Sleep(5 * time.Second)
		if n := r.Count("StopContainer") - before; n != 0 {
			r.Errorf("%d calls without a slot", n)
		}
		close(release)
		time.Sleep(29 * time.Second)
		r.runs("default/web-n/c")
		time.Sleep(time.Second)
		synctest.Wait()
		r.runs()
	})
}

// The stop of the whole pod replaces that of one container, which has not failed by that.
func TestAStopThatIsReplacedHasNotFailed(t *testing.T) {
	stopping(t, func(r *rig, a plan.Action) {
		r.stops.start(nil, []plan.Action{a})
		time.Sleep(5 * time.Second)
		a.Whole = true
		r.stops.start(nil, []plan.Action{a})
		synctest.Wait()
		if said := r.log.String(); strings.Contains(said, "container stop failed") {
			r.Errorf("the log says\n%s", said)
		}
	})
}
