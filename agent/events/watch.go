package events

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
)

const watchBuffer = 256 // events that a reader may be behind

// renotify is how often at most a watch gets the repetitions of one event.
const renotify = time.Second

// ErrEnding: the Recorder is ending.
var ErrEnding = errors.New("the agent is ending")

// Watch delivers events as they come. Its methods are for any goroutine.
type Watch struct {
	recorder *Recorder
	view     view
	news     chan record // closed when the Recorder ends, or by it because its reader is too slow
}

// Watch returns the events about a pod, "namespace/name", or about anything if pod is "", and a
// Watch for those that follow. The caller must call its Close, and limits the number of watches.
// They may hold secrets: see WatchPublic.
func (r *Recorder) Watch(pod string) (*List, *Watch, error) { return r.watch(view{pod: pod}) }

// WatchPublic is to Watch as ListPublic is to List.
func (r *Recorder) WatchPublic(pod string) (*List, *Watch, error) { return r.watch(view{pod, true}) }

func (r *Recorder) watch(v view) (*List, *Watch, error) {
	w := &Watch{recorder: r, view: v, news: make(chan record, watchBuffer)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, nil, ErrEnding
	}
	r.watchers[w] = true
	return r.listed(v), w, nil
}

// Next returns the next event, or false when there will be none. It waits until done.
func (w *Watch) Next(done <-chan struct{}) (*v1.Event, bool) {
	select {
	case rec, ok := <-w.news:
		if !ok {
			return nil, false
		}
		return rec.event(w.recorder.config.Node), true
	case <-done:
		return nil, false
	}
}

// Close ends the watch.
func (w *Watch) Close() {
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	w.recorder.end(w)
}

// end ends a watch. r.mu is held.
func (r *Recorder) end(w *Watch) {
	if r.watchers[w] {
		delete(r.watchers, w)
		close(w.news)
	}
}

// notify offers an event to all watches. One that is not read is closed. r.mu is held.
func (r *Recorder) notify(rec *record) {
	for w := range r.watchers {
		if !w.view.has(rec) {
			continue
		}
		select {
		case w.news <- w.view.of(rec):
		default:
			r.end(w)
		}
	}
}

// endWatches ends all present and future watches.
func (r *Recorder) endWatches() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for w := range r.watchers {
		r.end(w)
	}
}
