package server

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
	"monopod/agent/status"
)

// What is held is asked for with each request, for a hold ends by itself.
func TestHeldPodsAndNodesAreShownAsSuch(t *testing.T) {
	held := map[string]message.Text{"default/web": message.Of("held: %s", message.Private("audit")), "": message.Fixed("held")}
	s := &Server{config: Config{Held: func(pod string) message.Text { return held[pod] }}}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"a": "b"}}}
	r := status.Report{Pod: p}
	if got := s.shown(r, false).Annotations[status.AnnHeld]; got != "held: <elided>" {
		t.Errorf("over TCP the pod says %s", got)
	}
	if got := s.shown(r, true).Annotations; got[status.AnnHeld] != "held: audit" || got["a"] != "b" {
		t.Errorf("the pod says %v", got)
	}
	if len(p.Annotations) != 1 {
		t.Errorf("the report itself was changed: %v", p.Annotations)
	}
	n := &v1.Node{}
	if got := s.shownNode(n, nil, true).Annotations[status.AnnHeld]; got != "held" || n.Annotations != nil {
		t.Errorf("the node says %q, the report itself %v", got, n.Annotations)
	}
	clear(held)
	if _, says := s.shown(r, true).Annotations[status.AnnHeld]; says {
		t.Error("a pod is shown as held after its release")
	}
	if _, says := s.shownNode(n, nil, true).Annotations[status.AnnHeld]; says {
		t.Error("a node is shown as held after its release")
	}
}

// Which container has which device is for root.
func TestDevicesAreShownToRootOnly(t *testing.T) {
	n := &v1.Node{}
	status.SetDevices(n, []status.Device{{Resource: "example.com/serial", Device: "/dev/ttyUSB0"}})
	s := &Server{config: Config{Held: func(string) message.Text { return message.Text{} }}}
	for _, local := range []bool{true, false} {
		if got := status.DevicesOf(s.shownNode(n, nil, local)); (len(got) == 1) != local {
			t.Errorf("local %v: shown %v", local, got)
		}
	}
	if len(status.DevicesOf(n)) != 1 {
		t.Error("the report is changed")
	}
}
