package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/podimages"
	"monopod/agent/prepare"
	"monopod/agent/rollout"
	"monopod/agent/shutdown"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// applier makes decisions and carries them out: it takes and frees the room of pods, and owns their
// workers. It belongs to the sync loop's goroutine.
//
// A decision about one pod name is made in three steps: observe fills its record and starts
// nothing; rollout.Decide decides; and carryOut takes or frees the room of the pod, and sends its
// worker what is to run. Then the trial continues as decided (trials.go), and the lock of the
// running version is checked.
type applier struct {
	shared   *worker.Pool
	faults   faults
	pods     *records
	table    *admission.Table
	locks    locks
	exchange exchange
	rules    func() rollout.Rules // the present rules of the gate
	holds    *hold.Store          // the owner's holds and stops
	trials   *trials
	follow   *following
	down     *shutdown.Sequence
	tells    *reporter
	running  *sync.WaitGroup
	ready    *prepare.Shared // prepares next versions

	updates     uint64       // the number of updates sent to workers
	stopsOver   bool         // the record has stops of pods that are no longer stopped
	stopsSaving atomic.Bool  // the record is being written without them
	stopsLeft   atomic.Bool  // that write failed
	unasked     []*podRecord // pods that wait for their turn, before what previous agents reported of them is read
}

// faultAgain is how long after a panic over a name the next decision about it is made.
const faultAgain = time.Minute

// decide decides on a pod name and carries out the decision. After a panic the name keeps what it
// has until the next attempt, after faultAgain.
func (a *applier) decide(ctx context.Context, r *podRecord) {
	was := r.Now
	err := a.faults.ofPod(r.about(), "admit the pod", func() { a.decideOn(ctx, r) })
	if err != nil {
		a.keep(r, message.Private(err.Error()))
	}
	refused, isOther := r.Now.Refused, !r.Now.Refused.Equal(was.Refused)
	if refused != nil && isOther {
		a.pods.tell(r)
	}
	a.tells.stale = a.tells.stale || isOther || !slices.Equal(was.Waits, r.Now.Waits)
	a.tells.turn(r, &was)
	if r.Now.WaitsBy(rollout.ByStartOrder) && r.past == nil {
		r.past = &past{}
		a.unasked = append(a.unasked, r)
	}
}

// keep makes a name keep what it has, because of a panic.
func (a *applier) keep(r *podRecord, why message.Text) {
	now := time.Now()
	a.pods.decided(r, rollout.Stay(&r.Record, why, now, now.Add(faultAgain)))
}

func (a *applier) decideOn(ctx context.Context, r *podRecord) {
	was := lockRecord(&r.Lock)
	a.observe(&r.Record)
	w := a.world()
	d := rollout.Decide(&r.Record, w)
	isInTurn := !d.WaitsBy(rollout.ByStartOrder) // also if there is no room for another version until then
	if d.Takes {
		refused := a.table.Take(d.Run)
		if refused != nil {
			d = rollout.Deny(&r.Record, w, d.Run, refused)
		} else {
			a.trials.reserveAgain(r)
		}
	}
	if r.Offered != nil && r.AwaitsTurn() && !r.IsHalted() && isInTurn {
		a.endWait(r)
	}
	a.carryOut(ctx, &r.Record, d)
	a.trials.goOn(r, &d)
	a.lookForLock(ctx, r, &d)
	a.locks.unsaved = a.locks.unsaved || lockRecord(&r.Lock) != was
	a.pods.decided(r, d)
}

// lookForLock starts a check of the lock of the running version while a change waits, and forgets
// the lock otherwise.
func (a *applier) lookForLock(ctx context.Context, r *podRecord, d *rollout.Decision) {
	if !d.Looks {
		r.Lock = rollout.Lock{}
		return
	}
	a.locks.look(ctx, r, r.Accepted.Pod)
}

// observe updates a record from the table, the owner's requests and the trials.
func (a *applier) observe(r *rollout.Record) {
	a.accepted(r)
	r.Hold, r.Back = a.holds.Of(r.Key.String()), r.Trial.IsBack(r.Offered)
	runs := r.Running()
	if runs == nil {
		r.Lock = rollout.Lock{}
		return
	}
	r.Lock = rollout.LockOf(runs.Pod, r.Lock)
}

