package agent

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/gc"
	"monopod/agent/pleg"
	"monopod/agent/status"
	"monopod/agent/worker"
	"monopod/manifests"
)

// The sync loop is healthy while it turns at least every syncOverdue.
const (
	syncTick    = 5 * time.Second
	syncOverdue = time.Minute
)

// syncLoop owns the workers: it starts, wakes and retires them. Its goroutine
// owns all fields but again, known and turned, and does no I/O.
type syncLoop struct {
	shared *worker.Pool
	store  *status.Store
	needs  *gc.ImageNeeds // told of all accepted pods; nil: none
	dir    string         // the manifest folder

	workers  map[manifests.Key]*podWorker
	updates  uint64                                              // sent to workers so far
	restored map[manifests.Key]map[string]*checkpoint.Checkpoint // of previous agents, not yet taken over by a worker
	table    *admission.Table
	order    *startOrder
	facts    chan factsRead // the machine, read again
	reading  bool           // a read of the machine is running
	seen     pleg.Relist
	relisted bool                        // there was a relist
	last     *manifests.Snapshot         // nil before the first
	restarts chan *worker.RestartRequest // restart requests
	empty    chan struct{}               // closed when no pod is desired and none is left
	running  sync.WaitGroup
	wrong    map[string]bool // problems of manifests that have an event
	swept    bool            // status files of unknown pods were removed
	worked   bool            // something happened since the last tick
	grown    bool            // and the memory that it took is not released yet

	born     time.Time
	wake     chan struct{}                   // one slot: settings that affect pods have changed
	known    atomic.Bool                     // the manifests were read, once at least
	desired  atomic.Pointer[map[string]bool] // the names of all desired pods
	arrivals map[manifests.Key]arrival       // when each desired pod was first read
	turned   atomic.Int64                    // last turn of the loop, in ns since born: safe from changes of the clock
}

func newSyncLoop(shared *worker.Pool, store *status.Store, needs *gc.ImageNeeds, dir string, checkpoints []*checkpoint.Checkpoint) *syncLoop {
	shared.States, shared.Born = make(chan worker.State), time.Now()
	l := &syncLoop{shared: shared, store: store, needs: needs, dir: dir,
		wake: make(chan struct{}, 1), table: admission.NewTable(shared.Disk.Machine.Facts, checkpoints), facts: make(chan factsRead),
		workers: map[manifests.Key]*podWorker{}, arrivals: map[manifests.Key]arrival{},
		restored: map[manifests.Key]map[string]*checkpoint.Checkpoint{}, restarts: make(chan *worker.RestartRequest), empty: make(chan struct{})}
	for _, c := range checkpoints {
		if l.restored[c.Key()] == nil {
			l.restored[c.Key()] = map[string]*checkpoint.Checkpoint{}
		}
		l.restored[c.Key()][c.Uid()] = c
	}
	l.hideSecretsOf(checkpoints)
	l.order, l.born, l.table.Fault = newStartOrder(shared.Disk.Machine.Boot, l.table, checkpoints), time.Now(), l.uncounted
	shared.Uids = l.table.Uids
	return l
}

// Run turns until ctx ends, then waits for the workers, which end with it.
func (l *syncLoop) Run(ctx context.Context, snapshots <-chan manifests.Snapshot, w *pleg.Watch) {
	defer l.running.Wait()
	tick := time.NewTicker(syncTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-snapshots:
			l.worked = true
			l.handleSnapshot(ctx, s)
		case seen := <-w.Relists:
			l.handleRelist(ctx, seen)
		case key := <-w.Touched:
			l.worked = true
			if w := l.workers[key]; w != nil {
				w.Wake()
			}
		case r := <-l.restarts:
			l.worked = true
			l.handleRestart(r)
		case <-l.wake:
			l.wakeAll(ctx)
		case now := <-l.shared.States:
			l.handleState(ctx, now)
		case <-l.order.wake.C:
			l.readmit(ctx)
		case f := <-l.facts:
			l.reading = false
			if f.err == nil {
				l.setFacts(ctx, f.Facts)
			}
		case <-tick.C:
			l.refreshFacts(ctx)
			l.freeMemory()
		}
		l.signalEmpty()
		l.turned.Store(int64(time.Since(l.born)))
	}
}

// freeMemory releases the memory that a burst of work took, once it is over: an
// agent is nearly always idle, and its node has better use for the memory.
func (l *syncLoop) freeMemory() {
	if l.worked {
		l.worked, l.grown = false, true
		return
	}
	if l.grown {
		l.grown = false
		l.running.Go(debug.FreeOSMemory) // which collects garbage first
	}
}

