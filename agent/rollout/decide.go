package rollout

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/shutdown"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// World is the input of a decision besides the record of the name. Its funcs change nothing.
type World struct {
	Now        checkpoint.Moment                         // compared with Decision.Again; windows use the wall clock
	Rules      Rules                                     // of the gate
	Names      Names                                     // of all pods
	Ready      func(manifests.Key) bool                  // whether pods that start after this one may start
	Down       bool                                      // the machine shuts down
	Terminated func(manifests.Key) (plan.Halt, bool)     // how the shutdown halts a pod once it has ordered that pod to stop
	NodeHold   *hold.Hold                                // of the whole node: no new pod starts; nil: none
	Policy     string                                    // the update policy, see update.Planned
	StopsFirst func(*v1.Pod) bool                        // the running version stops before the next one is prepared
	Room       func(*manifests.Pod) *admission.Rejection // why the node has no room for it beside all other pods; nil: it has room
	Limits     func(*manifests.Pod) update.Limits        // what a version on trial must meet
	Blind      bool                                      // see Sight
	Late       time.Duration                             // see Sight
	Lives      func(*manifests.Pod) bool                 // see Sight
}

// StoppedWhy is the reported reason of a pod that its owner stopped.
var StoppedWhy = plan.Waiting{Reason: status.ReasonStopped, Message: message.Fixed("stopped by request; `monopod start` runs it again")}

// Decide makes the decision about a pod name. It changes nothing.
func Decide(r *Record, w *World) Decision {
	return decide(r, w).completed(r, w)
}

// completed adds what applies to every decision.
func (d Decision) completed(r *Record, w *World) Decision {
	return d.terminated(r, w).restartsFor(r, w).committedBy(r, w).goesOn(r, w)
}

// decide selects the version that runs. The first rule that applies decides: the owner's requests,
// the start order, changes that restart nothing, and then the two classes of rules: those about
// changing what runs (see gate and keepsFormer), and those about starting anything (mayStart).
func decide(r *Record, w *World) Decision {
	why, waits, until := r.turn(w)
	switch {
	case r.Offered == nil && !r.Gone:
		return unread(r)
	case r.Offered == nil:
		return remove(r, w)
	case r.IsHalted():
		return halted(r, ByOwner, StoppedWhy)
	case waits:
		return inTurn(r, why, until, w)
	case r.awaitsVerdict(w):
		d := Decision{Keeps: true}
		r.waitBeside(&d, w)
		return d
	case r.isInPlace(w):
		return Decision{Run: r.Offered, Replaces: true}
	}
	return choose(r, w)
}

// terminated halts a pod that the shutdown has ordered to stop. A pod that its owner stopped stays
// stopped, and a removal goes on.
func (d Decision) terminated(r *Record, w *World) Decision {
	h, is := w.Terminated(r.Key)
	if !is {
		return d
	}
	if d.Rests && r.isLeft() {
		d.Rests, d.Run = false, r.Accepted
	}
	if d.Run != nil && (d.Halt.Reason == "" || d.Halt.Terminated) {
		d.Halt, d.Prepare, d.Final = h, nil, false
		d.waits(ByShutdown, h.Message)
	}
	return d
}

// goesOn continues the trial of the name. It does not affect what runs: a failed version is
// replaced once the verdict is on disk, or the time for saving it is over, and then another version
// is offered.
func (d Decision) goesOn(r *Record, w *World) Decision {
	t := r.Trial
	switch {
	case d.Removes && d.Run == nil:
		t = nil
	case d.Halt.Reason != "":
		t = t.Halted()
	case d.Removes && t.IsOn(): // the manifest may come back while the removal waits; until then there is nothing to offer
		d.Trial = t.Interrupted()
		return d
	case r.Offered != nil && manifests.Same(d.Run, r.Offered):
		t = t.Started(r.Offered, w.Limits(r.Offered), w.Policy)
	}
	if t == nil || t.Tried == nil {
		d.Trial = t
		return d
	}
	if r.IsPrepared() && r.isFit(t, w) {
		d.Trial, d.Outcome = t, Fit
		return d
	}
	var again time.Time
	d.Trial, d.Outcome, again = t.Look(Sight{Now: w.Now.Wall, Limits: w.Limits(t.Tried), Blind: w.Blind, Late: w.Late,
		Lives: func() bool { return r.Accepted == nil || w.Lives(r.Accepted) }})
	if !again.IsZero() {
		d.lookAgain(again)
	}
	return d
}

