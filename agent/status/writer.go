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
	"syscall"
	"time"

	"monopod/agent/panics"
	"monopod/agent/safefile"
	"monopod/agent/statefile"
)

const (
	// gather is the time in which the changes of a starting pod become one write.
	gather = 500 * time.Millisecond
	// A file that cannot be written is tried again after retryMin, then at
	// doubled intervals up to retryMax.
	retryMin = time.Second
	retryMax = time.Minute
)

// job is a pending change of one file: written with value, or removed if there is
// none.
type job struct {
	value any
	minor bool      // a power cut may undo it: it costs no fsync
	fails int       // tries that went wrong
	next  time.Time // not before; zero: at once
}

// writer brings jobs to disk, one goroutine for all. There is at most one job
// per file, the latest.
type writer struct {
	dir     string
	log     *slog.Logger
	wake    chan struct{} // one slot
	closing chan struct{}
	done    chan struct{}
	said    map[string]bool // causes logged since writes last worked; the goroutine's own

	mu     sync.Mutex // guards what follows
	jobs   map[string]*job
	keep   map[string]bool // files that a sweep leaves; nil: no sweep requested
	closed bool
	ill    error // why a file could not be written last; nil: none waits for another try

	trouble func(error)
	fsync   func(*os.File) error // those of tests count
}

func startWriter(dir string, log *slog.Logger) *writer {
	w := &writer{
		dir: dir, log: log,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		trouble: func(error) {}, said: map[string]bool{}, jobs: map[string]*job{}, fsync: (*os.File).Sync,
	}
	go w.run()
	return w
}

// put sets the job for a file, named relative to the folder. It takes the
// place of one that waits; a back-off goes on.
func (w *writer) put(file string, j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if old := w.jobs[file]; old != nil {
		j.fails, j.next, j.minor = old.fails, old.next, j.minor && old.minor
	}
	w.jobs[file] = j
	w.signal()
}

// sweep asks for the removal of all pod files but those in keep.
func (w *writer) sweep(keep map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep = keep
	w.signal()
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pending reports whether a file is not written yet.
func (w *writer) pending(file string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[file] != nil
}

// illness returns why files are behind what is reported, nil if they are not.
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
	retry := time.NewTimer(0)
	retry.Stop()
	for {
		select {
		case <-w.wake:
		case <-retry.C:
		case <-w.closing:
			w.pass(true)
			return
		}
		select {
		case <-time.After(gather):
		case <-w.closing:
		}
		w.pass(false)
		if d, ok := w.untilRetry(); ok {
			retry.Reset(d)
		}
	}
}

// untilRetry returns the time until the next job that waits for another try.
func (w *writer) untilRetry() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	errs := map[string]error{}
	dirs := map[string]error{}
	for _, file := range slices.Sorted(maps.Keys(due)) {
		errs[file] = w.do(file, due[file])
		if !due[file].minor {
			dirs[filepath.Dir(filepath.Join(w.dir, file))] = nil
		}
	}
	// One fsync per folder and pass: each stalls every other one on the disk,
	// the runtime's included.
	for dir := range dirs {
		dirs[dir] = syncDir(dir, w.fsync)
	}
	for file, j := range due {
		w.record(file, j, errors.Join(errs[file], dirs[filepath.Dir(filepath.Join(w.dir, file))]))
	}
}

// due returns the jobs to do now. They stay in w.jobs until they are done.
func (w *writer) due(all bool) map[string]*job {
	w.addStale()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	due := maps.Clone(w.jobs)
	if !all {
		maps.DeleteFunc(due, func(_ string, j *job) bool { return j.next.After(now) })
	}
	return due
}

// addStale turns a sweep that was asked for into removals. It reads the folder
// without the lock; a file reported meanwhile has a job by then and stays.
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
		w.sayIll(err)
	}
	for _, e := range entries {
		file := filepath.Join("pods", safefile.WithoutAside(e.Name()))
		if strings.HasSuffix(file, ".json") && !keep[file] && w.jobs[file] == nil {
			w.jobs[file] = &job{}
		}
	}
}

// do carries out one job but for the fsync of the folder.
func (w *writer) do(file string, j *job) (err error) {
	defer panics.Catch(&err)
	path := filepath.Join(w.dir, file)
	if j.value == nil {
		return statefile.Remove(path)
	}
	data, err := encode(j.value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	fsync := w.fsync
	if j.minor {
		fsync = func(*os.File) error { return nil }
	}
	err = replaceFile(path, data, 0o600, fsync)
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		err = replaceFile(path, data, 0o600, fsync) // the folder was removed
	}
	return err
}

// record keeps the result of a job, unless a newer one replaced it: then the
// newer one inherits only the back-off.
func (w *writer) record(file string, j *job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.jobs[file]
	if err == nil {
		if now == j {
			delete(w.jobs, file)
		} else {
			now.fails, now.next = 0, time.Time{}
		}
		w.sayWell()
		return
	}
	now.fails++
	now.next = time.Now().Add(min(retryMin<<min(now.fails-1, 10), retryMax))
	w.sayIll(err)
}

// sayIll logs an error unless its cause is known.
func (w *writer) sayIll(err error) {
	w.ill = err
	cause := err.Error()
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		cause = errno.Error()
	}
	if w.said[cause] {
		return
	}
	w.said[cause] = true
	w.log.Warn("status cannot be written; trying again", panics.Logged(err)...)
	w.trouble(err)
}

// sayWell logs once that no file waits for another try any more.
func (w *writer) sayWell() {
	for _, j := range w.jobs {
		if j.fails > 0 {
			return
		}
	}
	w.ill = nil
	if len(w.said) > 0 {
		clear(w.said)
		w.log.Info("status is written again")
	}
}
