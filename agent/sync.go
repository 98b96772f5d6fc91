package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/gc"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/node"
	"monopod/agent/objects"
	"monopod/agent/outlook"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
	"monopod/agent/prepare"
	"monopod/agent/rollout"
	"monopod/agent/shutdown"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/wake"
	"monopod/agent/worker"
	"monopod/manifests"
)

// The sync loop is healthy while it turns at least every syncOverdue.
const (
	syncTick    = 5 * time.Second
	syncOverdue = time.Minute
)

// syncLoop owns the workers: it starts, wakes and ends them. Its goroutine owns all fields but
// given, known and turned, and does no I/O.
type syncLoop struct {
	shared *worker.Pool
	store  *status.Store
	needs  *gc.ImageNeeds // gets all accepted pods; nil: none
	faults faults         // contains panics
	tells  reporter       // reports what is known
	apply  applier        // decides and carries out
	keeps  retention      // keeps the objects that versions need

	pods     records                         // all that is known, by pod name
	given    atomic.Pointer[map[string]bool] // the names of all desired pods
	table    *admission.Table
	came     chan []string                    // full names of images that archives have given
	facts    chan factsRead                   // facts of the machine that were read again
	reading  bool                             // a read of the machine is running
	pasts    chan []pastRead                  // what previous agents reported of waiting pods
	previous func(key string) (*v1.Pod, bool) // store.Previous, which reads the disk
	trials   trials                           // the trials of new versions
	filings  filings                          // saves the trials
	history  histories                        // the versions that were ready
	follow   following                        // the tags that pods follow
	seen     pleg.Relist
	relisted bool                        // a relist was received
	last     *manifests.Snapshot         // nil before the first
	restarts chan *worker.RestartRequest // restart requests
	outlooks chan *outlookRequest        // requests for what manifests would change
	versions chan *versionsRequest       // requests for the versions of a pod
	rollback chan *rollbackRequest       // rollback requests
	holds    *hold.Store                 // the owner's holds and stops
	asked    wake.Slot                   // holds has changed
	down     *shutdown.Sequence
	goesDown bool             // the machine is shutting down already when the loop starts
	power    <-chan os.Signal // signals a power failure; nil: no such signal
	empty    chan struct{}    // closed when no pod is desired and none is left
	running  sync.WaitGroup
	swept    bool // status files of unknown pods were removed
	strays   bool // stray pods are to be looked for: those without manifest and checkpoint

	born      time.Time
	woken     wake.Slot     // settings that affect pods have changed
	known     atomic.Bool   // the manifests were read at least once
	podsKnown chan struct{} // closed once the loop knows what pods there are to be
	turned    atomic.Int64  // last turn of the loop, in ns since born: independent of changes of the clock
}

func newSyncLoop(shared *worker.Pool, store *status.Store, needs *gc.ImageNeeds, dirs []string, checkpoints []*checkpoint.Checkpoint) *syncLoop {
	shared.States, shared.Born = make(chan worker.State), time.Now()
	l := &syncLoop{shared: shared, store: store, previous: store.Previous, needs: needs, faults: faults{shared},
		woken: wake.New(), asked: wake.New(), holds: &hold.Store{}, facts: make(chan factsRead), came: make(chan []string), pasts: make(chan []pastRead),
		restarts: make(chan *worker.RestartRequest), outlooks: make(chan *outlookRequest), versions: make(chan *versionsRequest), rollback: make(chan *rollbackRequest), empty: make(chan struct{}), podsKnown: make(chan struct{})}
	l.pods.agenda = newAgenda()
	l.pods.inherit(checkpoints)
	l.born, l.table = time.Now(), admission.NewTable(shared.Disk.Machine.Facts, checkpoints, l.faults.uncounted)
	l.pods.order = startOrder{names: rollout.Names{Suffix: shared.Suffix, Has: l.pods.offers}, after: map[manifests.Key]map[*podRecord]bool{}}
	l.pods.inheritStarts(shared.Disk.Machine.Boot, l.table.Admitted, checkpoints)
	l.down = shutdown.New(l.apply.isIdle)
	shared.Uids = l.table.Uids
	l.filings = filings{shared: shared, store: store, pods: &l.pods, limits: l.trials.limitsOf, running: &l.running, saved: make(chan []*filing)}
	l.trials = trials{shared: shared, store: store, pods: &l.pods, table: l.table, filings: &l.filings}
	l.trials.inherit()
	l.history = histories{shared: shared, store: store, pods: &l.pods, limits: l.trials.limitsOf, late: shared.Watch.Late, running: &l.running, saved: make(chan []*memory)}
	l.follow = following{shared: shared, store: store, running: &l.running, found: make(chan tagsFound)}
	l.apply = applier{shared: shared, faults: l.faults, pods: &l.pods, table: l.table, holds: l.holds,
		locks:    locks{root: shared.Disk.Root.Dir, disk: diskWrites{shared}, ask: lockFile.look, pods: &l.pods, running: &l.running, found: make(chan looked), saved: make(chan error)},
		exchange: exchange{shared: shared, running: &l.running, found: make(chan error)},
		rules:    func() rollout.Rules { return rollout.Rules{} },
		trials:   &l.trials, follow: &l.follow, down: l.down, tells: &l.tells, running: &l.running}
	l.keeps = retention{shared: shared, pods: &l.pods, table: l.table, running: &l.running, write: shared.Disk.Root.RetainObjects, saved: make(chan error)}
	l.apply.ready = &prepare.Shared{
		Images:     shared.Images,
		Disk:       shared.Disk,
		Devices:    shared.Devices,
		Events:     shared.Events,
		Up:         shared.Watch.Up,
		Network:    shared.Watch.NoNetwork,
		AskNetwork: shared.Watch.AskNetwork,
		Features:   shared.Features,
		Uids:       l.table.Uids,
		Fault:      l.faults.record,
		Log:        shared.Log,
		Answers:    make(chan prepare.Answer),
	}
	l.tells = reporter{dirs: dirs, store: store, events: shared.Events, log: shared.Log, faults: l.faults, pods: &l.pods, limits: l.trials.limitsOf}
	return l
}

