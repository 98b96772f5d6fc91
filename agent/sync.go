package agent

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/desired"
	"monopod/agent/gc"
	"monopod/agent/hold"
	"monopod/agent/pleg"
	"monopod/agent/shutdown"
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
	order    *admission.StartOrder
	facts    chan factsRead                   // the machine, read again
	reading  bool                             // a read of the machine is running
	pasts    chan []past                      // what previous agents reported of held pods
	previous func(key string) (*v1.Pod, bool) // store.Previous, which reads the disk
	rolled   rollbacks                        // which former versions come back
	due      []manifests.Key                  // names whose next versions may start now
	refused  map[manifests.Key]bool           // refused pods whose status is to be reported
	stale    bool                             // the report of the manifests is to be made again
	seen     pleg.Relist
	relisted bool                        // there was a relist
	last     *manifests.Snapshot         // nil before the first
	restarts chan *worker.RestartRequest // restart requests
	holds    *hold.Store                 // what the owner wants left alone
	halted   map[manifests.Key]*halted
	asked    chan struct{} // one slot: holds has changed
	gates    *hold.Gates
	down     *shutdown.Sequence
	power    <-chan os.Signal // the power fails; nil: no signal says so
	empty    chan struct{}    // closed when no pod is desired and none is left
	running  sync.WaitGroup
	wrong    map[string]bool // problems of manifests that have an event
	swept    bool            // status files of unknown pods were removed

	born    time.Time
	wake    chan struct{} // one slot: settings that affect pods have changed
	known   atomic.Bool   // the manifests were read, once at least
	desired *desired.Pods
	kept    map[manifests.Key]kept // versions that keep the uid of a running pod
	turned  atomic.Int64           // last turn of the loop, in ns since born: safe from changes of the clock
}

func newSyncLoop(shared *worker.Pool, store *status.Store, needs *gc.ImageNeeds, dir string, checkpoints []*checkpoint.Checkpoint) *syncLoop {
	shared.States, shared.Born = make(chan worker.State), time.Now()
	l := &syncLoop{shared: shared, store: store, previous: store.Previous, needs: needs, dir: dir,
		wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), holds: &hold.Store{}, halted: map[manifests.Key]*halted{}, gates: hold.NewGates(shared.Disk.Root.Dir), facts: make(chan factsRead), pasts: make(chan []past),
		refused: map[manifests.Key]bool{},
		workers: map[manifests.Key]*podWorker{}, desired: &desired.Pods{},
		restored: map[manifests.Key]map[string]*checkpoint.Checkpoint{}, restarts: make(chan *worker.RestartRequest), empty: make(chan struct{})}
	for _, c := range checkpoints {
		if l.restored[c.Key()] == nil {
			l.restored[c.Key()] = map[string]*checkpoint.Checkpoint{}
		}
		l.restored[c.Key()][c.Uid()] = c
	}
	l.hideSecretsOf(checkpoints)
	l.born, l.table = time.Now(), admission.NewTable(shared.Disk.Machine.Facts, checkpoints, l.uncounted)
	l.order = admission.NewStartOrder(shared.Disk.Machine.Boot, l.table, admission.World{
		Suffix: shared.Suffix, Desired: l.desired.Has, Ready: l.isReady}, checkpoints)
	l.desired.New, l.down = l.order.Touch, shutdown.New(l.isIdle)
	shared.Uids, l.rolled = l.table.Uids, newRollbacks(shared)
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
			l.handleSnapshot(ctx, s)
		case seen := <-w.Relists:
			l.handleRelist(ctx, seen)
		case key := <-w.Touched:
			if w := l.workers[key]; w != nil {
				w.Wake()
			}
		case r := <-l.restarts:
			l.handleRestart(r)
		case <-l.asked:
			l.handleHolds(ctx)
		case <-l.gates.Timer.C:
			l.gates.Look(ctx, &l.running, true)
			l.gatesChanged(ctx)
			l.gates.Again()
		case found := <-l.gates.Found:
			l.gates.Take(found)
			l.gatesChanged(ctx)
		case <-l.wake:
			l.wakeAll(ctx)
		case down := <-l.down.Orders:
			l.handleShutdown(ctx, down)
		case <-l.power:
			l.handleShutdown(ctx, true)
			l.down.Final = true
		case <-l.down.Timer.C:
		case now := <-l.shared.States:
			l.handleStates(now)
		case <-l.order.Wake.C:
			l.order.TimeoutsPassed(time.Now())
		case all := <-l.pasts:
			l.continueWaits(all)
		case all := <-l.rolled.saved:
			l.handleSavedUpdates(ctx, all)
		case <-l.rolled.Wake.C:
			l.watchUpdates()
		case f := <-l.facts:
			l.takeFacts(f)
		case <-tick.C:
			l.rolled.Tick()
			l.refreshFacts(ctx)
		}
		l.saveUpdates(ctx)
		l.continueShutdown(ctx)
		l.readmit(ctx)
		l.signalEmpty()
		l.turned.Store(int64(time.Since(l.born)))
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
	for key, w := range l.workers {
		if w.Wake(); w.update.Next != nil { // another strategy may count
			l.due = append(l.due, key)
		}
	}
	l.startReadingFacts(ctx)
}

