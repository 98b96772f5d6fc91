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

// World is what matters beside the record of the name. Its funcs are pure questions.
type World struct {
	Now        checkpoint.Moment                         // see Decision.Again; by the machine's clock for windows
	Rules      Rules                                     // of the gate
	Names      Names                                     // of all pods
	Ready      func(manifests.Key) bool                  // pods that start after this one may start
	Down       bool                                      // the machine goes down
	Terminated func(manifests.Key) (plan.Halt, bool)     // how the shutdown halts a pod whose turn to stop has come
	NodeHold   *hold.Hold                                // of the whole node, which lets nothing new start; nil: there is none
	Policy     string                                    // of updates, see update.Planned
	StopsFirst func(*v1.Pod) bool                        // the version before stops before anything of the pod is prepared
	Room       func(*manifests.Pod) *admission.Rejection // why the node has no room for it beside all others; nil: it has
	Limits     func(*manifests.Pod) update.Limits        // what is asked of a version on trial
	Blind      bool                                      // see Sight
	Late       time.Duration                             // likewise
}

// StoppedWhy is what is reported of a pod that its owner stopped.
var StoppedWhy = plan.Waiting{Reason: status.ReasonStopped, Message: message.Fixed("stopped by request; `monopod start` runs it again")}

// Decide decides what is to become of a pod name. It changes nothing.
func Decide(r *Record, w *World) Decision {
	return decide(r, w).completed(r, w)
}

// completed adds what goes for each decision.
func (d Decision) completed(r *Record, w *World) Decision {
	return d.terminated(r, w).restartsFor(r, w).goesOn(r, w)
}

// decide decides which version runs. The first rule that speaks decides: what the owner wishes,
// what costs nothing, whose turn it is, and then the two classes of rules: to change what runs
// (see gate, and keepsFormer), and to start anything (mayStart).
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
		return inTurn(r, why, until)
	case r.isInPlace(w):
		return Decision{Run: r.Offered, Replaces: true}
	}
	return choose(r, w)
}

// terminated lets nothing of a pod run whose turn in the shutdown has come. What its owner
// stopped stays so, and what goes, goes.
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

// goesOn goes on with the trial of the name. It decides nothing of what runs: a version gives way
// once that is on disk, or its time for that is over, and then another one is offered.
func (d Decision) goesOn(r *Record, w *World) Decision {
	t := r.Trial
	if d.Halt.Reason != "" {
		t = t.Halted()
	}
	if t == nil || t.Tried == nil {
		d.Trial = t
		return d
	}
	var again time.Time
	d.Trial, d.Outcome, again = t.Look(Sight{Now: w.Now.Wall, Limits: w.Limits(t.Tried), Blind: w.Blind, Late: w.Late})
	if !again.IsZero() {
		d.lookAgain(again)
	}
	return d
}

// unread is for a pod of which is not known yet whether a manifest gives it. It stays.
func unread(r *Record) Decision {
	if !r.Works {
		return Decision{Rests: true}
	}
	return Decision{Run: r.Accepted}
}

// restartsFor decides whether containers of what runs may restart for changed config.
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

// asks makes the name be decided on again when the gate may say something else, with what is
// then known of the lock.
func (d *Decision) asks(g gate, r *Record) {
	d.Looks = r.Lock.File != ""
	if !g.again.IsZero() {
		d.lookAgain(g.again)
	}
}

// remove is for a pod that no manifest gives any more. Its removal may wait while it runs, or is
// stopped and would lose its volumes.
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

// halted lets nothing of a pod run, and keeps the volumes of the version that ran.
func halted(r *Record, by Cause, why plan.Waiting) Decision {
	d := Decision{Waits: []Wait{{By: by, Text: why.Message}}}
	switch {
	case r.Stop.Version != nil:
		d.Run, d.Halt = r.Stop.Version, plan.Halt{Waiting: why}
	default: // what is there goes
		d.Rests = !r.IsThere()
	}
	return d
}

// isInPlace reports whether the offered version asks for nothing new, and may take the place
// of the accepted one at once.
func (r *Record) isInPlace(w *World) bool {
	if r.Accepted == nil || r.Accepted.UID != r.Offered.UID || manifests.Same(r.Accepted, r.Offered) || admission.AdmitOS(r.Offered.Pod) != nil {
		return false
	}
	kind := r.Becomes(r.Offered, w.Policy)
	return kind == update.Nothing || kind <= update.Live && r.mayChange(w)
}