// isFit reports whether the version that still runs has worked since it was found that it had not,
// so that it can be rolled back to. That is asked once its successor is prepared, as another trial
// offers that again.
func (r *Record) isFit(t *Trial, w *World) bool {
	runs := r.Running()
	return t.Unfit && !t.Worked && t.isTried(r.Offered) && runs != nil && runs.Digest == t.Former.Digest &&
		r.Proof.Holds(runs, w.Now.Wall, w.Limits(t.Tried).Stable+w.Late)
}

// awaitsVerdict reports whether the accepted version has ended on trial, before that has a result,
// while another one is offered. That one would start in its place and end the trial; but if it failed,
// the former version comes first.
func (r *Record) awaitsVerdict(w *World) bool {
	t := r.Trial
	return r.Over && t.awaitsVerdict(r.Accepted) && !t.isTried(r.Offered) && w.Limits(t.Tried).Within > 0
}

// unread keeps a pod for which it is not known yet whether a manifest gives it.
func unread(r *Record) Decision {
	if !r.Works {
		return Decision{Rests: true}
	}
	return Decision{Run: r.Accepted}
}

// restartsFor decides whether containers of the running version may restart for changed config.
func (d Decision) restartsFor(r *Record, w *World) Decision {
	runs := r.Running()
	if r.Seen.Outdated == "" || runs == nil || !manifests.Same(d.Run, runs) || d.Halt.Reason != "" {
		return d
	}
	g := r.ofRestart(w)
	d.Outdated, d.Restarts, d.RestartWaits = r.Seen.Outdated, g.isOpen(), g.waits
	d.asks(g, r)
	return d
}

// committedBy keeps the running version from being replaced by one that was let start before the gate
// closed, and that the disk did not take until then.
func (d Decision) committedBy(r *Record, w *World) Decision {
	if r.Seen.Uncommitted == "" || r.Back || d.Run == nil || !manifests.Same(d.Run, r.Running()) {
		return d
	}
	g := r.ofRemoval(w)
	d.CommitWaits = g.waits
	if !g.again.IsZero() {
		d.lookAgain(g.again)
	}
	return d
}

// asks schedules the next decision for when the answer of the gate may change, and requests the
// lock state if there is a lock.
func (d *Decision) asks(g gate, r *Record) {
	d.Looks = r.Lock.File != ""
	if !g.again.IsZero() {
		d.lookAgain(g.again)
	}
}

// remove is for a pod that no manifest gives any more. Its removal may wait while the pod runs, or
// while it is stopped and the removal would delete its volumes.
func remove(r *Record, w *World) Decision {
	g, d := r.ofRemoval(w), Decision{Rests: !r.IsThere(), Removes: true}
	if d.Rests || g.isOpen() {
		return d
	}
	d.Run = r.Running()
	if r.Stop != nil && r.Stop.Version != nil && !r.Stop.Over {
		d.Run, d.Halt = r.Stop.Version, plan.Halt{Waiting: StoppedWhy}
	}
	if d.Run != nil {
		d.Waits, d.Again = g.waits, g.again
	}
	return d
}

// halted keeps the containers of a pod stopped, and keeps the volumes of the version that ran.
func halted(r *Record, by Cause, why plan.Waiting) Decision {
	d := Decision{Waits: []Wait{{By: by, Text: why.Message}}}
	switch {
	case r.Stop.Version != nil:
		d.Run, d.Halt = r.Stop.Version, plan.Halt{Waiting: why}
	default: // anything that exists is removed
		d.Rests = !r.IsThere()
	}
	return d
}

// isInPlace reports whether the offered version needs no new resources, and may replace the
// accepted one at once.
func (r *Record) isInPlace(w *World) bool {
	if r.Accepted == nil || r.Accepted.UID != r.Offered.UID || manifests.Same(r.Accepted, r.Offered) || admission.AdmitOS(r.Offered.Pod) != nil {
		return false
	}
	kind := r.Becomes(r.Offered, w.Policy)
	return kind == update.Nothing || kind <= update.Live && r.mayChange(w)
}