// handleSnapshot gives the workers their desired pods. A pod that has not changed since
// the last snapshot costs a look.
func (l *syncLoop) handleSnapshot(ctx context.Context, s manifests.Snapshot) {
	s = l.chosen(s)
	before := l.last
	s.Pods = l.keepUIDs(s.Pods)
	l.last = &s
	turned := l.replaceObjects(s.Objects)
	changed, gone := l.desired.Take(s.Pods)
	if len(gone) > 0 || s.Complete {
		l.rolled.Forget(l.desired.Has)
	}
	if before == nil || turned || len(changed)+len(gone) > 0 {
		l.publishPods()
	}
	l.needs.SetComplete(s.Complete)
	if before == nil { // the Source knows these from their checkpoints, and that their manifests are gone
		gone = slices.DeleteFunc(slices.Collect(maps.Keys(l.restored)), l.desired.Has)
	}
	l.releaseUndesired(ctx, gone)
	free := l.holdDependents(changed)
	admission.ByArrival(free)
	for _, p := range free {
		l.admit(ctx, p)
	}
	l.stale = l.stale || turned || len(gone) > 0 || before == nil || !before.SameFiles(&s)
	l.readmit(ctx)
	if before == nil || !before.Complete {
		l.removeStrays(ctx)
	}
	if s.Read {
		l.known.Store(true)
	}
	l.sweepOnce()
}

// sweepOnce removes the status files of unknown pods once all manifests are known.
func (l *syncLoop) sweepOnce() {
	if !l.last.Complete || l.swept {
		return
	}
	l.swept = true
	var keys []string
	for key := range l.workers {
		keys = append(keys, key.String())
	}
	for _, d := range l.order.All() { // held pods, whose files may not have been read yet
		keys = append(keys, d.Pod.Key().String())
	}
	l.store.Sweep(keys)
}

// releaseUndesired retires pods that are no longer desired.
func (l *syncLoop) releaseUndesired(ctx context.Context, gone []manifests.Key) {
	l.dropStops(gone)
	for _, key := range gone {
		if l.keepsRemoval(ctx, key) {
			continue
		}
		l.table.Release(key)
		l.order.Forget(key)
		if l.workers[key] != nil || l.restored[key] != nil {
			l.setDesired(ctx, key, nil)
			continue
		}
		l.table.Remove(key) // it only waited
		l.store.RemovePod(key.String())
	}
}

// removeStrays retires our pods in the runtime that have neither a manifest nor a
// checkpoint, once all manifests are known.
func (l *syncLoop) removeStrays(ctx context.Context) {
	if l.last == nil || !l.last.Complete {
		return
	}
	for key := range l.seen.Pods {
		held := l.order.Held(key) != nil && l.restored[key] != nil // from before the last boot
		if l.workers[key] == nil && !held {
			if l.restored[key] == nil {
				l.shared.Metrics.Stray()
			}
			l.setDesired(ctx, key, nil)
		}
	}
}

// handleRelist wakes each worker whose pod differs from what the worker last
// observed: two relists may be equal while the worker observed something between
// them. The first relist after the runtime was away wakes all.
func (l *syncLoop) handleRelist(ctx context.Context, seen pleg.Relist) {
	for key, w := range l.workers {
		if seen.Fresh || w.Observer.Seen.Load() != seen.Pods[key] {
			w.Wake()
		}
	}
	l.seen, l.relisted = seen, true
	l.removeStrays(ctx)
	l.setFacts(l.table.Facts())
}
