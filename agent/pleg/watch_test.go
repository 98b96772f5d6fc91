package pleg

import (
	"log/slog"
	"testing"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
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
	w.Metrics, w.connection = metrics.New(metrics.Config{}), l.cri.Connections()
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

// No relist fails if the runtime restarts between two of them: its version, its features and whether it
// streams events are asked for all the same.
func TestARuntimeThatRestartsBetweenTwoCallsIsAskedAgain(t *testing.T) {
	r := critest.Start(t)
	c, err := cri.Dial(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	w := NewWatch(c, &checkpoint.Marks{Instance: "i"}, store, log)
	w.Metrics, w.Events = metrics.New(metrics.Config{}), events.Open(events.Config{Log: log})
	defer w.Lister.Close()
	look := func() error {
		t.Helper()
		if err := w.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.relist(t.Context())
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	r.SetCRIO("2.1.0", false, "")
	r.Restart()
	c.Reconnect(t.Context())
	if err := w.relist(t.Context()); err == nil {
		t.Error("the relist goes on")
	}
	c.Reconnect(t.Context())
	if err := look(); err != nil {
		t.Error(err)
	}
	if got := w.State(); got.Version != "2.1.0" || !got.Up {
		t.Errorf("the runtime is %+v", got)
	}
}
