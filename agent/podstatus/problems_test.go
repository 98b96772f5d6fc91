package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
)

func TestTheImagesThatAPodWaitsFor(t *testing.T) {
	s := scene{Pod: withInit(pod(v1.RestartPolicyAlways, "a", "b"), "i"),
		Failures: map[string]plan.Failure{"i": {Image: "img:0: not found", Retry: noon.Add(time.Minute)}, "b": {Waiting: plan.Waiting{Reason: "RunContainerError"}}},
		Fetching: map[string]plan.Pull{"i": {Image: "img:0"}, "a": {Image: "img:1", Since: noon}}}.Facts()
	var got []string
	for _, p := range podstatus.Pulls(&s) {
		got = append(got, fmt.Sprintf("%s: %s, since %v, next %v", p.Container, p.Text, !p.Since.IsZero(), !p.Next.IsZero()))
	}
	want := "i: img:0: not found, since false, next true; a: pulling image \"img:1\", since true, next false"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s", strings.Join(got, "; "))
	}
}

func TestProblems(t *testing.T) {
	failing := func(key, reason string) map[string]plan.Failure {
		return map[string]plan.Failure{key: {Waiting: plan.Waiting{Reason: reason, Message: message.Fixed("no answer")}}}
	}
	says := map[string]probe.Results{"a0": {Failing: [3]string{"", "Liveness probe failed: x", "Readiness probe failed: y"}}}
	probes := func(s *plan.Facts) { s.Probes = says }
	edited := func(s *plan.Facts) { s.Edits = []message.Text{message.Fixed("an edit waits")} }
	oldEnded := func(s *plan.Facts) { s.Known["old"] = s.Known["old"].WithEnd(v1.PodStatus{Phase: v1.PodFailed}) }
	oldUnknown := func(s *plan.Facts) { delete(s.Known, "old") }
	old := func() *pleg.Instance { return world(up("a", 0)) }
	const waits = "a new version waits until this one has stopped"
	for _, row := range []struct {
		name string
		scene
		want string
	}{
		{"none", scene{Here: world(up("a", 0))}, ""},
		{"a former version is still there", scene{Old: old()}, waits},
		{"a former version that has ended is still there", scene{Old: old(), Change: oldEnded}, ""},
		{"a former version without a checkpoint is still there", scene{Old: old(), Change: oldUnknown}, ""},
		{"a pod that is not wanted is still there", scene{Nothing: true, Old: old()}, ""},
		{"the removal of something fails", scene{Failures: failing("remove sandbox s7", "FailedSync")}, "FailedSync: no answer"},
		{"the removal of something fails, and is not worth a word", scene{Failures: failing("remove sandbox s7", "")}, ""},
		{"the removal of a pod that is not wanted fails", scene{Nothing: true, Failures: failing("a", "FailedSync")}, "FailedSync: no answer"},
		{"a container's failure is in its status", scene{Failures: failing("a", "RunContainerError")}, ""},
		{"its objects were edited", scene{Change: edited}, "an edit waits"},
		{"its probes fail", scene{Here: world(up("a", 0)), Change: probes}, "container a: Liveness probe failed: x; container a: Readiness probe failed: y"},
		{"its probes failed while it ran", scene{Here: world(exit("a", 0, 1, 0, "")), Change: probes}, ""},
		{"its probes failed, and it is gone", scene{Here: world(), Change: probes}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.Pod = pod(v1.RestartPolicyAlways, "a")
			s := row.scene.Facts()
			var got []string
			for _, text := range podstatus.Problems(&s) {
				got = append(got, text.String())
			}
			if strings.Join(got, "; ") != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
