package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"monopod/agent/status"
	"monopod/manifests"
)

// The sync loop is healthy while it turns at least this often.
const (
	syncTick    = 10 * time.Second
	syncOverdue = time.Minute
)

// syncLoop owns the workers: it starts, wakes and retires them. Its goroutine
// owns all fields but turned, and does no I/O.
type syncLoop struct {
	shared *workers
	store  *status.Store
	dir    string
	log    *slog.Logger

	workers map[manifests.Key]*worker
	wishes  map[manifests.Key]*manifests.Pod // what each worker was told last
	stop    map[manifests.Key]context.CancelFunc
	left    map[manifests.Key]map[string]*checkpoint // of former agents, not yet taken over by a worker
	seen    sighting
	last    *manifests.Snapshot // nil before the first
	done    chan *worker
	running sync.WaitGroup
	said    map[string]bool // problems that are in the log

	turned atomic.Int64 // when the loop turned last, unix ns
}

func newSyncLoop(shared *workers, store *status.Store, dir string, checkpoints []*checkpoint, log *slog.Logger) *syncLoop {
	l := &syncLoop{shared: shared, store: store, dir: dir, log: log,
		workers: map[manifests.Key]*worker{}, wishes: map[manifests.Key]*manifests.Pod{}, stop: map[manifests.Key]context.CancelFunc{},
		left: map[manifests.Key]map[string]*checkpoint{}, said: map[string]bool{}, done: make(chan *worker)}
	for _, c := range checkpoints {
		if l.left[c.key()] == nil {
			l.left[c.key()] = map[string]*checkpoint{}
		}
		l.left[c.key()][c.uid()] = c
	}
	l.turned.Store(time.Now().UnixNano())
	return l
}

// Run turns until ctx ends, then waits for the workers, which end with it.
func (l *syncLoop) Run(ctx context.Context, snapshots <-chan manifests.Snapshot, w *watch) {
	defer l.running.Wait()
	tick := time.NewTicker(syncTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-snapshots:
			l.snapshot(ctx, s)
		case seen := <-w.sightings:
			l.sighted(ctx, seen)
		case key := <-w.touched:
			if w := l.workers[key]; w != nil {
				w.poke()
			}
		case w := <-l.done:
			l.finished(w)
		case <-tick.C:
		}
		l.turned.Store(time.Now().UnixNano())
	}
}

// healthy is the endpoint's check of the loop.
func (l *syncLoop) healthy() error {
	if ago := time.Since(time.Unix(0, l.turned.Load())); ago > syncOverdue {
		return fmt.Errorf("the sync loop has not turned for %s", ago.Round(time.Second))
	}
	return nil
}

// snapshot makes the workers what the manifests say.
func (l *syncLoop) snapshot(ctx context.Context, s manifests.Snapshot) {
	l.last = &s
	wanted := map[manifests.Key]bool{}
	for _, p := range s.Pods {
		wanted[p.Key()] = true
		l.wish(ctx, p.Key(), p)
	}
	for key := range l.workers {
		if !wanted[key] {
			l.wish(ctx, key, nil)
		}
	}
	// The Source knew these from their checkpoints, and knows that they are gone.
	for _, key := range slices.Collect(maps.Keys(l.left)) {
		l.wish(ctx, key, nil)
	}
	l.strays(ctx)
	l.report(s)
}

// strays retires pods of ours in the runtime that neither a manifest nor a
// checkpoint tells of, once it is sure that no manifest does.
func (l *syncLoop) strays(ctx context.Context) {
	if l.last == nil || !l.last.Complete {
		return
	}
	for key := range l.seen.Pods {
		if l.workers[key] == nil {
			l.wish(ctx, key, nil)
		}
	}
}

// wish tells the pod's worker what the pod shall be, starting one if there is none.
func (l *syncLoop) wish(ctx context.Context, key manifests.Key, p *manifests.Pod) {
	w := l.workers[key]
	if w == nil {
		known := l.left[key]
		delete(l.left, key)
		if known == nil {
			known = map[string]*checkpoint{}
		}
		own, stop := context.WithCancel(ctx)
		l.stop[key], l.wishes[key] = stop, p
		l.workers[key] = l.shared.startWorker(own, &l.running, key, known, p, l.done)
		return
	}
	if old := l.wishes[key]; same(old, p) {
		return
	}
	l.wishes[key] = p
	w.offer(p)
}

// same reports whether two wishes are one: nothing, or the same content under
// the same uid.
func same(a, b *manifests.Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.UID == b.UID
}

// sighted wakes the workers of pods that look different from last time. After
// the runtime was away it wakes all.
func (l *syncLoop) sighted(ctx context.Context, seen sighting) {
	for key, w := range l.workers {
		if seen.Fresh || l.seen.Pods[key] != seen.Pods[key] {
			w.poke()
		}
	}
	l.seen = seen
	l.strays(ctx)
}

// finished lets a worker go whose pod is gone, unless it was wished for again.
func (l *syncLoop) finished(w *worker) {
	if l.workers[w.key] != w || l.wishes[w.key] != nil {
		return
	}
	l.stop[w.key]()
	delete(l.workers, w.key)
	delete(l.wishes, w.key)
	delete(l.stop, w.key)
	delete(l.seen.Pods, w.key)
}

// report hands what became of the manifests to the store, and each problem to
// the log once.
func (l *syncLoop) report(s manifests.Snapshot) {
	said := map[string]bool{}
	say := func(p manifests.Problem, held bool) {
		text := p.Error()
		said[text] = true
		switch {
		case l.said[text]:
		case p.Warning:
			l.log.Warn("manifest", "problem", text)
		default:
			l.log.Error("manifest is refused", "problem", text, "lastGoodVersionRuns", held)
		}
	}
	m := status.Manifests{Dir: l.dir}
	for _, p := range s.Problems {
		say(p, false)
		m.Problems = append(m.Problems, status.Problem(p))
	}
	for _, f := range s.Files {
		out := status.File{Path: f.Path, Pods: f.Pods, Held: f.Held}
		for _, p := range f.Problems {
			say(p, f.Held)
			out.Problems = append(out.Problems, status.Problem(p))
		}
		m.Files = append(m.Files, out)
	}
	l.said = said
	l.store.SetManifests(m)
}