// Run runs the loop until ctx ends, then waits for the workers, which end with it.
func (l *syncLoop) Run(ctx context.Context, snapshots <-chan manifests.Snapshot, w *pleg.Watch) {
	defer l.running.Wait()
	if l.goesDown { // before the first manifests would start anything
		l.handleShutdown(true)
	}
	tick := time.NewTicker(syncTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.filings.leave(ctx)
			return
		case s := <-snapshots:
			l.handleSnapshot(s)
		case seen := <-w.Relists:
			l.handleRelist(seen)
		case r := <-l.restarts:
			l.handleRestart(r)
		case q := <-l.outlooks:
			q.answer <- l.apply.outlook(q.asked)
		case q := <-l.versions:
			q.answer <- l.apply.history(q)
		case q := <-l.rollback:
			l.faults.ofLoop("roll back by request", func() { l.handleRollback(q) })
		case <-l.asked:
			l.handleHolds()
		case found := <-l.apply.locks.found:
			l.apply.locks.take(found, l.shared.Disk.Machine.Boot.Now())
		case err := <-l.apply.exchange.found:
			l.apply.exchange.take(err)
		case err := <-l.apply.locks.saved:
			l.handleSavedLocks(err)
		case <-l.woken:
			l.wakeAll(ctx)
		case down := <-l.down.Orders:
			l.handleShutdown(down)
		case <-l.power:
			l.handleShutdown(true)
			l.down.Final = true
		case <-l.down.Timer.C:
		case now := <-l.shared.States:
			l.handleStates(now)
		case now := <-l.pods.agenda.timer.C:
			l.pods.due(now)
		case now := <-l.apply.ready.Answers:
			l.apply.prepared(now)
		case all := <-l.pasts:
			l.continueWaits(all)
		case all := <-l.filings.saved:
			l.faults.ofLoop("take over the saved trials", func() { l.handleSavedTrials(all) })
		case all := <-l.history.saved:
			l.history.wereSaved(all)
		case out := <-l.follow.found:
			l.faults.ofLoop("follow the tags of images", func() { l.handleFound(&out) })
		case err := <-l.keeps.saved:
			l.keeps.wereSaved(err)
		case names := <-l.came:
			l.imagesCame(names)
		case f := <-l.facts:
			l.takeFacts(f)
		case <-l.shared.Devices.Came():
			l.devicesCame()
		case <-tick.C:
			l.tick(ctx)
		}
		l.turn(ctx)
		l.signalEmpty()
		l.turned.Store(int64(time.Since(l.born)))
	}
}

// tick does the periodic work of each syncTick.
func (l *syncLoop) tick(ctx context.Context) {
	l.filings.tick()
	l.history.tick(ctx, l.last != nil && l.last.Complete)
	l.keeps.tick()
	l.apply.locks.tick()
	l.apply.exchange.tick()
	l.apply.stopsOver = l.apply.stopsLeft.Swap(false) || l.apply.stopsOver
	l.refreshFacts(ctx)
	l.faults.ofLoop("follow the tags of images", func() { l.giveAgain(l.follow.tick(ctx)) })
}

