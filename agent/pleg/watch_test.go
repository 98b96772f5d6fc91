package pleg

import (
	"log/slog"
	"testing"

	"monopod/agent/metrics"
	"monopod/agent/status"
)

// The sync loop drops from a relist what a worker has left behind.
func TestARelistIsTheReceivers(t *testing.T) {
	_, l := wired(t)
	runSandbox(t, l, "a")
	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	w := NewWatch(l.cri, "i", store, log)
	w.Metrics = metrics.New(metrics.Config{})
	defer w.Lister.Close()
	for k := range 3 {
		if err := w.relist(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-w.Relists
		if len(got.Pods) != 1 {
			t.Errorf("relist %d has %d pods", k, len(got.Pods))
		}
		clear(got.Pods)
	}
}
