package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/manifests/annotations"
)

// stopped says that the owner stopped the pod.
func stopped(s *plan.Facts) {
	s.Halted = plan.Halt{Waiting: plan.Waiting{Reason: "Stopped", Message: message.Fixed("stopped by request")}}
}

// downs says that the machine goes down.
func downs(s *plan.Facts) {
	s.Halted = plan.Halt{Waiting: plan.Waiting{Reason: "Terminated"}, Terminated: true, Grace: 9 * time.Second}
}

// interrupted says that the pod was stopped so before, and that it is written down.
func interrupted(s *plan.Facts) {
	s.Known["u"] = s.Known["u"].Interrupted("s0")
	s.Instance().MarkReplaced("s0")
}

func both(all ...func(*plan.Facts)) func(*plan.Facts) {
	return func(s *plan.Facts) {
		for _, do := range all {
			do(s)
		}
	}
}

// excused is an attempt after some that ended by an interruption.
func excused(c pleg.Container, n uint32) pleg.Container {
	c.Excused = n
	return c
}

func TestPlanOfHalts(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	job := func(limit int32) *v1.Pod {
		p := pod(never, "a")
		annotations.SetJobRetries(p, limit)
		return p
	}
	term := exit("a", 0, 143, 0, "")
	checkPlans(t, []row{
		{"before anything stops it is written down that the pod is interrupted", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: stopped},
			"interrupt s0; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0|a waits: Stopped"},
		{"by a shutdown, too", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0)), Change: downs},
			"interrupt s0; stop container a a0 in 9s; stop sandbox s0; remove sandbox s0"},
		{"once", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: both(interrupted, stopped)},
			"stop container a a0 in 30s; stop sandbox s0; remove sandbox s0|a waits: Stopped"},
		{"and again of one that runs in another sandbox since", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: both(stopped, func(s *plan.Facts) { s.Known["u"] = s.Known["u"].Interrupted("s9") })},
			"interrupt s0; stop container a a0 in 30s; stop sandbox s0; remove sandbox s0|a waits: Stopped"},
		{"not again of one of which nothing is left", scene{Pod: pod(never, "a"), Accepted: true, Change: both(stopped, func(s *plan.Facts) { s.Known["u"] = s.Known["u"].Interrupted("s0") })}, "|a waits: Stopped"},
		{"nothing of it was made before its deadline was over", scene{Pod: pod(always, "a"), Accepted: true, Here: world(), Change: both(stopped, active(60, time.Hour))},
			"interrupt s0; stop sandbox s0; remove sandbox s0|a waits: Stopped"},
		{"also of a pod of which the runtime has nothing", scene{Pod: pod(never, "a"), Accepted: true, Change: stopped}, "interrupt|a waits: Stopped"},
		{"nothing of one that was never accepted", scene{Pod: pod(never, "a"), Change: stopped}, "|a waits: Stopped"},
		{"what has ended before has ended", scene{Pod: pod(never, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, "")), Change: stopped}, "stop sandbox s0; end Failed|a waits: Stopped"},
		{"also while its sidecars are on their way", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: both(settled(checkpoint.Result{Phase: v1.PodFailed}), stopped)},
			"stop container a a0 in 30s; stop sandbox s0|a waits: Stopped"},
		{"which a shutdown makes shorter", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: both(settled(checkpoint.Result{Phase: v1.PodFailed}), downs)},
			"stop container a a0 in 9s; stop sandbox s0"},
		{"or the runtime has nothing of it", scene{Pod: pod(never, "a"), Accepted: true, Change: both(settled(checkpoint.Result{Phase: v1.PodFailed}), stopped)}, "end Failed|a waits: Stopped"},
		{"what the stop ended has not", scene{Pod: pod(never, "a"), Accepted: true, Here: world(term), Change: both(interrupted, stopped)},
			"stop sandbox s0; remove sandbox s0|a waits: Stopped"},

		// Started again, before all of it was stopped.
		{"one that never restarts runs again", scene{Pod: pod(never, "a"), Accepted: true, Here: world(term), Change: interrupted}, "stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"one that restarts on failure does, too", scene{Pod: pod(onFailure, "a"), Accepted: true, Here: world(exit("a", 0, 0, 0, "")), Change: interrupted}, "stop sandbox s0; set up; create sandbox#1; start container a#1"},
		{"what is under way goes on first", scene{Pod: pod(never, "a"), Accepted: true, Here: world(up("a", 0)), Change: both(interrupted, stops(map[string]plan.Stopping{"a0": {Whole: true}}))}, ""},
		{"a Job of one attempt has it again", scene{Pod: job(0), Accepted: true, Here: world(term), Change: interrupted}, "stop sandbox s0; set up; create sandbox#1; start container a#1"},

		// The attempts of a Job.
		{"one that an interruption ended does not count", scene{Pod: job(1), Accepted: true, Here: world(excused(exit("a", 1, 1, time.Minute, ""), 1))}, "start container a#2 after 10s"},
		{"all others do", scene{Pod: job(1), Accepted: true, Here: world(excused(exit("a", 2, 1, time.Minute, ""), 1))}, "stop sandbox s0; end Failed BackoffLimitExceeded"},
	})
}

