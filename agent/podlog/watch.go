package podlog

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
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
	dir  string
	in   *fsnotify.Watcher // nil: none are left
	sees bool              // the folder is watched
}

func startWatch(dir string) *watch {
	w := &watch{dir: dir}
	if in, err := fsnotify.NewWatcher(); err == nil {
		w.in = in
	}
	w.add()
	return w
}

func (w *watch) close() {
	if w.in != nil {
		w.in.Close()
	}
}

// add starts to watch the folder if it exists.
func (w *watch) add() {
	if w.in != nil && !w.sees {
		w.sees = w.in.Add(w.dir) == nil
	}
}

// errors delivers lost notifications.
func (w *watch) errors() <-chan error {
	if w.in == nil {
		return nil
	}
	return w.in.Errors
}

func (w *watch) events() <-chan fsnotify.Event {
	if w.in == nil {
		return nil
	}
	return w.in.Events
}

// next waits for a change, at most until the timer fires or ended is closed. look is whether names
// may have changed, timely whether the time passed.
func (w *watch) next(ctx context.Context, d time.Duration, ended <-chan struct{}) (look, timely bool) {
	w.add()
	if !w.sees {
		d = min(d, blindEvery)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case e := <-w.events():
		look = w.note(e)
	case <-w.errors():
		look = true
	case <-timer.C:
		return true, true
	case <-ended:
		return true, false
	case <-ctx.Done():
		return true, false
	}
	timer.Reset(gatherIn)
	for {
		select {
		case e := <-w.events():
			look = w.note(e) || look
		case <-w.errors():
			look = true
		case <-timer.C:
			return look, false
		case <-ended:
			return true, false
		case <-ctx.Done():
			return true, false
		}
	}
}

// note reports whether a change may be one of names.
func (w *watch) note(e fsnotify.Event) bool {
	if e.Name == w.dir && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)) {
		w.sees = false
		w.in.Remove(w.dir)
	}
	return !e.Has(fsnotify.Write) && !e.Has(fsnotify.Chmod)
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