// accepted updates the accepted version of a record.
func (a *applier) accepted(r *rollout.Record) {
	r.Accepted = a.table.Admitted(r.Key)
	r.Over = r.Accepted != nil && a.table.Runs(r.Key) == nil
}

// world returns the input of decisions besides the records.
func (a *applier) world() *rollout.World {
	return &rollout.World{
		Now:        a.shared.Disk.Machine.Boot.Now(),
		Names:      a.pods.order.names,
		Ready:      a.isReady,
		Rules:      a.rules(),
		Down:       a.down.On(),
		Terminated: a.down.HaltOf,
		NodeHold:   a.holds.Of(""),
		Policy:     a.shared.Settings().UpdatePolicy,
		StopsFirst: a.shared.StopsFirst,
		Room:       a.table.Room,
		Limits:     a.trials.limitsOf,
		Blind:      a.down.On() || !a.shared.Watch.Up(),
		Late:       a.shared.Watch.Late(),
		Lives:      a.trials.lives,
	}
}

// carryOut carries out a decision.
func (a *applier) carryOut(ctx context.Context, r *rollout.Record, d rollout.Decision) {
	switch {
	case r.Offered != nil:
		a.carryOutOffered(r, &d)
	case r.Gone:
		a.carryOutRemoval(r, &d)
	}
	if !d.Rests {
		a.give(ctx, r, &d)
	}
}

// carryOutOffered carries out what does not concern the worker, for a pod that a manifest gives.
func (a *applier) carryOutOffered(r *rollout.Record, d *rollout.Decision) {
	switch {
	case r.IsHalted() && !r.Stop.Over: // a version that has ended takes no room, and stays
		a.table.Free(r.Key)
	case d.Replaces:
		a.table.TakeOver(r.Offered)
	default:
		a.tellRefusal(r, d)
	}
	if r.Stop != nil && d.Halt.Reason == "" && d.Run != nil {
		a.endStops([]manifests.Key{r.Key})
	}
	if r.Stop != nil && d.Run == nil {
		a.pods.tell(a.pods.of(r.Key))
	}
}

// endWait ends the wait of a version for its turn.
func (a *applier) endWait(r *podRecord) {
	a.tells.turnHasCome(r)
	r.Order.Since, r.past = time.Time{}, nil
	a.pods.markWaiting(r.Key)
}

// carryOutRemoval does the same for a pod that no manifest gives any more.
func (a *applier) carryOutRemoval(r *rollout.Record, d *rollout.Decision) {
	if d.Run != nil {
		a.tells.stale = true
		return
	}
	a.table.Free(r.Key)
	a.pods.forget(a.pods.of(r.Key))
	if r.Stop != nil {
		a.endStops([]manifests.Key{r.Key})
	}
	if d.Rests { // it only waited
		a.table.Remove(r.Key)
		a.tells.store.RemovePod(r.Key.String())
	}
}

// tellRefusal logs and records that a version is refused, or no longer.
func (a *applier) tellRefusal(r *rollout.Record, d *rollout.Decision) {
	was, now := r.Now.Refused, d.Refused
	switch {
	case now != nil && (was == nil || was.Why.Reason != now.Why.Reason || !manifests.Same(was.Of, now.Of)):
		a.shared.Metrics.Rejected(now.Why.Reason)
		if now.Why.LacksCPUs() {
			a.shared.Metrics.NotPinned()
		}
		outcome := "pod not admitted; it waits"
		if d.IsFinal() {
			outcome = "pod not admitted for good; it has failed"
		}
		a.shared.Log.Warn(outcome, "pod", r.Key.String(), "reason", now.Why.Reason, "err", now.Why.Message, "former", d.Run != nil)
		a.recordRefusal(now.Of, now.Why)
	case now == nil && was != nil && d.Takes:
		a.shared.Log.Info("pod admitted after waiting", "pod", r.Key.String())
	}
}

