package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/manifests/annotations"
)

func TestPlanBackOff(t *testing.T) {
	own := func(first, most string) map[string]string {
		a := map[string]string{}
		if first != "" {
			a[annotations.BackOffFirst] = first
		}
		if most != "" {
			a[annotations.BackOffMax] = most
		}
		return a
	}
	waits := func(d string) string { return "|a waits: CrashLoopBackOff|wake in " + d }
	for _, row := range []struct {
		name string
		node plan.BackOff
		pod  map[string]string
		mark string        // of the container that crashed: the wait before it
		ago  time.Duration // since it crashed
		want string
	}{
		{"the node's first wait", plan.BackOff{First: 3 * time.Second}, nil, "0s", 0, waits("3s")},
		{"the node's first wait doubles", plan.BackOff{First: 3 * time.Second}, nil, "3s", 0, waits("6s")},
		{"the node's longest wait", plan.BackOff{Max: 30 * time.Second}, nil, "20s", 0, waits("30s")},
		{"a longest wait below the first lowers it", plan.BackOff{Max: 2 * time.Second}, nil, "0s", 0, waits("2s")},
		{"a first crash restarts at once whatever is set", plan.BackOff{First: time.Minute}, own("2m", "3m"), "", 0, "start container a#2 after 0s"},
		{"the pod's first wait", plan.BackOff{}, own("500ms", ""), "0s", 0, waits("500ms")},
		{"the pod's longest wait", plan.BackOff{}, own("", "15s"), "10s", 0, waits("15s")},
		{"the pod's wins over the node's", plan.BackOff{First: time.Second, Max: 2 * time.Second}, own("3s", "4s"), "3s", 0, waits("4s")},
		{"the pod's first wait raises the node's longest", plan.BackOff{Max: 5 * time.Second}, own("20s", ""), "0s", 0, waits("20s")},
		{"the pod's longest wait lowers the node's first", plan.BackOff{First: 10 * time.Second}, own("", "1s"), "0s", 0, waits("1s")},
		{"a lowered maximum counts for one that waits already", plan.BackOff{Max: 30 * time.Second}, nil, "2m40s", 20 * time.Second, waits("10s")},
		{"and starts it if it has waited longer", plan.BackOff{Max: 30 * time.Second}, nil, "2m40s", 31 * time.Second, "start container a#2 after 30s"},
		{"a raised maximum doubles on from where it was", plan.BackOff{}, own("", "1h"), "5m0s", 0, waits("10m0s")},
		{"a raised first wait counts at once", plan.BackOff{First: time.Minute}, nil, "20s", 0, waits("1m0s")},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := pod(v1.RestartPolicyAlways, "a")
			p.Annotations = row.pod
			s := scene{Pod: p, Accepted: true, Here: world(exit("a", 1, 1, row.ago, row.mark))}.Facts()
			s.BackOff = row.node
			if got := decided(t, s); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// What waits says how long, so that a person sees which setting counts.
func TestBackOffIsSaid(t *testing.T) {
	s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(exit("a", 1, 1, 0, "0s"))}.Facts()
	s.BackOff = plan.BackOff{First: 3 * time.Second}
	want := "back-off 3s restarting failed container=a pod=web-n_default(u)"
	if p := plan.Make(s); p.Waiting["a"].Message.String() != want {
		t.Errorf("got %q", p.Waiting["a"].Message)
	}
}

func TestRetriesWaitTwiceAsLongEachTime(t *testing.T) {
	for count, want := range map[int]time.Duration{0: 500 * time.Millisecond, 1: time.Second, 3: 4 * time.Second, 5: plan.RetryMax, 100: plan.RetryMax} {
		if got := plan.RetryAfter(count); got != want {
			t.Errorf("after %d failures: %s, want %s", count, got, want)
		}
	}
}
