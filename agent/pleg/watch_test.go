package pleg

import (
	"log/slog"
	"testing"

	"monopod/agent/metrics"
	"monopod/agent/status"
)

// The sync loop drops from a relist what a worker has left behind. All comes with one that differs from
// the one before, also if nobody took it before the next came.
func TestARelistIsTheReceivers(t *testing.T) {
	_, l := wired(t)
	runSandbox(t, l, "a")
	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	w := NewWatch(l.cri, l.marks, store, log)
	w.Metrics = metrics.New(metrics.Config{})
	defer w.Lister.Close()
	relist := func() {
		t.Helper()
		if err := w.relist(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	relist()
	first := <-w.Relists
	if len(first.Pods) != 1 {
		t.Errorf("the first relist has %v", first.Pods)
	}
	clear(first.Pods)
	relist()
	if same := <-w.Relists; same.Pods != nil {
		t.Errorf("one that is as before has %v", same.Pods)
	}
	runSandbox(t, l, "b")
	relist()
	relist()
	if next := <-w.Relists; len(next.Pods) != 2 {
		t.Errorf("one that differs, and nobody took, has become %v", next.Pods)
	}
}
