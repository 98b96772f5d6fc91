package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// public returns what anybody may read of what happened, in short.
func (r *rig) public() []string {
	var out []string
	r.events.ListPublic("").Each(func(e *v1.Event) bool {
		out = append(out, e.Reason+": "+e.Message)
		return true
	})
	return out
}

// wantPublic checks that the public learns these things, and none of the secrets.
func (r *rig) wantPublic(secrets []string, want ...string) {
	r.Helper()
	all := strings.Join(r.public(), "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			r.Errorf("the public does not learn %q:\n%s", w, all)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(all, secret) {
			r.Errorf("the public learns %q:\n%s", secret, all)
		}
	}
}

// withSecret is a pod whose probe, and whoever fails at it, quotes its env.
func withSecret(value string) string {
	return strings.Replace(manifest("web", "img:1", "terminationGracePeriodSeconds: 1"), `image: "img:1"`,
		fmt.Sprintf(`image: "img:1", env: [{name: PASSWORD, value: %q}], readinessProbe: {periodSeconds: 1, exec: {command: [check]}}`, value), 1)
}

// Only root reads what a probe or the runtime says, whatever it is that they quote:
// this version's values, those of the version before, or one in another form.
func TestThePublicReadsNoWordsOfOthers(t *testing.T) {
	live(t, func(r *rig) {
		secrets := []string{"OLDSECRET99", "hunter2", "HUNTER2", "aHVudGVyMg==", "471"}
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			return "tried " + strings.Join(secrets, " and "), 1, nil
		})
		r.want(withSecret("OLDSECRET99"))
		r.after(3 * time.Second)
		r.Fault(critest.On("StopContainer").Times(1).Fail(codes.Unknown, "cannot stop OLDSECRET99"))
		r.want(withSecret("hunter2"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.tells("web-n", "Warning FailedKillPod", "Warning Unhealthy")
		r.wantPublic(secrets, "Unhealthy: Readiness probe failed: <elided>", "FailedKillPod: error killing pod: <elided>", "Started: Container started")
	})
}

// Why a pod is not admitted is told in words, at once.
func TestThePublicLearnsWhyAPodIsRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(strings.Replace(withSecret("hunter2"), "spec:", "spec:\n  nodeSelector: {disk: ssd}", 1))
		r.wantPublic(nil, "NodeAffinity: Predicate NodeAffinity failed")
		for _, of := range r.store.Reports() {
			if got := of.Public.Public(of.Pod.Status.Message); !strings.HasPrefix(got, "Pod was rejected: Predicate NodeAffinity failed") {
				r.Errorf("of the status the public reads %q", got)
			}
		}
	})
}

// What is wrong with a file quotes it.
func TestThePublicDoesNotReadManifests(t *testing.T) {
	live(t, func(r *rig) {
		wrong := decode.Problem{File: "/m/web.yaml", Message: "expected a string, got a number (90817263)"}
		r.offers <- manifests.Snapshot{Files: []*manifests.File{{Path: wrong.File, Problems: []decode.Problem{wrong}}}}
		r.settle()
		r.tells(wrong.File, "Warning FailedValidation: /m/web.yaml: expected a string")
		r.wantPublic([]string{"90817263", "FailedValidation"})
	})
}

// Nor what is in the Secrets that a pod refers to: the container has the first value until it
// restarts, however often it was changed since, or removed.
func TestThePublicNeverLearnsWhatIsInASecret(t *testing.T) {
	live(t, func(r *rig) {
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			return "tried OLDSECRET99", 1, nil
		})
		pod := refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a, optional: true}}}], readinessProbe: {periodSeconds: 1, exec: {command: [check]}}")
		for _, value := range []string{"OLDSECRET99", "second", "third"} {
			r.want(pod, object("Secret", "s", "a: "+value))
			r.after(10 * time.Second)
		}
		r.want(pod)
		r.after(10 * time.Second)
		r.tells("web-n", "Warning Unhealthy")
		r.wantPublic([]string{"OLDSECRET99"}, "Readiness probe failed: <elided>")
	})
}

// What anybody may read of a status was made by the agent, for anybody.
func TestThePublicReadsOfAStatusWhatTheAgentSays(t *testing.T) {
	live(t, func(r *rig) {
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			return "tried hunter2", 1, nil
		})
		r.want(withSecret("hunter2"))
		r.after(10 * time.Second)
		var said []string
		for _, of := range r.store.Reports() {
			for _, c := range of.Pod.Status.Conditions {
				said = append(said, of.Public.Public(c.Message))
			}
			for _, line := range status.ProblemsOf(of.Pod) {
				said = append(said, of.Public.Public(line))
			}
		}
		all := strings.Join(said, "\n")
		for _, want := range []string{"containers with unready status: [c]: <elided>", "container c: <elided>"} {
			if !strings.Contains(all, want) {
				r.Errorf("the public does not read %q:\n%s", want, all)
			}
		}
		if strings.Contains(all, "hunter2") {
			r.Errorf("the public reads a value:\n%s", all)
		}
	})
}
