package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/slots"
	"monopod/manifests"
)

func TestWhichFailuresAreOfTheDesiredVersion(t *testing.T) {
	p := &manifests.Pod{Pod: withInit(pod(v1.RestartPolicyAlways, "a"), "i")}
	for key, want := range map[string]bool{plan.SandboxFailure: true, "a": true, "i": true, "b": false, "remove sandbox s0": false} {
		if got := plan.OfDesired(key, p); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}

// Sandboxes that do not live long are made again at growing intervals.
func TestSandboxesThatDieSoonAreMadeLater(t *testing.T) {
	const reset = 10 * time.Minute
	for _, row := range []struct {
		name  string
		made  int
		lived time.Duration
		count int
		retry time.Duration
	}{
		{"the first one", 0, 100 * reset, 1, 0},
		{"the second one", 1, time.Second, 2, time.Second},
		{"the third one", 2, reset - 1, 3, 2 * time.Second},
		{"one after one that lived for long", 2, reset, 1, 0},
		{"the hundredth one", 99, time.Second, 100, time.Minute},
	} {
		got := plan.Failure{Made: row.made, MadeAt: noon.Add(-row.lived)}.Remade(noon)
		retry := time.Duration(0)
		if !got.Retry.IsZero() {
			retry = got.Retry.Sub(noon)
		}
		if got.Made != row.count || got.MadeAt != noon || retry != row.retry {
			t.Errorf("%s: %d made, again in %s", row.name, got.Made, retry)
		}
	}
}

func TestASuccessThatIsNotObservedIsRepeated(t *testing.T) {
	first := plan.Failure{}.Done(noon)
	second := first.Done(noon)
	if first.Count != 1 || second.Count != 2 || first.Retry.Sub(noon) != plan.RetryAfter(0) || second.Retry.Sub(noon) != plan.RetryAfter(1) {
		t.Errorf("first %+v, second %+v", first, second)
	}
}

func TestWhatIsNotedIsForgotten(t *testing.T) {
	long := noon.Add(-plan.RetryMax - 1)
	for name, row := range map[string]struct {
		f    plan.Failure
		want bool
	}{
		"long ago":                {plan.Failure{Retry: long}, true},
		"just now":                {plan.Failure{Retry: noon.Add(-plan.RetryMax)}, false},
		"of an object":            {plan.Failure{Retry: long, Object: "a0"}, false},
		"a failure":               {plan.Failure{Retry: long, Waiting: plan.Waiting{Reason: "FailedSync"}}, false},
		"sandboxes made in a row": {plan.Failure{Retry: long, Made: 1}, false},
		"a busy runtime":          {plan.Failure{Retry: long, Busy: long}, false},
	} {
		if got := row.f.Over(noon); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A runtime that is busy with an object has some time before that is a failure.
func TestFailuresInARow(t *testing.T) {
	w := plan.Waiting{Reason: "FailedSync", Message: message.Fixed("no")}
	since := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	for _, row := range []struct {
		name           string
		was            plan.Failure
		busy, reserved bool
		want           plan.Failure
	}{
		{"the first one", plan.Failure{}, false, false, plan.Failure{Waiting: w, Count: 1, Retry: noon.Add(time.Second)}},
		{"the second one", plan.Failure{Waiting: w, Count: 1}, false, false, plan.Failure{Waiting: w, Count: 2, Retry: noon.Add(2 * time.Second)}},
		{"the runtime is busy", plan.Failure{}, true, false, plan.Failure{Count: 1, Retry: noon.Add(plan.RetryFirst), Busy: noon}},
		{"it is busy again", plan.Failure{Count: 1, Busy: since(30*time.Second - 1)}, true, true, plan.Failure{Count: 2, Retry: noon.Add(2 * plan.RetryFirst), Busy: since(30*time.Second - 1)}},
		{"it is busy for long", plan.Failure{Count: 1, Busy: since(30 * time.Second)}, true, false, plan.Failure{Waiting: w, Count: 2, Retry: noon.Add(2 * plan.RetryFirst), Busy: since(30 * time.Second)}},
		{"a name is taken for long", plan.Failure{Count: 1, Busy: since(30 * time.Second), Skip: 1}, true, true, plan.Failure{Waiting: w, Count: 2, Retry: noon.Add(2 * plan.RetryFirst), Busy: since(30 * time.Second), Skip: 2}},
		{"it is busy no longer, and fails", plan.Failure{Count: 1, Busy: since(time.Minute)}, false, false, plan.Failure{Waiting: w, Count: 2, Retry: noon.Add(2 * time.Second)}},
	} {
		got := row.was.Failed(noon, w, row.busy, row.reserved)
		if got.Reason != row.want.Reason || got.Count != row.want.Count || got.Retry != row.want.Retry || got.Busy != row.want.Busy || got.Skip != row.want.Skip {
			t.Errorf("%s:\n got  %+v\n want %+v", row.name, got, row.want)
		}
	}
}

func TestACallThatHangsIsTold(t *testing.T) {
	for _, row := range []struct {
		name string
		key  string
		run  plan.Running
		want string
	}{
		{"the container's start hangs", "a", plan.Running{Since: noon.Add(-slots.HangsAfter)}, "the runtime has not answered since 2026-01-02 11:59:50 UTC"},
		{"the sandbox's start hangs", plan.SandboxFailure, plan.Running{Since: noon.Add(-slots.HangsAfter)}, "the runtime has not answered since 2026-01-02 11:59:50 UTC"},
		{"it takes a while", "a", plan.Running{Since: noon.Add(1 - slots.HangsAfter)}, ""},
		{"it waits for its turn", "a", plan.Running{}, ""},
		{"another one hangs", "b", plan.Running{Since: noon.Add(-time.Hour)}, ""},
	} {
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Change: func(s *plan.Facts) { s.Running = map[string]plan.Running{row.key: row.run} }}.Facts()
		if got := s.HangText("a").String(); got != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}