// MayGiveWay reports whether the running version may stop for the sake of other pods: the offered
// version lacks only room, which it may get that way. The gate is checked again.
func MayGiveWay(r *Record, w *World) bool {
	isOther := func(of Wait) bool { return of.By != ByRoom }
	return r.Accepted != nil && r.Now.IsRetried() && !slices.ContainsFunc(r.Now.Waits, isOther) && r.mayChange(w)
}

// mayChange reports whether the gate allows the offered version to replace the running one.
func (r *Record) mayChange(w *World) bool {
	g := r.ofChange(w)
	return g.isOpen()
}

// choose is for a version that its owner and the start order allow to start. Before it replaces a
// running version, its needs are checked a last time. That check is void if anything else then
// prevents the start.
func choose(r *Record, w *World) Decision {
	if r.startsAsHeld(w) {
		return startAsHeld(r, w)
	}
	keeps, isStopped := r.keepsFormer(w), r.keepsStopped(w)
	isReady := r.IsPrepared() && (isStopped || r.mayChange(w))
	isSeen := r.Now.Final && r.Prepared.Final
	d := Decision{Keeps: keeps, IsEarly: (keeps || isStopped) && !isReady}
	d.refuse(r.Offered, mayStart(r, r.Offered, w), r, w.Now.Wall)
	switch {
	case d.Refused == nil && (keeps || isStopped) && isReady && !isSeen:
		d.Final = true
	case d.Refused == nil && !d.IsEarly:
		d.Run, d.Takes = r.Offered, true
		return d
	}
	if r.Accepted == nil && r.Stop != nil {
		return r.haltedUntil(d, isStopped)
	}
	r.waitBeside(&d, w)
	return d
}

// startsAsHeld reports whether a version other than the offered one was held when the pod was
// stopped. Then the held version starts again.
func (r *Record) startsAsHeld(w *World) bool {
	was := r.Stop
	return was != nil && was.Version != nil && !was.Over && r.Accepted == nil && r.isHeld(w) && !manifests.Same(was.Version, r.Offered)
}

// startAsHeld starts the version that was held; the offered one waits beside it.
func startAsHeld(r *Record, w *World) Decision {
	var d Decision
	d.refuse(r.Stop.Version, mayStart(r, r.Stop.Version, w), r, w.Now.Wall)
	if d.Refused != nil {
		return r.haltedUntil(d, false)
	}
	g := r.ofRemoval(w)
	d.Run, d.Takes, d.Prepare, d.Waits = r.Stop.Version, true, r.Offered, g.waits
	d.asks(g, r)
	return d
}

// Deny is the decision when the room was taken before the pod could take it.
func Deny(r *Record, w *World, of *manifests.Pod, why *admission.Rejection) Decision {
	d := Decision{Keeps: r.keepsFormer(w)}
	d.refuse(of, why, r, w.Now.Wall)
	if r.Accepted == nil && r.Stop != nil {
		return r.haltedUntil(d, r.keepsStopped(w)).completed(r, w)
	}
	r.waitBeside(&d, w)
	return d.completed(r, w)
}

// Stay is the decision after a panic over a name: the name keeps what it has, until the next
// attempt to decide.
func Stay(r *Record, why message.Text, now, again time.Time) Decision {
	d := r.Now
	d.Refused, d.Waits, d.Again = nil, []Wait{{By: ByFault, Text: why}}, again
	if r.Offered != nil {
		d.refuse(r.Offered, &admission.Rejection{Reason: "UnexpectedAdmissionError", Message: why}, r, now)
	}
	return d
}

// haltedUntil keeps a pod halted that is to start again and may not start yet. prepares: the
// version to start is not the one whose volumes are kept, and is prepared meanwhile.
func (r *Record) haltedUntil(d Decision, prepares bool) Decision {
	var why plan.Waiting
	by := ByRoom
	var waits Decision
	if prepares {
		r.waitPrepared(&waits)
	}
	switch {
	case d.Refused != nil:
		why = plan.Waiting{Reason: d.Refused.Why.Reason, Message: d.Refused.Why.Message}
	case len(waits.Waits) > 0:
		why, by = plan.Waiting{Reason: ReasonWaits, Message: waits.Waits[0].Text}, waits.Waits[0].By
	case d.Final:
		why, by = plan.Waiting{Reason: ReasonWaits, Message: message.Fixed("a last check of its images, volumes and network")}, ByLastLook
	}
	h := halted(r, by, why)
	if by == ByLack {
		h.Waits[0].Next = waits.Waits[0].Next
	}
	h.Refused, h.IsEarly = d.Refused, d.IsEarly
	if prepares && !d.IsFinal() {
		h.Prepare, h.Final = r.Offered, d.Final
	}
	return h
}