// MayGiveWay reports whether what runs may stop for the sake of others: all that the offered
// version lacks is room, which it may get that way. The gate is asked once more.
func MayGiveWay(r *Record, w *World) bool {
	isOther := func(of Wait) bool { return of.By != ByRoom }
	return r.Accepted != nil && r.Now.IsRetried() && !slices.ContainsFunc(r.Now.Waits, isOther) && r.mayChange(w)
}

// mayChange reports whether the gate lets the offered version take the place of what runs.
func (r *Record) mayChange(w *World) bool {
	g := r.ofChange(w)
	return g.isOpen()
}

// choose is for a version that may start as far as its owner and the start order are concerned.
// Before it takes the place of one that runs, there is a last look at what it needs. That is
// void if anything else keeps the version from starting then.
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

// startsAsHeld reports whether another version was held when the pod was stopped, which starts
// again in place of the offered one.
func (r *Record) startsAsHeld(w *World) bool {
	was := r.Stop
	return was != nil && was.Version != nil && !was.Over && r.Accepted == nil && r.isHeld(w) && !manifests.Same(was.Version, r.Offered)
}

// startAsHeld starts the version that was held, and the offered one waits beside it.
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

// Deny is a decision whose room was gone when it was to be taken.
func Deny(r *Record, w *World, of *manifests.Pod, why *admission.Rejection) Decision {
	d := Decision{Keeps: r.keepsFormer(w)}
	d.refuse(of, why, r, w.Now.Wall)
	if r.Accepted == nil && r.Stop != nil {
		return r.haltedUntil(d, r.keepsStopped(w)).completed(r, w)
	}
	r.waitBeside(&d, w)
	return d.completed(r, w)
}

// Stay lets a name have what it has though the loop panicked over it, until it is looked at again.
func Stay(r *Record, why message.Text, now, again time.Time) Decision {
	d := r.Now
	d.Refused, d.Waits, d.Again = nil, []Wait{{By: ByFault, Text: why}}, again
	if r.Offered != nil {
		d.refuse(r.Offered, &admission.Rejection{Reason: "UnexpectedAdmissionError", Message: why}, r, now)
	}
	return d
}

// haltedUntil keeps a pod halted that is to start again and may not start yet. prepares: the version
// to start is another one than that whose volumes are kept, and is prepared meanwhile.
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
// one that is to start in its place can.
func (r *Record) keepsStopped(w *World) bool {
	was, over := r.Identity()
	if r.Accepted != nil || was == nil || over || manifests.Same(was, r.Offered) || w.StopsFirst(r.Offered.Pod) {
		return false
	}
	return was.UID != r.Offered.UID || r.Becomes(r.Offered, w.Policy) > update.Resize
}

// waitBeside says what the offered version waits for, beside the one that runs on.
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

// waitPrepared says what the offered version lacks.
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

// keepsFormer reports whether the former version of a pod runs until the offered one can:
// unless it has ended, no container of it was ever made, or the offered one says that it
// stops first. What the worker said before it knew of a next version may be true no longer.
func (r *Record) keepsFormer(w *World) bool {
	former := r.Running()
	switch {
	case former == nil || manifests.Same(former, r.Offered):
		return false
	case former.UID == r.Offered.UID && r.Becomes(r.Offered, w.Policy) == update.Resize: // which needs nothing but its room
		return !r.mayChange(w)
	case w.StopsFirst(r.Offered.Pod) && r.mayChange(w):
		return false
	case !r.Works:
		return r.Left != nil
	}
	return manifests.Same(r.Now.Run, former) && (r.Now.Prepare == nil || !r.Seen.Unmade)
}

// mayStart says why a version may not start; nil: it may. No pod starts as the machine goes down,
// nor while the whole node is held, unless something of the pod runs already, its owner starts
// it, or it comes back. What is accepted has its room.
func mayStart(r *Record, p *manifests.Pod, w *World) *admission.Rejection {
	isAccepted := r.Accepted != nil && manifests.Same(r.Accepted, p)
	switch {
	case isAccepted:
		return nil
	case w.Down:
		return &admission.Rejection{Reason: shutdown.ReasonRefused, Message: message.Fixed(shutdown.MessageRefused)}
	case w.NodeHold != nil && r.Running() == nil && r.Stop == nil && !r.Back:
		return &admission.Rejection{Reason: hold.ReasonHeld, Message: nodeHeld(w.NodeHold)}
	}
	return w.Room(p)
}
