package status

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"monopod/agent/backoff"
	"monopod/agent/disk"
	"monopod/agent/panics"
	"monopod/agent/wake"
)

const (
	// A file is written when its report has not changed for gather, at the latest gatherMost after
	// the first change: those of a starting pod become one write.
	gather     = 500 * time.Millisecond
	gatherMost = time.Second
	// along is how soon a file must be due to be written along with another.
	along = 100 * time.Millisecond
)

// job is a pending change of one file: written with value, or removed if there is none.
type job struct {
	value any
	fails int       // failed tries
	next  time.Time // not before; zero: at once
	limit time.Time // next may not be put off beyond it
	taken bool      // it is being done
}

// writer writes jobs to disk, one goroutine for all. There is at most one job per file, the
// latest. None is synced: after a power cut reports are made again from the runtime and from
// checkpoints, which are, and a file may be as it was before, or empty, which readers treat as
// missing.
type writer struct {
	dir     string
	log     *slog.Logger
	woken   wake.Slot
	closing chan struct{}
	done    chan struct{}
	logged  map[string]bool // causes logged since writes last worked; the goroutine's own
	encoder encoder         // the goroutine's own

	mu     sync.Mutex // guards what follows
	jobs   map[string]*job
	keep   map[string]bool // files that a sweep leaves; nil: no sweep requested
	closed bool
	ill    error // why a file could not be written last; nil: none waits for another try

	trouble func(error)
}

func startWriter(dir string, log *slog.Logger) *writer {
	w := &writer{
		dir: dir, log: log,
		woken: wake.New(), closing: make(chan struct{}), done: make(chan struct{}),
		trouble: func(error) {}, logged: map[string]bool{}, jobs: map[string]*job{},
	}
	go w.run()
	return w
}

// put sets the job for a file, named relative to the folder: to write value, or to remove the file
// if that is nil. It replaces one that waits; a back-off continues. The file is written when its
// report has not changed for gather.
func (w *writer) put(file string, value any) {
	now := time.Now()
	w.set(file, &job{value: value, next: now.Add(gather), limit: now.Add(gatherMost)})
}

// putBy is put of a report that may wait until limit.
func (w *writer) putBy(file string, value any, limit time.Time) {
	w.set(file, &job{value: value, next: limit, limit: limit})
}

func (w *writer) set(file string, j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	old := w.jobs[file]
	if old != nil && !old.taken && old.limit.Before(j.limit) {
		j.limit = old.limit
	}
	if j.next.After(j.limit) {
		j.next = j.limit
	}
	if old != nil && old.fails > 0 {
		j.fails, j.next = old.fails, old.next
	}
	w.jobs[file] = j
	w.woken.Wake()
}

// sweep requests the removal of all pod files but those in keep.
func (w *writer) sweep(keep map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep = keep
	w.woken.Wake()
}

// pending reports whether a file is not written yet.
func (w *writer) pending(file string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[file] != nil
}

// illness returns why files are older than the reports, nil if they are not.
func (w *writer) illness() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ill
}

func (w *writer) close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		return fmt.Errorf("write status before the end: %w", context.Cause(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.jobs); n > 0 {
		return fmt.Errorf("write status before the end: %d files of %s are not written", n, w.dir)
	}
	return nil
}

func (w *writer) run() {
	defer close(w.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.woken:
		case <-timer.C:
			w.pass(false)
		case <-w.closing:
			w.pass(true)
			return
		}
		timer.Stop()
		if d, ok := w.untilDue(); ok {
			timer.Reset(d)
		}
	}
}

// untilDue returns the time until the next job is due, false if there is none.
func (w *writer) untilDue() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keep != nil {
		return 0, true
	}
	var next time.Time
	for _, j := range w.jobs {
		if next.IsZero() || j.next.Before(next) {
			next = j.next
		}
	}
	return time.Until(next), len(w.jobs) > 0
}

// pass does every job that is due, or every job if all.
func (w *writer) pass(all bool) {
	due := w.due(all)
	for _, file := range slices.Sorted(maps.Keys(due)) {
		w.record(file, due[file], w.do(file, due[file]))
	}
}

// due returns the jobs to do now. They stay in w.jobs until they are done.
func (w *writer) due(all bool) map[string]*job {
	w.addStale()
	w.mu.Lock()
	defer w.mu.Unlock()
	soon, due := time.Now().Add(along), map[string]*job{}
	for file, j := range w.jobs {
		if all || !j.next.After(soon) {
			j.taken, due[file] = true, j
		}
	}
	return due
}

// addStale turns a requested sweep into removals. It reads the folder without the lock; a file
// reported meanwhile has a job by then and stays.
func (w *writer) addStale() {
	w.mu.Lock()
	keep := w.keep
	w.keep = nil
	w.mu.Unlock()
	if keep == nil {
		return
	}
	entries, err := os.ReadDir(filepath.Join(w.dir, "pods"))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.logIll(err)
	}
	for _, e := range entries {
		file := filepath.Join("pods", disk.WithoutAside(e.Name()))
		if strings.HasSuffix(file, ".json") && !keep[file] && w.jobs[file] == nil {
			w.jobs[file] = &job{}
		}
	}
}

// do carries out one job.
func (w *writer) do(file string, j *job) (err error) {
	defer panics.Catch(&err)
	path := filepath.Join(w.dir, file)
	if j.value == nil {
		return disk.Remove(path)
	}
	data, err := w.encoder.encode(j.value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	err = disk.ReplaceUnsynced(path, data, 0o600)
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		err = disk.ReplaceUnsynced(path, data, 0o600) // the folder was removed
	}
	return err
}

// record keeps the result of a job, unless a newer one replaced it: then the newer one inherits
// only the back-off.
func (w *writer) record(file string, j *job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.jobs[file]
	if err == nil {
		if now == j {
			delete(w.jobs, file)
		} else {
			now.fails = 0
		}
		w.logWell()
		return
	}
	now.fails++
	now.taken = false
	now.next = time.Now().Add(backoff.After(now.fails))
	w.logIll(err)
}