// swap stops pods that wait for each other's room or uids and lack nothing else, so that all of
// them can start, once the disk takes what they need for that.
func (a *applier) swap(ctx context.Context) {
	if len(a.pods.agenda.denied) == 0 {
		return
	}
	var waiting []admission.Waiter
	w := a.world()
	for r := range a.pods.agenda.denied {
		if rollout.MayGiveWay(&r.Record, w) {
			waiting = append(waiting, admission.Waiter{Pod: r.Now.Refused.Of, Why: r.Now.Refused.Why})
		}
	}
	all := a.table.Swaps(waiting)
	if !a.exchange.mayStop(ctx, len(all)) {
		return
	}
	for _, key := range all {
		a.shared.Log.Info("pod stops so that pods that wait for each other's allocations can start", "pod", key.String())
		a.table.Free(key)
		r := a.pods.of(key)
		r.exchanges, r.Between = true, true
		a.pods.mark(key)
		a.tells.stale = true
	}
}

// give sends the worker what is to run, and what is prepared meanwhile.
func (a *applier) give(ctx context.Context, r *rollout.Record, d *rollout.Decision) {
	now := a.pods.of(r.Key)
	was := now.sent
	isBetween := d.Run == nil && r.Offered != nil
	now.exchanges, now.Between = now.exchanges && isBetween, now.Between && isBetween
	a.send(ctx, r.Key, worker.Update{
		Pod:       d.Run,
		Exchanges: now.exchanges,
		Next:      d.Prepare,
		Starts:    d.Prepare != nil && r.IsComing(d.Run),
		Waits:     d.Line(),
		Pull:      pullOf(d),
		Restarts:  d.Restarts,
		Restart:   d.RestartLine(),
		IsBack:    r.Back && manifests.Same(d.Run, r.Offered),
		Kept:      d.CommitLine(),
		Halted:    d.Halt,
	})
	now.Prepared.Final = now.Prepared.Final && d.Final
	if now.task != nil {
		now.task.Look(d.Final)
		now.Lasting = now.Lasting || d.Gated() != "" || d.Refused != nil || now.Prepared.Lasting
	}
	a.tells.waits(now, d, was.Waits)
	a.tells.restartWaits(d, was.Restart)
}

// pullOf returns the pull of the next version's image that is retried; zero: none.
func pullOf(d *rollout.Decision) status.Pull {
	text, next := d.Tries()
	if next.IsZero() {
		return status.Pull{}
	}
	return status.Pull{Text: text, Next: next.UTC()}
}

// prepare starts and ends the preparation of the next version, as last sent to the worker.
func (a *applier) prepare(ctx context.Context, r *podRecord) {
	next := r.sent.Next
	if r.worker == nil {
		a.discardLeft(r)
	}
	if next == nil && r.task == nil || r.task.Is(next) {
		return
	}
	if r.task != nil {
		isTaken := r.task.Is(r.sent.Pod)
		r.task.End(a.running, isTaken)
		if isTaken {
			a.tells.continues(r)
		}
	}
	r.task, r.Prepared, r.told, r.Lasting = nil, prepare.State{}, false, false
	if next != nil {
		r.Lasting = r.worker == nil
		r.task = a.ready.Start(ctx, a.running, r.sent.Pod, next, next.UID != r.sent.Pod.UID || update.Planned(r.sent.Pod, next, a.shared.Settings().UpdatePolicy).Kind == update.Replace)
	}
}

// discardLeft removes what a previous agent prepared of a version that is no longer the next one,
// where the former version runs on.
func (a *applier) discardLeft(r *podRecord) {
	left := a.shared.Disk.Root.NextOf(r.Key)
	if left == nil || r.sent.Pod == nil || r.sent.Next != nil && r.sent.Next.UID == left.Pod.UID {
		return
	}
	if runs := r.Left[string(r.sent.Pod.UID)]; runs == nil || runs.Next || runs.IsRemoving() {
		return
	}
	a.discard(left, r.sent.Pod)
}

// discardUnused removes what was prepared of a version that was allowed to start and was withdrawn
// before its worker had it. The running version is the accepted one.
func (a *applier) discardUnused(r *podRecord) {
	left, runs := a.shared.Disk.Root.NextOf(r.Key), r.sent.Pod
	if left == nil || runs == nil || r.task != nil || left.Uid() == string(runs.UID) && left.Digest == runs.Digest {
		return // in the last case the worker needs it: it removes that version first, and then starts it again
	}
	a.discard(left, runs)
}

