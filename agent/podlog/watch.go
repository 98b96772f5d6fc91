package podlog

import (
	"context"
	"path/filepath"
	"time"

	"monopod/agent/wake"
)

const (
	// gatherIn is how long single lines are gathered.
	gatherIn = 10 * time.Millisecond
	// blindEvery is how often the folder is checked without notifications: it does not exist yet,
	// or the machine has no more inotify watches.
	blindEvery = 100 * time.Millisecond
)

// watch notifies of changes in a folder, as far as the kernel does.
type watch struct {
	dir   string
	with  *Watcher
	own   bool      // with is of this watch alone
	woken wake.Slot // something has changed

	sees bool // the folder is watched; guarded by with.mu, as is look
	look bool // names may have changed since next returned
}

// startWatch watches a folder with a Watcher; nil: one of its own.
func startWatch(dir string, with *Watcher) *watch {
	w := &watch{dir: filepath.Clean(dir), with: with, own: with == nil, woken: wake.New()}
	if w.own {
		w.with = NewWatcher()
	}
	w.with.add(w)
	return w
}

func (w *watch) close() {
	w.with.drop(w)
	if w.own {
		w.with.Close()
	}
}

// note records a change, which may be one of names. with.mu is held.
func (w *watch) note(look bool) {
	w.look = w.look || look
	w.woken.Wake()
}

// taken returns, once, whether names may have changed.
func (w *watch) taken() (look bool) {
	w.with.mu.Lock()
	defer w.with.mu.Unlock()
	look, w.look = w.look, false
	return look
}

// next waits for a change, at most until the timer fires or ended is closed. look is whether names
// may have changed, timely whether the time passed.
func (w *watch) next(ctx context.Context, d time.Duration, ended <-chan struct{}) (look, timely bool) {
	if !w.with.add(w) {
		d = min(d, blindEvery)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
		return true, true
	case <-ended:
		return true, false
	case <-ctx.Done():
		return true, false
	}
	timer.Reset(gatherIn)
	select {
	case <-timer.C:
		return w.taken(), false
	case <-ended:
		return true, false
	case <-ctx.Done():
		return true, false
	}
}

// wait waits for more. An incomplete line that does not continue is shown as far as it exists.
func (r *reader) wait(ctx context.Context) (look bool, err error) {
	if err := r.idle(); err != nil {
		return false, err
	}
	d := pollEvery
	if !r.leaveAt.IsZero() {
		d = min(d, max(time.Until(r.leaveAt), time.Millisecond))
	}
	look, timely := r.watch.next(ctx, d, r.o.Ended)
	select {
	case <-r.o.Ended:
		r.ended = true
	default:
	}
	if timely && r.leaveAt.IsZero() {
		return look, r.join.flush()
	}
	return look || !r.leaveAt.IsZero(), nil
}
