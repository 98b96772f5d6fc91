package server

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const talkative = `
metadata: {name: a, namespace: b}
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
	for _, words := range []string{"refused because of \\u003celided", "probe said \\u003celided", "cannot run \\u003celided", "wrote \\u003celided\\u003e and abc", `"exitCode":3`} {
		if !strings.Contains(open, words) {
			t.Errorf("TCP does not show %q: %s", words, open)
		}
	}
	_, all, _ := w.ask(t, true, "GET", "/pods")
	if strings.Count(all, "tok-4711") != 5 || !strings.Contains(all, "fish") {
		t.Errorf("the socket shows %s", all)
	}
	if after, _ := json.Marshal(&p); string(after) != string(before) {
		t.Errorf("the store's pod was changed: %s", after)
	}
}
