package server

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/status"
)

// What one client on TCP costs is counted in allocations, which are the same on
// every machine: the forms of thirty values are thousands.
func TestAPodsValuesArePreparedOnceForAllRequests(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(context.Background())
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", "web-n", "u"
	p.Spec.Containers = []v1.Container{{Name: "main"}}
	for k := range 30 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, v1.EnvVar{Name: fmt.Sprint("E", k), Value: fmt.Sprintf("secret %d!", k)})
	}
	p.Status.Message = "it said secret 7!"
	for _, known := range []bool{true, false} {
		r := events.Open(events.Config{Log: log})
		if known {
			r.Know([]*v1.Pod{p})
		}
		s := &Server{config: Config{Store: store, Events: r, Log: log}}
		n := testing.AllocsPerRun(10, func() {
			if got := s.shown(p.DeepCopy(), false).Status.Message; got != "it said <elided>" {
				t.Fatalf("it says %q", got)
			}
		})
		if n > 200 {
			t.Errorf("known %t: a request allocates %.0f times", known, n)
		}
	}
}
