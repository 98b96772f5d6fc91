package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
)

const day = 24 * time.Hour

// A clock that jumps changes neither what is planned, but for a back-off that
// may be over early or begin again, nor times that were reported.
func TestAClockThatJumpsByADay(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	for _, row := range []struct {
		name string
		scene
		want, forth, back string // the plans now, a day later and a day earlier
	}{
		{"a pod that runs", scene{Pod: pod(always, "a"), Accepted: true, Here: world(up("a", 0))}, "", "", ""},
		{"a first crash", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 0, 1, 0, ""))},
			"start container a#1 after 0s", "start container a#1 after 0s", "start container a#1 after 0s"},
		{"a crash loop", scene{Pod: pod(always, "a"), Accepted: true, Here: world(exit("a", 5, 1, time.Minute, "2m40s"))},
			"|a waits: CrashLoopBackOff|wake in 4m0s", "start container a#6 after 5m0s", "|a waits: CrashLoopBackOff|wake in 5m0s"},
		{"an init container's crash loop", scene{Pod: withInit(pod(onFailure, "a"), "i"), Accepted: true, Here: world(exit("i", 1, 1, time.Second, "0s"))},
			"|i waits: CrashLoopBackOff|wake in 9s", "start container i#2 after 10s", "|i waits: CrashLoopBackOff|wake in 10s"},
		{"a job that is done", scene{Pod: pod(never, "a"), Accepted: true, Ended: v1.PodSucceeded, Here: dead(world(exit("a", 0, 0, time.Minute, "")))}, "", "", ""},
		{"a dead sandbox", scene{Pod: pod(always, "a"), Accepted: true, Here: dead(world(exit("a", 1, 255, time.Minute, "0s")))},
			"stop sandbox s0; set up; create sandbox#1; start container a#2 after 0s", "stop sandbox s0; set up; create sandbox#1; start container a#2 after 0s", "stop sandbox s0; set up; create sandbox#1; start container a#2 after 0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for jump, want := range map[time.Duration]string{0: row.want, day: row.forth, -day: row.back} {
				s := row.scene.Facts()
				s.Now = noon.Add(jump)
				p := plan.Make(s)
				if !p.Wake.IsZero() {
					if wait := p.Wake.Sub(s.Now); wait <= 0 || wait > plan.BackOffMax {
						t.Errorf("%s: waits %s", jump, wait)
					}
					p.Wake = p.Wake.Add(-jump) // told counts from noon
				}
				if got := told(p); got != want {
					t.Errorf("%s\n got  %s\n want %s", jump, got, want)
				}
				keepsTimes(t, row.scene, s)
			}
		})
	}
}

// keepsTimes checks that what was reported at noon is reported unchanged, and
// without a former report that the pod began when its checkpoint says so.
func keepsTimes(t *testing.T, c scene, s plan.Facts) {
	t.Helper()
	then := c.Facts()
	before := podstatus.PodStatus(&then, new(plan.Make(then)), &podspec.Host{}, nil)
	after := podstatus.PodStatus(&s, new(plan.Make(s)), &podspec.Host{}, &before)
	if !after.StartTime.Equal(before.StartTime) {
		t.Errorf("it started at %s, and now at %s", before.StartTime, after.StartTime)
	}
	when := func(st v1.PodStatus) (times []string) {
		for _, x := range st.Conditions {
			times = append(times, fmt.Sprint(x.Type, x.Status, x.LastTransitionTime))
		}
		return times
	}
	if !slices.Equal(when(before), when(after)) {
		t.Errorf("conditions %v, and now %v", when(before), when(after))
	}
	fresh := podstatus.PodStatus(&s, new(plan.Make(s)), &podspec.Host{}, nil)
	if accepted := (metav1.Time{Time: noon}); !fresh.StartTime.Equal(&accepted) {
		t.Errorf("without a report it started at %s", fresh.StartTime)
	}
}