// handleFound takes over what tags mean.
func (l *syncLoop) handleFound(out *tagsFound) {
	if l.follow.take(out) {
		l.giveAgain([]*podRecord{out.record})
	}
}

// followAgain has pods follow their tags, or not any more, after the settings have changed.
func (l *syncLoop) followAgain() {
	if l.last == nil {
		return
	}
	var changed []*podRecord
	for _, p := range l.last.Pods {
		r := l.pods.of(p.Key())
		given := l.apply.given(r, p)
		if given != r.Given {
			r.Given = given
			changed = append(changed, r)
		}
	}
	l.giveAgain(changed)
}

// giveAgain chooses the offered versions of pods that are given otherwise: their tags mean other
// images.
func (l *syncLoop) giveAgain(all []*podRecord) {
	for _, r := range all {
		_ = l.faults.ofPod(r.about(), "choose the version", func() { l.chooseAgain(r) })
	}
	if len(all) > 0 {
		l.publishPods()
	}
}

// Wake makes all workers look at their pods again. Any goroutine may call it.
func (l *syncLoop) Wake() { l.woken.Wake() }

// wakeAll wakes all workers and reads the machine again: what is allocatable may
// have changed.
func (l *syncLoop) wakeAll(ctx context.Context) {
	for _, r := range l.pods.working() {
		r.worker.Wake()
	}
	l.gateChanged() // another window or strategy may count
	l.followAgain()
	l.tells.stale = true
	l.startReadingFacts(ctx)
}

// setFacts applies new facts of the node.
func (l *syncLoop) setFacts(f node.Facts) {
	f.StrictGroups, f.RuntimeAsked = l.shared.Watch.StrictGroups()
	l.table.SetFacts(f)
}

// factsRead is the result of reading the machine.
type factsRead struct {
	node.Facts
	err error
}

// refreshFacts reads the machine again while a pod waits for room: it may have grown.
func (l *syncLoop) refreshFacts(ctx context.Context) {
	if l.pods.awaitRoom() {
		l.startReadingFacts(ctx)
	}
}

// takeFacts applies the result of a read of the machine.
func (l *syncLoop) takeFacts(f factsRead) {
	l.reading = false
	if f.err == nil {
		l.setFacts(f.Facts)
	}
}

func (l *syncLoop) startReadingFacts(ctx context.Context) {
	if l.reading {
		return
	}
	l.reading = true
	l.running.Go(func() {
		f, err := l.shared.Disk.Machine.ReadFacts()
		if l.shared.Faults.IsNew("node facts", err) {
			l.shared.Log.Error("node facts not read; the previous values count", "err", err)
		}
		select {
		case l.facts <- factsRead{f, err}:
		case <-ctx.Done():
		}
	})
}

// handleSnapshot records the desired pods. A pod that has not changed since the last snapshot costs
// a comparison.
func (l *syncLoop) handleSnapshot(s manifests.Snapshot) {
	before := l.last
	l.last = &s
	changed, arrived, gone := l.pods.offer(l.apply.offered(&s))
	turned := l.replaceObjects(s.Objects)
	if before == nil || len(arrived)+len(gone) > 0 {
		l.publishNames(arrived, gone)
	}
	if len(gone) > 0 || s.Complete {
		l.trials.forget(s.Complete)
	}
	if before == nil || turned || len(changed)+len(gone) > 0 {
		l.publishPods()
	}
	l.needs.SetComplete(s.Complete)
	if before == nil { // the Source knows these from their checkpoints, and knows that their manifests are gone
		gone = l.pods.forsaken()
	}
	l.dropStops()
	for _, key := range gone {
		l.follow.drop(l.pods.see(key))
		l.pods.mark(key)
	}
	for _, p := range changed {
		l.enter(l.pods.of(p.Key()))
	}
	for _, key := range slices.Concat(arrived, gone) {
		l.pods.renamed(key)
	}
	l.tells.stale = l.tells.stale || turned || len(gone) > 0 || before == nil || !before.SameFiles(&s)
	l.strays = l.strays || before == nil || !before.Complete
	if s.Read {
		l.known.Store(true)
	}
	if before == nil {
		close(l.podsKnown)
	}
}

// offerAgain chooses the offered versions again, of the pods whose trials have a result.
func (l *syncLoop) offerAgain() {
	moved := l.trials.takeMoved()
	if len(moved) == 0 || l.last == nil { // the first snapshot chooses for all
		return
	}
	for _, r := range moved {
		_ = l.faults.ofPod(r.about(), "choose the version", func() { l.chooseAgain(r) })
	}
	l.publishPods()
	l.tells.stale = true
}

