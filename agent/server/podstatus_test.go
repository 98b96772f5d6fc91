package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/events"
)

const talkative = `
metadata: {name: a, namespace: b, annotations: {monopod.problems: '["probe of tok-4711 fails"]'}}
spec:
  initContainers:
  - {name: i, env: [{name: TOKEN, value: tok-4711}]}
  containers:
  - {name: f, env: [{name: SHORT, value: abc}]}
  - {name: l, terminationMessagePolicy: FallbackToLogsOnError}
status:
  message: "refused because of tok-4711"
  conditions: [{type: Ready, message: "probe said tok-4711"}]
  initContainerStatuses: [{name: i, state: {waiting: {reason: R, message: "cannot run tok-4711"}}}]
  containerStatuses:
  - name: f
    state: {terminated: {exitCode: 1, message: "wrote tok-4711 and abc"}}
  - name: l
    state: {running: {}}
    lastState: {terminated: {exitCode: 3, message: "password is fish"}}
`

func TestAStatusDoesNotTellOverTCPWhatTheSpecHides(t *testing.T) {
	w := serve(t, nil)
	var p v1.Pod
	if err := yaml.Unmarshal([]byte(talkative), &p); err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(&p)
	w.store.SetPod("b/a", &p)
	_, open, _ := w.ask(t, false, "GET", "/pods")
	for _, secret := range []string{"tok-4711", "fish"} {
		if strings.Contains(open, secret) {
			t.Errorf("TCP shows %s: %s", secret, open)
		}
	}
	for _, words := range []string{"refused because of \\u003celided", "probe said \\u003celided", "cannot run \\u003celided", "probe of \\u003celided", "wrote \\u003celided\\u003e and abc", `"exitCode":3`} {
		if !strings.Contains(open, words) {
			t.Errorf("TCP does not show %q: %s", words, open)
		}
	}
	_, all, _ := w.ask(t, true, "GET", "/pods")
	if strings.Count(all, "tok-4711") != 6 || !strings.Contains(all, "fish") {
		t.Errorf("the socket shows %s", all)
	}
	if after, _ := json.Marshal(&p); string(after) != string(before) {
		t.Errorf("the store's pod was changed: %s", after)
	}
}

// A uid may stay when the env changes, and a text may be cut within a value or
// quote it.
func TestAStatusHidesFormerValuesInAllForms(t *testing.T) {
	r := events.Open(events.Config{Node: "n", Log: slog.New(slog.DiscardHandler)})
	w := serve(t, func(c *Config) { c.Events = r })
	env := func(value string) *v1.Pod {
		p := pod("a")
		p.UID = "u"
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: value}}
		return p
	}
	former, now := env("OLDSECRET99"), env("pa\"ss\\word9\n")
	now.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app",
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Message: fmt.Sprintf("cannot run %q", `x pa"ss\word9`)}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Message: "ECRET99 is refused, not OLDSEC"}},
	}}
	r.Know([]*v1.Pod{former})
	r.Know([]*v1.Pod{now})
	w.store.SetPod("default/a", now)
	_, open, _ := w.ask(t, false, "GET", "/pods")
	var list v1.PodList
	if err := json.Unmarshal([]byte(open), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s", err, open)
	}
	c := list.Items[0].Status.ContainerStatuses[0]
	if got, want := c.State.Waiting.Message, `cannot run "x <elided>"`; got != want {
		t.Errorf("it waits because of %s, want %s", got, want)
	}
	if got, want := c.LastTerminationState.Terminated.Message, "<elided> is refused, not <elided>"; got != want {
		t.Errorf("it ended with %s, want %s", got, want)
	}
}
