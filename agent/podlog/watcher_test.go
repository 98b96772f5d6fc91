package podlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// inotifies returns how many inotify instances this process has.
func inotifies(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", f.Name()))
		if strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// A user has 128 inotify instances, and may have more containers to follow.
func TestManyLogsAreFollowedWithOneInotifyInstance(t *testing.T) {
	const many = 40
	before, with := inotifies(t), NewWatcher()
	ctx, stop := context.WithCancelCause(t.Context())
	got, idle := make(chan string, many), make(chan struct{}, many)
	var group sync.WaitGroup
	var dirs []string
	for k := range many {
		dir := filepath.Join(folder(t, nil), "container") // it comes later
		if k%2 > 0 {
			dir = folder(t, map[string]string{"0.log": ""})
		}
		dirs = append(dirs, dir)
		isIdle := sync.OnceFunc(func() { idle <- struct{}{} })
		o := Options{Follow: true, Watcher: with, Idle: func() error { isIdle(); return nil }}
		group.Go(func() {
			_ = Read(ctx, dir, o, func(l Line) error { got <- string(l.Text); return nil })
		})
	}
	for range many {
		<-idle
	}
	if n := inotifies(t) - before; n != 1 {
		t.Errorf("%d inotify instances for %d logs, want 1", n, many)
	}
	for k, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "0.log"), entryOf(k, Stdout, "F", fmt.Sprint(k)))
	}
	seen := map[string]bool{}
	for range many {
		seen[<-got] = true
	}
	if len(seen) != many {
		t.Errorf("%d of %d logs were read", len(seen), many)
	}
	stop(errors.New("the test ends"))
	group.Wait()
	if len(with.all) > 0 {
		t.Errorf("%d folders are still watched", len(with.all))
	}
	with.Close()
	if n := inotifies(t); n != before {
		t.Errorf("%d inotify instances in the end, %d before", n, before)
	}
}
