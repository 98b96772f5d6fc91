package agent

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
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

// What a former instance had in its env stays secret beside its successor.
func TestThePublicNeverLearnsWhatIsInAnEnv(t *testing.T) {
	live(t, func(r *rig) {
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			return "tried OLDSECRET99 and hunter2", 1, nil
		})
		r.want(withSecret("OLDSECRET99"))
		r.after(3 * time.Second)
		r.Fault(critest.On("StopContainer").Times(1).Fail(codes.Unknown, "cannot stop OLDSECRET99"))
		r.want(withSecret("hunter2"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.tells("web-n", "Warning FailedKillPod", "Warning Unhealthy")
		r.wantPublic([]string{"OLDSECRET99", "hunter2"}, "Readiness probe failed: tried <elided> and <elided>", "cannot stop <elided>")
	})
}

// An agent knows the values of the pods that it takes over before the manifests
// are read.
func TestAnotherAgentKnowsWhatIsSecret(t *testing.T) {
	live(t, func(r *rig) {
		r.want(withSecret("hunter2"))
		web := events.About(r.pod("default/web-n"))
		r.stop()
		r.start()
		r.events.Record(web, v1.EventTypeWarning, "Unhealthy", "hunter2 is refused")
		r.wantPublic([]string{"hunter2"}, "Unhealthy: <elided> is refused")
	})
}

// Why a pod is not admitted is told in words, at once.
func TestThePublicLearnsWhyAPodIsRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(strings.Replace(withSecret("hunter2"), "spec:", "spec:\n  nodeSelector: {disk: ssd}", 1))
		r.wantPublic(nil, "NodeAffinity: Predicate NodeAffinity failed")
	})
}

// What is wrong with a file quotes it.
func TestThePublicDoesNotReadManifests(t *testing.T) {
	live(t, func(r *rig) {
		wrong := decode.Problem{File: "/m/web.yaml", Message: "expected a string, got a number (90817263)"}
		r.offers <- manifests.Snapshot{Files: []manifests.File{{Path: wrong.File, Problems: []decode.Problem{wrong}}}}
		r.settle()
		r.tells(wrong.File, "Warning FailedValidation: /m/web.yaml: expected a string")
		r.wantPublic([]string{"90817263", "FailedValidation"})
	})
}

// Nor what is in the Secrets that a pod refers to, before and after a change.
func TestThePublicNeverLearnsWhatIsInASecret(t *testing.T) {
	live(t, func(r *rig) {
		var said atomic.Value
		r.OnExec(func(_ context.Context, c critest.Container, _ []string) (string, int32, error) {
			return said.Load().(string), 1, nil
		})
		said.Store("tried OLDSECRET99")
		pod := refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}], readinessProbe: {periodSeconds: 1, exec: {command: [check]}}")
		r.want(pod, object("Secret", "s", "a: OLDSECRET99"), object("Secret", "t", "a: other4711"))
		r.after(time.Second)
		r.want(pod, object("Secret", "s", "a: hunter2"), object("Secret", "t", "a: other4711"))
		said.Store("tried OLDSECRET99 and hunter2 and other4711")
		r.after(10 * time.Second)
		r.tells("web-n", "Warning Unhealthy")
		r.wantPublic([]string{"OLDSECRET99", "hunter2"}, "Readiness probe failed: tried <elided> and <elided> and other4711")
	})
}