// Wake makes all workers look at their pods again. Any goroutine may call it.
func (l *syncLoop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// wakeAll wakes all workers and reads the machine again: what is allocatable may
// have changed.
func (l *syncLoop) wakeAll(ctx context.Context) {
	for _, w := range l.workers {
		w.Wake()
	}
	l.startReadingFacts(ctx)
}

// handleSnapshot gives the workers their desired pods.
func (l *syncLoop) handleSnapshot(ctx context.Context, s manifests.Snapshot) {
	l.last = &s
	l.hideSecrets(s.Pods)
	l.needs.Publish(s.Pods)
	l.needs.SetComplete(s.Complete)
	desired := l.arrived(s.Pods)
	l.releaseUndesired(ctx, desired)
	for _, p := range slices.SortedFunc(slices.Values(l.holdDependents(s.Pods)), admission.ByArrival) {
		l.admit(ctx, p)
	}
	l.readmit(ctx)
	l.removeStrays(ctx)
	l.report(s)
	if s.Read {
		l.known.Store(true)
	}
	if s.Complete && !l.swept {
		l.swept = true
		var keys []string
		for key := range l.workers {
			keys = append(keys, key.String())
		}
		l.store.Sweep(keys)
	}
}

// releaseUndesired retires all pods that are no longer desired.
func (l *syncLoop) releaseUndesired(ctx context.Context, desired map[manifests.Key]bool) {
	for key := range l.table.Entries {
		if desired[key] {
			continue
		}
		l.table.Release(key)
		l.order.forget(key)
		if l.workers[key] == nil && l.restored[key] == nil { // it only waited
			l.table.Remove(key)
			l.store.RemovePod(key.String())
		}
	}
	for key := range l.workers {
		if !desired[key] {
			l.setDesired(ctx, key, nil)
		}
	}
	// The Source knows these from their checkpoints, and that their manifests are gone.
	for _, key := range slices.Collect(maps.Keys(l.restored)) {
		if !desired[key] {
			l.setDesired(ctx, key, nil)
		}
	}
}

// removeStrays retires our pods in the runtime that have neither a manifest nor a
// checkpoint, once all manifests are known.
func (l *syncLoop) removeStrays(ctx context.Context) {
	if l.last == nil || !l.last.Complete {
		return
	}
	for key := range l.seen.Pods {
		held := l.order.held[key] != nil && l.restored[key] != nil // from before the last boot
		if l.workers[key] == nil && !held {
			if l.restored[key] == nil {
				l.shared.Metrics.Stray()
			}
			l.setDesired(ctx, key, nil)
		}
	}
}

// podWorker is the worker of one pod name, with its last update.
type podWorker struct {
	*worker.Worker
	update worker.Update
	ready  bool // the worker reported that the pod of this update is ready
	stop   context.CancelFunc
}

// setDesired gives the worker its desired pod and starts one if there is none.
func (l *syncLoop) setDesired(ctx context.Context, key manifests.Key, p *manifests.Pod) {
	if p != nil {
		l.order.started[key] = p.UID
	}
	w := l.workers[key]
	if w != nil && manifests.Same(w.update.Pod, p) {
		return
	}
	l.updates++
	u := worker.Update{Pod: p, Generation: l.updates}
	if a, known := l.arrivals[key]; known && manifests.Same(a.pod, p) {
		u.Read = a.at
	}
	if w != nil {
		w.update, w.ready = u, false
		w.Update(u)
		return
	}
	known := l.restored[key]
	delete(l.restored, key)
	if known == nil {
		known = map[string]*checkpoint.Checkpoint{}
	}
	own, stop := context.WithCancel(ctx)
	l.workers[key] = &podWorker{update: u, stop: stop, Worker: l.shared.Start(own, &l.running, key, known, u)}
}

// desiredOf returns the desired pod of the worker, nil without a worker.
func (l *syncLoop) desiredOf(key manifests.Key) *manifests.Pod {
	if w := l.workers[key]; w != nil {
		return w.update.Pod
	}
	return nil
}

// handleRelist wakes each worker whose pod differs from what the worker last
// observed: two relists may be equal while the worker observed something between
// them. The first relist after the runtime was away wakes all.
func (l *syncLoop) handleRelist(ctx context.Context, seen pleg.Relist) {
	for key, w := range l.workers {
		if seen.Fresh || w.Observer.Seen.Load() != seen.Pods[key] {
			l.worked = true
			w.Wake()
		}
	}
	l.seen, l.relisted = seen, true
	l.removeStrays(ctx)
	l.setFacts(ctx, l.table.Facts)
}

// handleState records the state that a worker reports. A state of an earlier update
// is ignored.
func (l *syncLoop) handleState(ctx context.Context, now worker.State) {
	w := l.workers[now.Key]
	if w == nil || w.update.Generation != now.Generation {
		return
	}
	if now.Gone {
		l.worked = true
		w.stop()
		delete(l.workers, now.Key)
		delete(l.seen.Pods, now.Key)
		l.table.Remove(now.Key)
	} else {
		w.ready = now.Ready
		l.table.Update(now.Key, now.Cleared, now.Ended)
	}
	l.readmit(ctx)
}
