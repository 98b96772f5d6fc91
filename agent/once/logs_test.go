package once

import (
	"io"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// inotifies returns how many inotify instances this process has.
func inotifies(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// A user has 128 inotify instances, and a run may have more containers; other runs need some, too.
func TestTheLogsOfARunTakeOneInotifyInstance(t *testing.T) {
	before, p := inotifies(t), newPrinter(io.Discard)
	of := map[string]*stream{"a": {printer: p}, "b": {printer: p}, "c": {printer: p}}
	f := follow(t.Context(), Config{PodLogs: t.TempDir()}, p, map[*v1.Pod]map[string]*stream{{}: of})
	if n := inotifies(t) - before; n != 1 {
		t.Errorf("%d inotify instances, want 1", n)
	}
	if errs := f.finish(); len(errs) > 0 {
		t.Error(errs)
	}
	if n := inotifies(t); n != before {
		t.Errorf("%d inotify instances in the end, %d before", n, before)
	}
}
