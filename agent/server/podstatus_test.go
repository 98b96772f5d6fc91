package server

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/message"
	"monopod/agent/status"
)

// talkative is a pod that shows a secret in many forms and places.
const talkative = `
metadata: {name: a, namespace: b, annotations: {monopod.problems: '["container f: tok-4711 fails", "a new version waits"]'}}
spec:
  initContainers:
  - {name: i, env: [{name: TOKEN, value: tok-4711}], command: [sh, -c, login]}
  containers:
  - name: f
    args: [--verbose]
    livenessProbe: {exec: {command: [check]}}
    readinessProbe: {httpGet: {path: "/ready?full=1", port: 80, httpHeaders: [{name: Token, value: tok-4711}]}}
    lifecycle: {preStop: {exec: {command: [bye]}}}
  - {name: l, terminationMessagePolicy: FallbackToLogsOnError}
status:
  reason: Evicted
  message: "refused because of tok-4711"
  conditions: [{type: Ready, reason: ContainersNotReady, message: "containers with unready status: [f]: probe said tok-4711"}]
  initContainerStatuses: [{name: i, state: {waiting: {reason: R, message: "cannot run dG9rLTQ3MTE="}}}]
  containerStatuses:
  - name: f
    state: {waiting: {reason: CrashLoopBackOff, message: "back-off 10s restarting failed container=f"}}
    lastState: {terminated: {reason: Error, exitCode: 1, message: "wrote TOK-4711 and 746f6b2d34373131"}}
  - name: l
    state: {running: {}}
    lastState: {terminated: {exitCode: 3, message: "password is fish"}}
`

// secrets are the forms in which it does.
var secrets = []string{"tok-4711", "dG9rLTQ3MTE=", "TOK-4711", "746f6b2d34373131", "fish"}

func TestAStatusShowsOverTCPOnlyWhatTheAgentMadeForAll(t *testing.T) {
	w := serve(t, nil)
	var p v1.Pod
	if err := yaml.Unmarshal([]byte(talkative), &p); err != nil {
		t.Fatal(err)
	}
	public := message.Book{}
	public.Note(message.Of("containers with unready status: [%s]: %s", message.Name("f"), message.Private("probe said tok-4711")))
	public.Note(message.Of("back-off %s restarting failed container=%s", message.Name("10s"), message.Name("f")))
	public.Note(message.Fixed("a new version waits"))
	status.SetPulls(&p, []status.Pull{{Container: "f", Text: "image x cannot be pulled: tok-4711"}})
	before, _ := json.Marshal(&p)
	w.store.SetReport("b/a", status.Report{Pod: &p, Public: public})
	_, open, _ := w.ask(t, false, "GET", "/pods")
	for _, secret := range secrets {
		if strings.Contains(open, secret) {
			t.Errorf("TCP shows %s: %s", secret, open)
		}
	}
	var list v1.PodList
	if err := json.Unmarshal([]byte(open), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s", err, open)
	}
	got := list.Items[0]
	f := got.Status.ContainerStatuses[0]
	for what, row := range map[string][2]string{
		"the pod":          {got.Status.Reason + ": " + got.Status.Message, "Evicted: <elided>"},
		"its condition":    {got.Status.Conditions[0].Message, "containers with unready status: [f]: <elided>"},
		"what waits":       {f.State.Waiting.Message, "back-off 10s restarting failed container=f"},
		"what has ended":   {f.LastTerminationState.Terminated.Message, "<elided>"},
		"its problems":     {got.Annotations[status.AnnProblems], `["\u003celided\u003e","a new version waits"]`},
		"its images":       {got.Annotations[status.AnnPulls], "<elided>"},
		"a command":        {strings.Join(got.Spec.InitContainers[0].Command, " "), "sh -c login"},
		"arguments":        {strings.Join(got.Spec.Containers[0].Args, " "), "--verbose"},
		"a probe's path":   {got.Spec.Containers[0].ReadinessProbe.HTTPGet.Path, "/ready?full=1"},
		"a probe's header": {got.Spec.Containers[0].ReadinessProbe.HTTPGet.HTTPHeaders[0].Value, "<elided>"},
		"a hook's command": {strings.Join(got.Spec.Containers[0].Lifecycle.PreStop.Exec.Command, " "), "bye"},
	} {
		if row[0] != row[1] {
			t.Errorf("%s says %s, want %s", what, row[0], row[1])
		}
	}
	if f.LastTerminationState.Terminated.ExitCode != 1 {
		t.Error("the exit code is left out")
	}
	_, all, _ := w.ask(t, true, "GET", "/pods")
	for _, secret := range secrets {
		if !strings.Contains(all, secret) {
			t.Errorf("the socket does not show %s", secret)
		}
	}
	if after, _ := json.Marshal(&p); string(after) != string(before) {
		t.Errorf("the store's pod was changed: %s", after)
	}
}

// Of what a former agent reported nobody knows how it was made.
func TestAStatusWithoutMarksShowsNoMessage(t *testing.T) {
	w := serve(t, nil)
	var p v1.Pod
	if err := yaml.Unmarshal([]byte(talkative), &p); err != nil {
		t.Fatal(err)
	}
	w.store.SetPod("b/a", &p)
	_, open, _ := w.ask(t, false, "GET", "/pods")
	for _, text := range append(secrets, "back-off 10s", "a new version waits", "containers with") {
		if strings.Contains(open, text) {
			t.Errorf("TCP shows %s: %s", text, open)
		}
	}
	if !strings.Contains(open, "CrashLoopBackOff") {
		t.Errorf("TCP does not show why: %s", open)
	}
}
