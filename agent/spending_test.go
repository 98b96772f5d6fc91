package agent

import (
	"fmt"
	"testing"
	"time"

	"monopod/agent/disk"
	"monopod/cri/critest"
)

// spending is what something costs the disk and the runtime.
type spending struct {
	syncs, files, bytes int64
	lists, calls        int // calls are those that list nothing
}

// spent returns what is spent while do runs and in the seconds after, in which all that
// follows is written.
func (r *rig) spent(do func()) spending {
	before := disk.WrittenSoFar()
	r.ForgetCalls()
	do()
	r.after(4 * time.Second)
	now, s := disk.WrittenSoFar(), spending{}
	s.syncs, s.files, s.bytes = now.Syncs-before.Syncs, now.Files-before.Files, now.Bytes-before.Bytes
	for method, n := range r.Counts() {
		switch method {
		case "ListPodSandbox", "ListContainers":
			s.lists += n
		case "Status": // asked for by the clock
		default:
			s.calls += n
		}
	}
	return s
}

// beyond reports whether more is spent than some bound, in anything.
func (s spending) beyond(most spending) bool {
	return s.syncs > most.syncs || s.files > most.files || s.bytes > most.bytes || s.lists > most.lists || s.calls > most.calls
}

// The bounds are what was measured and some 20 %; how many looks a wake-up saves depends
// on the order of goroutines, and one or two relists are among the lists.
func TestWhatPodsSpendIsBounded(t *testing.T) {
	live(t, func(r *rig) {
		for call, takes := range map[string]int{"RunPodSandbox": 100, "CreateContainer": 30, "StartContainer": 80, "StopPodSandbox": 50, "RemovePodSandbox": 50} {
			r.Takes(call, time.Duration(takes)*time.Millisecond)
		}
		var others []string
		for k := range 20 {
			others = append(others, manifest(fmt.Sprint("p", k), "img:1"))
		}
		r.want(others...)
		r.after(time.Minute)
		for _, row := range []struct {
			name string
			do   func()
			most spending
		}{
			{"a start", func() { r.want(append(others, manifest("web", "img:1"))...) }, spending{2, 3, 16_000, 10, 6}},
			{"a crash", func() { r.Exit("default/web-n/c", 1) }, spending{0, 1, 4_000, 10, 6}},
			{"a removal", func() { r.want(others...) }, spending{1, 2, 13_000, 14, 6}},
			{"an idle hour", func() { r.after(time.Hour) }, spending{0, 0, 0, 1800, 0}},
		} {
			s := r.spent(row.do)
			t.Logf("%s: %+v", row.name, s)
			if s.beyond(row.most) {
				t.Errorf("%s of a pod among 20 spends %+v: at most %+v", row.name, s, row.most)
			}
			if row.most.calls > 0 && (s.files == 0 || s.calls == 0) {
				t.Errorf("%s did not happen: %+v", row.name, s)
			}
		}
	})
}

// The runtime first kills what is to be killed, and then takes sandboxes down.
func TestSandboxesAreTakenDownAfterKills(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Program{}.IgnoresTerm())
		r.want(manifest("quick", "img:1", "terminationGracePeriodSeconds: 2"), manifest("slow", "img:1", "terminationGracePeriodSeconds: 2"))
		r.after(time.Second)
		const kill = 300 * time.Millisecond
		r.Fault(critest.On("StopContainer").Of("default/quick-n/c").Delay(kill / 3))
		r.Fault(critest.On("StopContainer").Of("default/slow-n/c").Delay(kill))
		r.ForgetCalls()
		start := time.Now()
		r.want()
		r.after(10 * time.Second)
		if n := r.Count("StopPodSandbox"); n != 2 {
			t.Fatalf("%d sandboxes were stopped", n)
		}
		for _, c := range r.Calls() {
			if took := c.At.Sub(start); c.Method == "StopPodSandbox" && took < 2*time.Second+kill {
				t.Errorf("a sandbox was stopped after %v, while a container was being killed", took)
			}
		}
	})
}