func (l *syncLoop) chooseAgain(r *podRecord) {
	if r.Given == nil {
		return
	}
	changed := l.pods.offerOne(r, l.apply.choose(r, l.last))
	if changed {
		l.enter(r)
	}
}

// replaceObjects replaces the objects, and wakes the workers whose pods refer to a changed one. It
// reports whether any object changed.
func (l *syncLoop) replaceObjects(all []*manifests.Object) bool {
	changed := l.keeps.replace(all)
	if len(changed) == 0 {
		return false
	}
	for _, r := range l.pods.working() {
		if p := r.sent.Pod; p != nil && objects.Concern(p.Pod, changed) {
			r.worker.ObjectsChanged()
		}
		if p := r.sent.Next; p != nil && objects.Concern(p.Pod, changed) {
			r.task.Wake()
		}
	}
	return true
}

// imagesCame wakes what waits for one of these images.
func (l *syncLoop) imagesCame(names []string) {
	l.follow.imagesCame(names)
	for _, r := range l.pods.working() {
		if p := r.sent.Pod; p != nil && gc.Concerns(p.Pod, names) {
			r.worker.ImagesCame()
		}
		if p := r.sent.Next; p != nil && gc.Concerns(p.Pod, names) {
			r.task.ImagesCame()
		}
	}
}

// devicesCame lets pods start that wait for devices: some have come or gone.
func (l *syncLoop) devicesCame() {
	l.table.DevicesChanged()
	for _, r := range l.pods.working() {
		if p := r.sent.Pod; p != nil && l.shared.Devices.Concern(p.Pod) {
			r.worker.DevicesCame()
		}
		if p := r.sent.Next; p != nil && l.shared.Devices.Concern(p.Pod) {
			r.task.DevicesCame()
		}
	}
}

// publishNames publishes the names of all desired pods to other goroutines. arrived and gone are
// the changes.
func (l *syncLoop) publishNames(arrived, gone []manifests.Key) {
	names := make(map[string]bool, len(l.last.Pods))
	maps.Copy(names, l.names())
	for _, key := range arrived {
		names[key.String()] = true
	}
	for _, key := range gone {
		delete(names, key.String())
	}
	l.given.Store(&names)
}

// names returns the names of all desired pods. Any goroutine may call it; the result must
// not be changed.
func (l *syncLoop) names() map[string]bool {
	if names := l.given.Load(); names != nil {
		return *names
	}
	return nil
}

// publishPods publishes the desired pods, with the versions that may be restored.
func (l *syncLoop) publishPods() {
	l.faults.ofLoop("publish the pods", func() { l.needs.Publish(slices.Concat(l.last.Pods, l.trials.formers(), l.follow.versions())) })
}

// sweepOnce removes the status files of unknown pods once all manifests are known.
func (l *syncLoop) sweepOnce() {
	if l.last == nil || !l.last.Complete || l.swept {
		return
	}
	l.swept = true
	var keys []string
	for key := range l.pods.working() {
		keys = append(keys, key.String())
	}
	for _, r := range l.pods.dependents() { // waiting pods, whose files may not have been read yet
		keys = append(keys, r.Key.String())
	}
	l.store.Sweep(keys)
}

// markStrays marks our pods in the runtime that have neither a manifest nor a checkpoint, once all
// manifests are known, for removal.
func (l *syncLoop) markStrays() {
	if !l.strays || l.last == nil || !l.last.Complete {
		return
	}
	l.strays = false
	for key := range l.seen.Pods {
		r := l.pods.see(key)
		if r.worker != nil || r.Left != nil { // what is left of a waiting pod is from before the last boot
			continue
		}
		l.shared.Metrics.Stray()
		r = l.pods.of(key)
		r.Stray, r.Gone = true, r.Offered == nil
		l.pods.mark(key)
	}
}

// handleRelist wakes each worker whose pod differs from what the worker last
// observed: two relists may be equal while the worker observed something between
// them. The first relist after the runtime was away wakes all.
func (l *syncLoop) handleRelist(seen pleg.Relist) {
	if seen.Pods == nil {
		seen.Pods = l.seen.Pods
	}
	for key, r := range l.pods.working() {
		if seen.Fresh || r.worker.Observer.Seen.Load() != seen.Pods[key] {
			r.worker.Wake()
		}
		if seen.Fresh && r.task != nil {
			r.task.Wake()
		}
	}
	l.seen, l.relisted, l.strays = seen, true, true
	l.setFacts(l.table.Facts())
}