// The interruption says which attempts of a Job end by it without having failed, or run once more
// though they succeeded, and how long it was active.
func TestWhatAnInterruptionEnds(t *testing.T) {
	p := withInit(pod(v1.RestartPolicyNever, "a", "b"), "i")
	is := scene{Pod: p, Accepted: true, Here: world(exit("i", 0, 0, time.Hour, ""), exit("a", 0, 1, time.Minute, ""), up("b", 0)), Change: both(stopped, active(3600, time.Minute))}
	find := func() *plan.Action {
		for _, step := range plan.Make(is.Facts()).Steps {
			if k := slices.IndexFunc(step, func(a plan.Action) bool { return a.Do == plan.DoInterrupt }); k >= 0 {
				return &step[k]
			}
		}
		t.Fatal("it is not interrupted")
		return nil
	}
	if a := find(); len(a.Excused) > 0 || a.Active != time.Minute {
		t.Errorf("%v, active for %s", a.Excused, a.Active)
	}
	annotations.SetJobRetries(p, 3)
	if a := find(); strings.Join(a.Excused, " ") != "i b" {
		t.Errorf("of a Job: %v", a.Excused)
	}
}

// A deadline counts what the marks say, whatever the clock does, and whenever it comes.
func TestADeadlineCountsByMarks(t *testing.T) {
	for _, row := range []struct {
		name   string
		active *checkpoint.Active
		saves  time.Duration
		want   string
	}{
		{"from the mark of this boot", &checkpoint.Active{Mark: checkpoint.Mark{Boot: "b", Up: 5 * time.Hour}, Before: time.Minute}, 30 * time.Minute, "save active time|wake in 6m0s"},
		{"as much of it as a crash may take", &checkpoint.Active{Mark: checkpoint.Mark{Boot: "b", Up: 5*time.Hour + 23*time.Minute}, Before: time.Minute}, 7 * time.Minute, "save active time|wake in 6m0s"},
		{"less of it is not saved", &checkpoint.Active{Mark: checkpoint.Mark{Boot: "b", Up: 5*time.Hour + 23*time.Minute + 1}, Before: time.Minute}, 0, "|wake in 6m0s"},
		{"beyond the deadline", &checkpoint.Active{Mark: checkpoint.Mark{Boot: "b", Up: 4 * time.Hour}, Before: time.Minute}, 0, "record result Failed DeadlineExceeded; stop container a a0 in 30s; stop sandbox s0"},
		{"not the time since a former boot", &checkpoint.Active{Mark: checkpoint.Mark{Boot: "a", Up: time.Hour}, Before: time.Minute}, time.Minute, "save active time|wake in 6m0s"},
		{"nor that in which it was stopped", &checkpoint.Active{Before: time.Minute}, time.Minute, "save active time|wake in 6m0s"},
		{"from now on, where a former agent kept none", nil, 0, "save active time|wake in 6m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(up("a", 0)), Change: active(3600, 0)}.Facts()
			c := *s.Known["u"]
			c.Active, c.Accepted.Time = row.active, noon.AddDate(-56, 0, 0) // by a clock that was set since
			s.Mark.Up, s.Known["u"] = 5*time.Hour+29*time.Minute, &c
			if got := decided(t, s); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
			for _, a := range slices.Concat(plan.Make(s).Steps...) {
				if a.Do == plan.DoSaveActive && a.Active != row.saves {
					t.Errorf("it saves %s, want %s", a.Active, row.saves)
				}
			}
		})
	}
}

func TestWhetherAPodIsHalted(t *testing.T) {
	always := v1.RestartPolicyAlways
	for _, row := range []struct {
		name string
		scene
		want bool
	}{
		{"it is to run", scene{Accepted: true}, false},
		{"it is stopped, and nothing is there", scene{Accepted: true, Change: stopped}, true},
		{"it is stopped, and is still there", scene{Accepted: true, Here: world(), Change: stopped}, false},
		{"it is stopped, and the one before is still there", scene{Accepted: true, Old: world(), Change: stopped}, false},
		{"it is stopped, and something is being made", scene{Accepted: true, Change: both(stopped, makes("u"))}, false},
		{"no pod is wanted", scene{Nothing: true, Change: stopped}, false},
	} {
		row.Pod = pod(always, "a")
		s := row.scene.Facts()
		if got := s.IsHalted(); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