// keepsStopped reports whether the version that its owner stopped is kept, halted, until another
// version can start in its place.
func (r *Record) keepsStopped(w *World) bool {
	was, over := r.Identity()
	if r.Accepted != nil || was == nil || over || manifests.Same(was, r.Offered) || w.StopsFirst(r.Offered.Pod) {
		return false
	}
	return was.UID != r.Offered.UID || r.Becomes(r.Offered, w.Policy) > update.Resize
}

// waitBeside adds what the offered version waits for, beside the running one.
func (r *Record) waitBeside(d *Decision, w *World) {
	d.Run = r.Accepted
	if d.Keeps && d.Run != nil && !d.IsFinal() {
		g := r.ofChange(w)
		d.Prepare, d.Waits = r.Offered, g.waits
		d.asks(g, r)
		r.waitPrepared(d)
		if d.Final {
			d.waits(ByLastLook, message.Fixed("a last check of its images, volumes and network"))
		}
	}
	if d.Refused != nil {
		d.waits(causeOf(&d.Refused.Why), d.Refused.Why.Message)
		if d.Refused.Why.Reason == hold.ReasonHeld {
			d.asks(ofStarts(w), r)
		}
	}
	d.Rests = d.Run == nil && !r.IsThere()
}

// waitPrepared adds what the offered version lacks.
func (r *Record) waitPrepared(d *Decision) {
	if r.IsPrepared() {
		return
	}
	if !r.Prepared.Is(r.Offered) || len(r.Prepared.Lacks) == 0 {
		d.waits(ByPreparing, message.Fixed("the new version is being prepared"))
		return
	}
	for _, lack := range r.Prepared.Lacks {
		d.Waits = append(d.Waits, Wait{By: ByLack, Text: message.Private(lack.Text), Next: lack.Next})
	}
}

func causeOf(why *admission.Rejection) Cause {
	switch why.Reason {
	case shutdown.ReasonRefused:
		return ByShutdown
	case hold.ReasonHeld:
		return ByHold
	}
	return ByRoom
}

// keepsFormer reports whether the former version of a pod runs until the offered one can. It does
// not if it has ended, if none of its containers was ever created, or if the offered version
// requests that the former one stops first. One that has just taken the place of another one starts
// all the same, until the offered one is prepared. What the worker reported before it had a next
// version may be outdated.
func (r *Record) keepsFormer(w *World) bool {
	former := r.Running()
	switch {
	case former == nil || manifests.Same(former, r.Offered):
		return false
	case former.UID == r.Offered.UID && r.Becomes(r.Offered, w.Policy) == update.Resize: // a resize needs only room
		return !r.mayChange(w)
	case w.StopsFirst(r.Offered.Pod) && r.mayChange(w):
		return false
	case !r.Works:
		return r.Left != nil
	}
	isMade := r.Now.Prepare == nil || !r.Seen.Unmade
	return manifests.Same(r.Now.Run, former) && (isMade || r.IsComing(former) && !r.IsPrepared())
}

// mayStart returns why a version may not start; nil: it may. No pod starts while the machine shuts
// down, nor while the whole node is held, unless something of the pod already runs or was stopped
// for this version, its owner starts it, or it is being rolled back. An accepted version already has
// its room.
func mayStart(r *Record, p *manifests.Pod, w *World) *admission.Rejection {
	isAccepted := r.Accepted != nil && manifests.Same(r.Accepted, p)
	switch {
	case isAccepted:
		return nil
	case w.Down:
		return &admission.Rejection{Reason: shutdown.ReasonRefused, Message: message.Fixed(shutdown.MessageRefused)}
	case w.NodeHold != nil && r.Running() == nil && r.Stop == nil && !r.Back && !r.Between:
		return &admission.Rejection{Reason: hold.ReasonHeld, Message: nodeHeld(w.NodeHold)}
	}
	return w.Room(p)
}