// handleStates records all states that workers have sent so far, so that the room that several of
// them free is assigned once.
func (l *syncLoop) handleStates(now worker.State) {
	l.handleState(now)
	for range len(l.pods.all) {
		select {
		case now := <-l.shared.States:
			l.handleState(now)
		default:
			return
		}
	}
}

// handleState records the state that a worker reports. A state of an earlier update
// is ignored.
func (l *syncLoop) handleState(now worker.State) {
	r := l.pods.see(now.Key)
	if r.worker == nil || r.sent.Generation != now.Generation {
		return
	}
	if now.Gone {
		delete(l.seen.Pods, now.Key)
		l.apply.workerGone(r)
		return
	}
	if now.OfCommit {
		r.Seen.Uncommitted, l.tells.stale = now.Uncommitted, true
		l.pods.mark(now.Key) // the gate may close before the disk takes it
		return
	}
	r.Seen.Idle = now.Halted || now.Ended
	if r.sent.Halted.Reason == "" {
		isBack := l.trials.saw(r, &now)
		if isBack {
			l.cameBack(r)
		}
		l.history.saw(r)
	}
	r.Seen.Unmade = now.Unmade
	r.sent.Images = nil // the worker has the images
	if r.sent.Next != nil && (now.Unmade || now.Ended) || r.Seen.Outdated != now.Outdated {
		r.Seen.Outdated = now.Outdated
		l.pods.mark(now.Key)
	}
	if now.Cleared && !now.Unmade {
		l.apply.discardUnused(r)
	}
	if now.Ended && r.Stop != nil {
		l.endedWhileStopped(r)
	}
	if now.Cleared {
		l.apply.setReady(r, now.Ready && (r.sent.Next == nil || r.Lasting))
		isCleared := !now.RunsFormer && (r.sent.Halted.Reason == "" || r.Seen.Idle)
		l.table.Update(now.Key, isCleared, now.Ended)
	}
}

// endedWhileStopped records that a pod had ended by itself when its owner stopped it, which was not
// known before. Like any other pod that has ended it stays, takes no room, and needs none to start.
func (l *syncLoop) endedWhileStopped(r *podRecord) {
	was := r.Stop
	if was.Over || was.Version == nil || !manifests.Same(was.Version, r.sent.Pod) || l.table.Take(was.Version) != nil {
		return
	}
	was.Over = true
}

// turn completes the handling of an event: it decides on the marked names, and on those that this
// marks, continues the shutdown, and reports what has changed. It costs nothing if nothing has
// changed.
func (l *syncLoop) turn(ctx context.Context) {
	l.decideAll(ctx)
	l.markStrays()
	l.decideAll(ctx)
	l.sweepOnce()
	for wave := l.down.Next(time.Now()); len(wave) > 0; wave = l.down.Next(time.Now()) {
		for _, key := range wave {
			l.pods.mark(key)
		}
		l.decideAll(ctx)
	}
	l.faults.ofLoop("see which pods wait for each other", func() { l.apply.swap(ctx) })
	l.decideAll(ctx)
	l.startReadingPasts(ctx)
	l.pods.arm(time.Now())
	for _, r := range l.pods.takeTold() {
		l.tells.waiting(r)
	}
	l.keeps.release(ctx)
	l.filings.save(ctx)
	l.apply.locks.save(ctx, l.holds)
	l.apply.saveStops(ctx)
	l.pods.tidy()
	if l.tells.stale && l.last != nil {
		l.tells.stale = false
		l.faults.ofLoop("report the manifests", func() { l.tells.manifests(*l.last) })
	}
}

// decideAll decides on the marked names until none is left, including those that wait for what was
// freed.
func (l *syncLoop) decideAll(ctx context.Context) {
	for {
		l.offerAgain()
		if l.table.TakeFreed() {
			l.pods.markRefused()
		}
		l.pods.findCircles()
		names := l.pods.takeDirty()
		if len(names) == 0 {
			return
		}
		for _, r := range names {
			l.apply.decide(ctx, r)
		}
	}
}

