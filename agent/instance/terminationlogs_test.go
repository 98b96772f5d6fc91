package instance

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/checkpoint"
)

// A container that crashes many times a minute has no folder swept as often in which
// something stays, and that is said once.
func TestASweepThatFailsIsTriedAgainLaterAndSaidOnce(t *testing.T) {
	root := t.TempDir()
	old := filepath.Join(root, "pods", "u", "containers", "c", "0123abcd")
	stays := func() { // a folder is not removed
		if err := os.MkdirAll(old, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	goes := func() {
		if err := errors.Join(os.Remove(old), os.WriteFile(old, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	stays()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := &Files{Disk: &Disk{Root: &checkpoint.Root{Dir: root}}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 3 {
			if path := f.NewTerminationLog(nil, "u", "c"); path == "" {
				t.Error("the container has no termination log")
			}
			time.Sleep(resweepAfter)
		}
		goes()
		there := func() bool { _, err := os.Stat(old); return err == nil }
		time.Sleep(time.Second)
		f.NewTerminationLog(nil, "u", "c")
		if there() {
			t.Error("it is there after a sweep that had become due")
		}
		if n := strings.Count(log.String(), unremoved); n != 1 {
			t.Errorf("said %d times: %s", n, &log)
		}
		stays()
		f.NewTerminationLog(nil, "u", "c")
		goes()
		f.NewTerminationLog(nil, "u", "c")
		if !there() {
			t.Error("it was swept again within a moment of a sweep that failed")
		}
		time.Sleep(resweepAfter)
		f.NewTerminationLog(nil, "u", "c")
		if there() {
			t.Error("it is there after the time between two sweeps")
		}
		if n := strings.Count(log.String(), unremoved); n != 2 {
			t.Errorf("trouble that was over and has come again is said %d times: %s", n, &log)
		}
	})
}
