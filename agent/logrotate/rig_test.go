package logrotate

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// writers is a runtime of which only the logs are there: each container holds
// its log open, as containerd does, until it is told to reopen it.
type writers struct {
	t    *testing.T
	mu   sync.Mutex
	open map[string]*os.File // by container id
	at   map[string]string   // where the runtime writes to, by container id
	said map[string]string   // where the Rotator is told the log is, if that differs

	reopened int
	busy     int // reopens under way
	together int // the most at a time
	takes    time.Duration
	refuses  error // what Reopen answers
	lost     bool  // it refuses, and has done it all the same
	conmon   bool  // a log is reopened by another, as by CRI-O's conmon, that does not know whether anyone waits
}

func (w *writers) Running(context.Context) ([]Container, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Container
	for id, log := range w.at {
		if w.said[id] != "" {
			log = w.said[id]
		}
		all = append(all, Container{id, log})
	}
	slices.SortFunc(all, func(a, b Container) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func (w *writers) Log(_ context.Context, id string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[id], nil
}

func (w *writers) Reopen(ctx context.Context, id string) error {
	w.mu.Lock()
	w.reopened++
	w.busy++
	w.together = max(w.together, w.busy)
	conmon, refuses := w.conmon, w.refuses
	w.mu.Unlock()
	done := time.After(w.takes)
	if conmon {
		time.AfterFunc(w.takes, func() { w.replace(id) })
		if refuses != nil {
			done = time.After(0)
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if w.refuses != nil && !w.lost {
		return w.refuses
	}
	if conmon {
		return nil
	}
	return cmp.Or(w.start(id), w.refuses)
}

// replace opens a container's log as conmon does: it puts a new one in its place.
func (w *writers) replace(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := os.Create(w.at[id] + ".tmp")
	if err == nil {
		err = os.Rename(f.Name(), w.at[id])
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.open[id].Close()
	w.open[id] = f
}

// start opens a container's log: w.mu is held.
func (w *writers) start(id string) error {
	f, err := os.OpenFile(w.at[id], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if old := w.open[id]; old != nil {
		old.Close()
	}
	w.open[id] = f
	return nil
}

// write writes lines of 100 bytes, numbered from n on.
func (w *writers) write(id string, n, lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range lines {
		if _, err := fmt.Fprintf(w.open[id], "%099d\n", n+k); err != nil {
			w.t.Error(err)
		}
	}
}

// run makes a container that writes to dir/c/0.log.
func (w *writers) run(id, dir string) string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[id] = filepath.Join(dir, id, "0.log")
	if err := os.MkdirAll(filepath.Dir(w.at[id]), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := w.start(id); err != nil {
		w.t.Fatal(err)
	}
	return w.at[id]
}

// refuse sets what Reopen answers from now on.
func (w *writers) refuse(err error, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses, w.lost = err, lost
}

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bench is a Rotator that turns each 10 s and rotates logs of 1000 bytes.
type bench struct {
	*testing.T
	*writers
	dir  string
	log  *lines
	stop func() // the Rotator
}

func (b *bench) start(cfg Config) *Rotator {
	r := New(cfg, b.writers, slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, cancel := context.WithCancel(b.Context())
	var run sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	b.stop = func() { cancel(); run.Wait() }
	synctest.Wait()
	return r
}

func small() Config { return Config{MaxSize: 1000} }

// on runs a test in a bubble; the Rotator is not started.
func on(t *testing.T, test func(*bench)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &writers{t: t, open: map[string]*os.File{}, at: map[string]string{}, said: map[string]string{}}
		b := &bench{T: t, writers: w, dir: dir, log: &lines{}, stop: func() {}}
		test(b)
		b.stop()
		for _, f := range w.open {
			f.Close()
		}
		if t.Failed() {
			t.Log(b.log)
		}
	})
}

// after lets time pass and the Rotator come to rest.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// files returns the names in a folder.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// compressAt compresses a file by its path.
func compressAt(ctx context.Context, path string) error {
	d, err := folderOf(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return compress(ctx, d, filepath.Base(path))
}

// read returns all lines of a log and its former ones, oldest first.
func read(t *testing.T, log string) (lines []string) {
	t.Helper()
	former, err := filepath.Glob(log + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(former, log) {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var in io.Reader = f
		if strings.HasSuffix(path, zipEnd) {
			if in, err = gzip.NewReader(f); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		lines = append(lines, slices.Collect(strings.Lines(string(text)))...)
		f.Close()
	}
	return lines
}

// complete fails unless these are the lines from n on, each once.
func complete(t *testing.T, lines []string, from, to int) {
	t.Helper()
	if len(lines) != to-from {
		t.Errorf("%d lines, want %d", len(lines), to-from)
		return
	}
	for k, line := range lines {
		if line != fmt.Sprintf("%099d\n", from+k) {
			t.Errorf("line %d is %s", from+k, strings.TrimLeft(line, "0"))
			return
		}
	}
}