// signalEmpty closes empty once no pod is desired and none is left.
func (l *syncLoop) signalEmpty() {
	if l.last == nil || !l.last.Complete || len(l.last.Pods) > 0 || !l.relisted || !l.pods.isEmpty() || len(l.seen.Pods) > 0 {
		return
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
}

// enter gives a pod of a manifest its place in the start order, and marks it.
func (l *syncLoop) enter(r *podRecord) {
	if !r.IsHalted() {
		l.apply.accepted(&r.Record)
		l.pods.enter(r, l.shared.Settings().UpdatePolicy, time.Now())
	}
	l.pods.mark(r.Key)
}

// pastRead is what a previous agent reported of a pod that waits for its turn.
type pastRead struct {
	key  manifests.Key
	pod  *manifests.Pod
	wait *past   // the loop's
	last *v1.Pod // nil: nothing
}

// startReadingPasts reads what previous agents reported of pods that wait for their turn. Until
// that is known, these pods are not reported: a report would overwrite it.
func (l *syncLoop) startReadingPasts(ctx context.Context) {
	var all []pastRead
	for _, r := range l.apply.unasked {
		if r.past != nil && r.Offered != nil {
			all = append(all, pastRead{key: r.Key, pod: r.Offered, wait: r.past})
		}
	}
	l.apply.unasked = nil
	if len(all) == 0 {
		return
	}
	l.running.Go(func() {
		for k := range all {
			all[k].last, _ = l.previous(all[k].key.String())
		}
		select {
		case l.pasts <- all:
		case <-ctx.Done():
		}
	})
}

// continueWaits lets pods continue the waits that a previous agent of this boot reported.
func (l *syncLoop) continueWaits(all []pastRead) {
	for _, read := range all {
		r := l.pods.see(read.key)
		if r.past != read.wait {
			continue // that wait has ended
		}
		read.wait.known = true
		p := read.last
		if p != nil && p.UID == read.pod.UID && !status.WasRefused(&p.Status) {
			read.wait.last = &p.Status
			since, held := podstatus.WaitsForPodsSince(&p.Status)
			if held && since.After(l.shared.Disk.Machine.Boot.Since) && since.Before(r.Order.Since) {
				r.Order.Since = r.Order.Since.Add(-r.Order.Since.Sub(since)) // on the monotonic clock
			}
		}
		l.pods.mark(read.key)
	}
}

// setHolds loads the record of a previous agent, before the first snapshot.
func (l *syncLoop) setHolds(s *hold.Store, rules func() rollout.Rules, checkpoints []*checkpoint.Checkpoint) {
	l.holds, l.apply.holds, l.apply.rules = s, s, rules
	l.apply.locks.restore(s.State().Locks)
	versions := map[manifests.Key]*manifests.Pod{}
	for _, p := range checkpoint.LastGood(checkpoints) {
		versions[p.Key()] = p
	}
	for name, stop := range s.State().Stopped {
		key := hold.KeyOf(name)
		was := &rollout.Stop{Version: versions[key], Over: l.table.Runs(key) == nil, Starts: stop.Starts}
		l.pods.of(key).Stop = was
		l.pods.touch(key)
		if !was.Over {
			l.table.Free(key) // another pod may have taken its allocation
		}
	}
}

// requests returns the handler of the owner's requests.
func (l *syncLoop) requests(node string) *hold.Requests {
	return &hold.Requests{Store: l.holds, Pods: l.store, Events: l.shared.Events, Log: l.shared.Log, Node: node, Changed: l.holdsChanged,
		Desired: func(key manifests.Key) bool { return l.names()[key.String()] }}
}

// holdsChanged makes the loop read the record of holds again. Any goroutine may call it.
func (l *syncLoop) holdsChanged() { l.asked.Wake() }

// handleHolds stops and starts pods as the record requires.
func (l *syncLoop) handleHolds() {
	now := l.holds.State()
	for name, stop := range now.Stopped {
		key := hold.KeyOf(name)
		r := l.pods.of(key)
		if (r.Offered != nil || r.IsThere()) && (r.Stop == nil || r.Stop.Starts != stop.Starts) {
			if r.Stop == nil {
				r.Stop = &rollout.Stop{Version: cmp.Or(l.pods.running(key), l.table.Admitted(key)), Over: l.table.Runs(key) == nil}
			}
			r.Stop.Starts = stop.Starts
			l.pods.touch(key)
			if !stop.Starts {
				l.pods.forget(r)
			}
			if r.Offered != nil {
				l.enter(r)
			} else { // its removal waits
				l.pods.mark(key)
			}
			l.tells.stale = true
		}
	}
	l.dropStops()
	l.gateChanged()
}

// dropStops forgets the stops of pods of which nothing is left and that certainly no manifest
// gives. The other stops end with the removal of their pods, which may wait.
func (l *syncLoop) dropStops() {
	var over []manifests.Key
	for name := range l.holds.State().Stopped {
		key := hold.KeyOf(name)
		if l.last != nil && l.last.Complete && !l.pods.offers(key) && !l.pods.see(key).IsThere() {
			over = append(over, key)
		}
	}
	l.apply.endStops(over)
}

// gateChanged marks all names that the gate may affect: it may have opened or closed.
func (l *syncLoop) gateChanged() {
	for key, r := range l.pods.all {
		isLeft := r.Offered == nil && r.sent.Pod != nil
		if r.sent.Next != nil || isLeft || r.Seen.Outdated != "" || r.Seen.Uncommitted != "" || !r.Now.Again.IsZero() || r.Now.IsRefusedFor(hold.ReasonHeld) {
			l.pods.mark(key)
		}
	}
}

// handleSavedLocks handles the result of saving since when locks delay changes.
func (l *syncLoop) handleSavedLocks(err error) {
	l.apply.locks.wereSaved(err)
	if l.shared.Faults.IsNew("save since when locks keep changes away", err) {
		l.shared.Log.Error("since when workloads lock their updates is not on disk, for the next agent; it is tried again", "err", err)
	}
}

// Restart restarts a container, or replaces the whole pod if container is empty. It returns when
// the restart is recorded in the checkpoint. Errors are *status.Refusal, or those of ctx and of a
// disk that takes no checkpoint.
func (l *syncLoop) Restart(ctx context.Context, namespace, pod, container string) (*status.Restart, error) {
	r := &worker.RestartRequest{Ctx: ctx, Key: manifests.Key{Namespace: namespace, Name: pod}, Container: container, Answer: make(chan plan.RestartAnswer, 1)}
	select {
	case l.restarts <- r:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-r.Answer:
		return a.Restart, a.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handleRestart passes a restart request to the pod's worker, or refuses it.
func (l *syncLoop) handleRestart(r *worker.RestartRequest) {
	p := l.pods.see(r.Key)
	_, reported := l.store.Pod(r.Key.String())
	switch {
	case p.worker == nil && reported:
		r.Answer <- plan.Declined("nothing of pod %s runs yet: see what it waits for", r.Key)
	case p.worker == nil:
		r.Answer <- plan.Unknown("there is no pod %s", r.Key)
	case p.sent.Pod == nil:
		r.Answer <- plan.Declined("pod %s is being removed", r.Key)
	case p.sent.Halted.Reason != "":
		r.Answer <- plan.Declined("pod %s does not run: %s", r.Key, p.sent.Halted.Message.String())
	default:
		p.worker.RequestRestart(r)
	}
}

// History returns the known versions of a pod. Errors are *status.Refusal, or those of ctx and of
// the disk.
func (l *syncLoop) History(ctx context.Context, key manifests.Key) (*status.History, error) {
	past, err := l.shared.Disk.Root.History(key)
	if err != nil {
		return nil, err
	}
	q := &versionsRequest{key: key, past: past, answer: make(chan []status.PastVersion, 1)}
	select {
	case l.versions <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	all := <-q.answer
	if all == nil {
		return nil, &status.Refusal{Unknown: true, Why: "there is no pod " + key.String()}
	}
	return &status.History{Pod: key.String(), Versions: all}, nil
}

// Rollback replaces the version that the manifest of a pod gives with a former one. It returns when
// that is on disk. Errors are *status.Refusal, or those of ctx and of the disk.
func (l *syncLoop) Rollback(ctx context.Context, key manifests.Key, to, why string) error {
	past, err := l.shared.Disk.Root.History(key)
	if err != nil {
		return err
	}
	q := &rollbackRequest{key: key, past: past, to: to, why: why, answer: make(chan error, 1)}
	select {
	case l.rollback <- q:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-q.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handleRollback starts to record the request, or refuses it.
func (l *syncLoop) handleRollback(q *rollbackRequest) {
	next, err := l.apply.askedBack(q, l.last)
	if err != nil {
		q.answer <- err
		return
	}
	r := l.pods.of(q.key)
	q.before, q.former, r.asked = r.Trial, next.Former, q
	l.shared.Log.Info("a former version is asked for", "pod", q.key.String(), "reason", next.Reason)
	l.trials.set(r, next)
}

// Outlook returns what manifests would change. It returns once the loop has answered.
func (l *syncLoop) Outlook(ctx context.Context, asked *outlook.Asked) (*outlook.Report, error) {
	q := &outlookRequest{asked: asked, answer: make(chan outlookAnswer, 1)}
	select {
	case l.outlooks <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-q.answer:
		return a.report, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handleSavedTrials handles the results of saving trials: versions may start or be restored after
// that.
func (l *syncLoop) handleSavedTrials(all []*filing) {
	for _, f := range all {
		if l.shared.Faults.IsNew("save the update of "+f.Key.String(), f.Err) {
			l.shared.Log.Error("record of an update not saved", "pod", f.Key.String(), "err", f.Err)
			l.tells.stale = true
		}
	}
	l.trials.wereSaved(all)
	for _, f := range all {
		l.trials.answer(f)
		if f.record.back != nil && (f.Err != nil || !f.record.unsaved) {
			l.tellRolledBack(f.record)
		}
	}
}

// cameBack is for a former version that is back. That is told once it is on disk that it is, so that
// the next agent, too, knows whether it was told. It does not wait for a disk that hangs.
func (l *syncLoop) cameBack(r *podRecord) {
	r.back = r.Trial
	if l.filings.saving {
		l.tellRolledBack(r)
	}
}

// tellRolledBack records the event that a former version is back.
func (l *syncLoop) tellRolledBack(r *podRecord) {
	t := r.back
	r.back = nil
	text, kind := t.Event(events.MessageLimit), v1.EventTypeWarning
	if t.Asked != nil {
		kind = v1.EventTypeNormal
		l.shared.Log.Info("update rolled back by request", "pod", r.Key.String(), "reason", text)
	} else {
		l.shared.Log.Warn("update rolled back", "pod", r.Key.String(), "reason", text)
		l.shared.Metrics.RolledBack()
	}
	l.shared.Events.Record(events.About(t.Tried.Pod), kind, update.ReasonRolledBack, message.Private(text))
	l.tells.stale = true
	l.pods.mark(r.Key) // its status contains this, too
}

// handleShutdown stops all pods in order because the machine shuts down, or lets them run again
// because the shutdown was cancelled.
func (l *syncLoop) handleShutdown(down bool) {
	if down == l.down.On() || l.down.Final && !down {
		l.down.Repeat()
		return
	}
	text, said := message.Fixed(shutdown.MessageCancelled), "shutdown cancelled; pods start again"
	if down {
		text, said = message.Fixed(shutdown.MessageShutdown), "the machine goes down; pods stop in order"
	}
	l.shared.Log.Warn(said, "atMost", shutdown.Total(l.down.Periods))
	l.shared.Events.Record(events.NodeRef(l.shared.Disk.Machine.Cfg.NodeName), v1.EventTypeNormal, shutdown.ReasonShutdown, text)
	if down {
		l.down.Begin(l.stoppable())
		return
	}
	l.resume(l.down.Cancel())
	l.trials.interrupt()
}

// stoppable returns the pods that may have a running container.
func (l *syncLoop) stoppable() (all []shutdown.Pod) {
	for key, r := range l.pods.all {
		if r.worker == nil && r.Left == nil {
			continue
		}
		p := shutdown.Pod{Key: key}
		if version := cmp.Or(l.pods.running(key), l.table.Admitted(key)); version != nil {
			p.Priority, p.After = shutdown.PriorityOf(version.Pod), l.pods.order.names.OrderOf(version).After
		}
		all = append(all, p)
	}
	return all
}

// resume lets pods run again in their start order, and marks those that were refused because of the
// shutdown.
func (l *syncLoop) resume(stopped map[manifests.Key]plan.Halt) {
	for key := range stopped {
		l.pods.forget(l.pods.of(key))
	}
	for key := range stopped {
		r := l.pods.see(key)
		if r.Offered != nil {
			l.enter(r)
		} else { // its removal waits
			l.pods.mark(key)
		}
	}
	for r := range l.pods.agenda.denied {
		if r.Now.IsRefusedFor(shutdown.ReasonRefused) {
			l.pods.mark(r.Key)
		}
	}
}

// healthy is the health check of the loop.
func (l *syncLoop) healthy() error {
	if ago := time.Since(l.born) - time.Duration(l.turned.Load()); ago > syncOverdue {
		return fmt.Errorf("the sync loop has not turned for %s", ago.Round(time.Second))
	}
	return nil
}

// lastTurn returns when the loop last turned, by the present wall clock.
func (l *syncLoop) lastTurn() time.Time {
	return time.Now().Add(time.Duration(l.turned.Load()) - time.Since(l.born))
}

// read is the readiness check of the manifests: the folder was listed once, and each readable file
// in it was read. An invalid or unreadable file does not fail the check, as it is reported
// elsewhere and may stay so; a missing or unreadable folder does.
func (l *syncLoop) read() error {
	if !l.known.Load() {
		return errors.New("the manifests have not been read yet")
	}
	return nil
}
