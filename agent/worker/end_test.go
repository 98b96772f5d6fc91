package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/instance"
	"monopod/agent/plan/plantest"
	"monopod/agent/status"
)

// The next attempt is not chosen by what a link leads to.
func TestAttemptsAreNotCountedBehindLinks(t *testing.T) {
	outside, podLogs := t.TempDir(), t.TempDir()
	write := func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) }
	if err := errors.Join(write(filepath.Join(outside, "41.log")), os.MkdirAll(filepath.Join(podLogs, "ns_web_a", "c"), 0o755),
		write(filepath.Join(podLogs, "ns_web_a", "c", "1.log")), os.Symlink(outside, filepath.Join(podLogs, "ns_web_a", "d"))); err != nil {
		t.Fatal(err)
	}
	w := idleWorker(t, &instance.Disk{PodLogs: podLogs}, nil)
	p := plantest.Pod(v1.RestartPolicyAlways, "c", "d")
	p.UID = "a"
	s := plantest.Scene{Pod: p}.Facts()
	next := w.NextAttempts(&s)
	if next["c"] != 2 || next["d"] != 0 {
		t.Errorf("next %v", next)
	}
}

// The loop may report another version under the name by now, and a version that was to follow may
// have been taken back after its former had gone.
func TestAWorkerThatHasNothingLeavesReportsAloneAndTakesWhatWasPrepared(t *testing.T) {
	bubble(t, func(r *rig) {
		p := r.web("img:1")
		r.pod.shared.Store.SetReport(p.Key().String(), status.Report{Pod: p.Pod})
		if err := r.root.SaveNext(checkpoint.NewCheckpoint(p, metav1.Now())); err != nil {
			r.Fatal(err)
		}
		r.passes(Update{Generation: 1})
		if !r.last().Gone {
			r.Error("it is not gone")
		}
		if _, there := r.pod.shared.Store.Pod(p.Key().String()); !there {
			r.Error("it removed what the loop reports")
		}
		if next := r.root.NextOf(p.Key()); next != nil || r.root.HasNext(string(p.UID)) {
			r.Errorf("the version %s, which was to follow, is known", next.Digest)
		}
		if _, err := os.Stat(r.root.PodDir(string(p.UID))); !errors.Is(err, fs.ErrNotExist) {
			r.Errorf("its folder is left: %v", err)
		}
	})
}
