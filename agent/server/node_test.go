package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
)

func TestTheNodeAndWhatItUsesAreForAll(t *testing.T) {
	w := serve(t, func(c *Config) {
		page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })
		c.Handlers = []Handler{{Path: "/stats/summary", Handler: page}}
	})
	for _, local := range []bool{true, false} {
		if code, _, _ := w.ask(t, local, "GET", "/node"); code != http.StatusServiceUnavailable {
			t.Errorf("before the first report: %d", code)
		}
	}
	w.store.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, local := range []bool{true, false} {
		code, body, _ := w.ask(t, local, "GET", "/node")
		var n v1.Node
		if err := json.Unmarshal([]byte(body), &n); err != nil || code != 200 || n.Name != "n1" {
			t.Errorf("%d %s: %v", code, body, err)
		}
		if code, body, _ := w.ask(t, local, "GET", "/stats/summary?a=b"); code != 200 || body != "a=b" {
			t.Errorf("a page: %d %s", code, body)
		}
		if code, _, _ := w.ask(t, local, "GET", "/metrics/resource"); code != 404 {
			t.Errorf("a page that nobody serves: %d", code)
		}
	}
}

// What the runtime says of itself is for root, what the agent says of the node for all.
func TestTheWordsOfTheRuntimeStayOnTheSocket(t *testing.T) {
	w := serve(t, nil)
	public := message.Book{}
	n := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{
		{Type: v1.NodeMemoryPressure, Message: public.Note(message.Fixed("memory is there"))},
		{Type: v1.NodeReady, Message: public.Note(message.Of("the runtime is down: %s", message.Private("fish")))},
		{Type: "Other", Message: public.Note(message.Private("fish"))}}}}
	w.store.SetNodeReport(n, public)
	for local, want := range map[bool]string{true: "memory is there; the runtime is down: fish; fish", false: "memory is there; the runtime is down: <elided>; <elided>"} {
		_, body, _ := w.ask(t, local, "GET", "/node")
		var got v1.Node
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, c := range got.Status.Conditions {
			said = append(said, c.Message)
		}
		if got := strings.Join(said, "; "); got != want {
			t.Errorf("on the socket %t: %s, want %s", local, got, want)
		}
	}
}

// What tells one machine from all others is for root: on the machine itself only
// root may read most of it.
func TestTheMachinesIdentityStaysOnTheSocket(t *testing.T) {
	w := serve(t, nil)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.NodeInfo = v1.NodeSystemInfo{MachineID: "m-7", SystemUUID: "u-7", KernelVersion: "6.1"}
	w.store.SetNode(n)
	for local, want := range map[bool]v1.NodeSystemInfo{true: n.Status.NodeInfo, false: {KernelVersion: "6.1"}} {
		_, body, _ := w.ask(t, local, "GET", "/node")
		var got v1.Node
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Status.NodeInfo != want {
			t.Errorf("on the socket %t: %v %+v", local, err, got.Status.NodeInfo)
		}
	}
	if w.store.Node().Status.NodeInfo.MachineID != "m-7" {
		t.Error("the report itself has lost it")
	}
}