func (a *applier) discard(left *checkpoint.Checkpoint, runs *manifests.Pod) {
	a.running.Go(func() { a.ready.Discard(left, string(runs.UID)) })
}

// prepared records the state that a preparation reports.
func (a *applier) prepared(now prepare.Answer) {
	r := a.pods.see(now.State.Of.Key())
	if r.task == now.From {
		r.Prepared = now.State
		r.Prepared.Final = r.Prepared.Final && now.From.Counts(now)
		a.pods.mark(r.Key)
	}
}

// fetched returns the images that were fetched for a version that is sent to its worker; nil: none.
func (r *podRecord) fetched(p *manifests.Pod) *podimages.Ready {
	switch {
	case r.task.Is(p) && r.Prepared.Ready:
		return new(r.Prepared.Images)
	case p != nil && manifests.Same(r.sent.Pod, p):
		return r.sent.Images
	}
	return nil
}

// send sends the worker an update if it differs from the last one, and starts a worker if there is
// none.
func (a *applier) send(ctx context.Context, key manifests.Key, u worker.Update) {
	p, r := u.Pod, a.pods.of(key)
	if p != nil && u.Halted.Reason == "" {
		r.Started = rollout.VersionOf(p)
	}
	if r.worker != nil && p != nil {
		r.file = p.File
	}
	u.Told = r.Trial.Told(p)
	if r.worker != nil && r.sent.Says(&u) {
		return
	}
	a.updates++
	u.Generation = a.updates
	a.tells.stale = a.tells.stale || u.Next != nil || r.sent.Next != nil
	if manifests.Same(r.Offered, p) {
		u.Read = r.Read
	}
	was := r.sent
	u.Images = r.fetched(p)
	if p != nil && r.task.Is(p) && r.Prepared.Ready {
		r.Coming = rollout.VersionOf(p)
	}
	r.sent = u
	a.prepare(ctx, r)
	if r.worker == nil {
		a.startWorker(ctx, r)
		return
	}
	a.setReady(r, r.Seen.Ready && manifests.Same(was.Pod, p) && u.Halted.Reason == "" && (u.Next == nil || r.Lasting))
	r.Seen.Unmade, r.Seen.Idle = false, false
	if !manifests.Same(was.Pod, p) {
		r.Seen.Outdated, r.Seen.Uncommitted = "", ""
	}
	r.worker.Update(u)
}

// startWorker starts the worker of a name with the last update.
func (a *applier) startWorker(ctx context.Context, r *podRecord) {
	known := r.Left
	r.Left, r.Stray = nil, false
	if known == nil {
		known = map[string]*checkpoint.Checkpoint{}
	}
	own, stop := context.WithCancel(ctx)
	r.Seen = rollout.Seen{}
	r.file, r.stop, r.Works = fileOf(r.sent.Pod, known), stop, true
	r.worker = a.shared.Start(own, a.running, r.Key, known, r.sent)
}

// fileOf returns the manifest of a pod, or of what is left of it if p is nil.
func fileOf(p *manifests.Pod, left map[string]*checkpoint.Checkpoint) string {
	if p != nil {
		return p.File
	}
	for _, c := range left {
		return c.File
	}
	return ""
}

// setReady records whether the pod that a worker runs is ready.
func (a *applier) setReady(r *podRecord, ready bool) {
	if r.Seen.Ready != ready {
		r.Seen.Ready = ready
		a.pods.markWaiting(r.Key)
	}
}

// isReady reports whether pods that start after this one may start: the pod that a worker runs
// under this name is ready. While a new version waits, the previous version counts, unless the new
// one is only being pulled or waits for its own turn.
func (a *applier) isReady(key manifests.Key) bool {
	r := a.pods.see(key)
	return r.worker != nil && r.sent.Pod != nil && r.Seen.Ready && !r.AwaitsTurn()
}

