package worker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/instance"
	"monopod/agent/plan/plantest"
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
	s := plantest.Scene{Pod: p}.Situation()
	next := w.NextAttempts(&s)
	if next["c"] != 2 || next["d"] != 0 {
		t.Errorf("next %v", next)
	}
}