// workerGone ends a worker that has no pod and nothing left. From here on the loop reports what
// waits under the name; the worker, which may make another pass before it ends, does not.
func (a *applier) workerGone(r *podRecord) {
	r.stop()
	a.tells.store.RemovePod(r.Key.String())
	a.setReady(r, false)
	r.worker, r.Works, r.sent, r.Seen = nil, false, worker.Update{}, rollout.Seen{}
	a.pods.decided(r, rollout.Decision{Waits: r.Now.Waits, Refused: r.Now.Refused, Again: r.Now.Again}) // the offered version may still wait
	a.table.Remove(r.Key)
	a.tells.stale = a.tells.stale || r.Offered == nil // its file was reported until now
	a.pods.tell(r)                                    // a version that waits is reported by the loop from now on
	a.pods.drop(r.Key)
}

// endStops forgets the stops of pods, also on disk. They end even if the disk does not take that.
func (a *applier) endStops(of []manifests.Key) {
	names := make([]string, 0, len(of))
	for _, key := range of {
		a.pods.see(key).Stop = nil
		a.pods.drop(key)
		a.pods.touch(key)
		names = append(names, key.String())
	}
	a.stopsOver = a.holds.EndStops(names) || a.stopsOver
}

// saveStops writes the record without the ended stops, if it has any: one write at a time.
func (a *applier) saveStops(ctx context.Context) {
	if !a.stopsOver || !a.stopsSaving.CompareAndSwap(false, true) {
		return
	}
	a.stopsOver = false
	a.running.Go(func() {
		const what = "pods that are not stopped any more"
		err := diskWrites{a.shared}.await(ctx, what, func() error { return a.holds.Change(func(*hold.State) {}) })
		a.stopsLeft.Store(err != nil)
		a.stopsSaving.Store(false)
		if a.shared.Faults.IsNew(what, err) {
			a.shared.Log.Error("pods that are not stopped any more are still recorded as such, and the next agent would stop them; it is tried again", "err", err)
		}
	})
}

// offered returns the versions that are offered of the pods of a snapshot.
func (a *applier) offered(s *manifests.Snapshot) []*manifests.Pod {
	out := make([]*manifests.Pod, len(s.Pods))
	for k, p := range s.Pods {
		r := a.pods.of(p.Key())
		r.Given = a.given(r, p)
		out[k] = a.choose(r, s)
	}
	return out
}

// given returns the version of a pod that its manifest gives, with the images that its tags mean:
// those of the version that was tried last, of the former one, or of the one that runs.
func (a *applier) given(r *podRecord, p *manifests.Pod) *manifests.Pod {
	if r.tags == nil && !a.follow.follows(p) {
		return p
	}
	var before []*manifests.Pod
	if t := r.Trial; t != nil {
		before = append(before, t.Tried, t.Former)
	}
	now := r.Record
	a.accepted(&now)
	last, _ := now.Identity()
	before = slices.DeleteFunc(append(before, last), func(p *manifests.Pod) bool { return p == nil })
	return a.follow.given(r, p, before...)
}

// choose returns the offered version of a pod of a snapshot: the one that its manifest gives, or a
// former one in its place. An in-place update of a running pod has the uid of that pod; all others
// have uids that follow from their manifests.
func (a *applier) choose(r *podRecord, s *manifests.Snapshot) *manifests.Pod {
	p := a.trials.choose(r, s)
	out := a.keepUID(p)
	r.Kept = rollout.Kept{}
	if out != p {
		r.Kept = rollout.Kept{Offered: p, Pod: out}
	}
	return out
}

func (a *applier) keepUID(p *manifests.Pod) *manifests.Pod {
	asked := a.pods.see(p.Key()).Record
	a.accepted(&asked)
	return rollout.Identify(&asked, p, a.shared.Settings().UpdatePolicy)
}

// recordRefusal records the event that a pod is not admitted.
func (a *applier) recordRefusal(p *manifests.Pod, r admission.Rejection) {
	a.shared.Events.Record(events.About(p.Pod), v1.EventTypeWarning, r.Reason, r.Message)
}

// isIdle reports whether nothing of a pod runs or will run.
func (a *applier) isIdle(key manifests.Key) bool {
	r := a.pods.see(key)
	return (r.worker == nil || r.Seen.Idle) && r.Left == nil
}
