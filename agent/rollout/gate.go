package rollout

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/window"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Rules are the settings of the gate.
type Rules struct {
	Windows window.Windows // empty: changes do not wait for a window
	LockMax time.Duration  // how long the lock of a workload delays a change at most
}

// Locked is the known state of a workload's lock.
type Locked int

const (
	Unlooked Locked = iota // it was not checked yet
	Unknown                // the check had no answer: the lock may be held
	Free
	Held
)

// Lock is the file with which the running version prevents changes of itself, and what is known of
// it while a change waits. The zero value: no lock.
type Lock struct {
	File  string // its path in the container; "": that version has no such file
	UID   types.UID
	State Locked
	Since checkpoint.Moment // since when it delays a change that nothing else delays; zero: it does not, or something else does, too. Saved
	Spent time.Duration     // for how long it did so before. Saved
}

// LockOf returns the lock of a version. was is the known lock of its name.
func LockOf(p *v1.Pod, was Lock) Lock {
	file, given := p.Annotations[annotations.UpdateLock]
	if given {
		_, _, given = annotations.LockIn(p, file)
	}
	switch {
	case !given:
		return Lock{}
	case was.File == file && was.UID == p.UID:
		return was
	}
	return Lock{File: file, UID: p.UID}
}

// Counts reports whether it has delayed a change that nothing else delayed.
func (l Lock) Counts() bool { return !l.Since.IsZero() || l.Spent > 0 }

// Seen returns the lock after a check. isAlone: nothing else delays the change, so its time counts. A
// lock that was free while something else did has delayed nothing.
func (l Lock) Seen(state Locked, isAlone bool, now checkpoint.Moment) Lock {
	l.State = state
	switch isLocked := state == Unknown || state == Held; {
	case isLocked && isAlone && l.Since.IsZero():
		l.Since = now
	case isLocked && !isAlone && !l.Since.IsZero():
		l.Since, l.Spent = checkpoint.Moment{}, l.spent(now)
	case !isLocked && !isAlone:
		l.Since, l.Spent = checkpoint.Moment{}, 0
	}
	return l
}

// spent returns for how long it has delayed a change that nothing else delayed.
func (l Lock) spent(now checkpoint.Moment) time.Duration {
	if l.Since.IsZero() {
		return l.Spent
	}
	return l.Spent + l.Since.Since(now)
}

// left returns how much longer the lock may delay a change.
func (l Lock) left(w *World) time.Duration { return w.Rules.LockMax - l.spent(w.Now) }

// gate is the answer of the gate, the one check before every stop for a change.
type gate struct {
	waits []Wait    // the waits of the change in the order of the report; none: it may happen
	again time.Time // when the answer may change; zero: not with time
}

// askEvery is the longest time between two checks of the gate for a wait that ends at a wall clock
// time, since the clock may be set. lookEvery is the time between two checks of a lock.
const (
	askEvery  = time.Minute
	lookEvery = 2 * time.Second
)

// ofChange is the gate for replacing the running version. It is open if no version is replaced, and
// for a rollback: a version that fails is replaced at once.
func (r *Record) ofChange(w *World) gate {
	former := r.Running()
	if r.Back || former == nil || r.Offered == nil || manifests.Same(former, r.Offered) {
		return gate{}
	}
	return r.ofRestart(w)
}

// ofRestart is the gate for a restart of the running version for changed config.
func (r *Record) ofRestart(w *World) gate {
	g := r.ofRemoval(w)
	if r.Lock.File != "" {
		g.lock(&r.Lock, w)
	}
	return g
}

// ofRemoval is the gate for the removal of the running version. A lock of its workload does not
// delay a removal.
func (r *Record) ofRemoval(w *World) gate {
	var g gate
	if r.Hold != nil {
		g.holds(r.Hold, podHeld(w.Names.short(r.Key), r.Hold), w)
	}
	if w.NodeHold != nil {
		g.holds(w.NodeHold, nodeHeld(w.NodeHold), w)
	}
	if len(w.Rules.Windows) > 0 {
		g.windows(w)
	}
	return g
}

// windows adds the wait for the next window. A clock that was not set says nothing of the hour: after a
// boot at noon it may show midnight.
func (g *gate) windows(w *World) {
	now, all := w.Now.Wall, w.Rules.Windows
	g.until(w, all.Next(now)) // and each minute before that, since an open window closes
	if !checkpoint.IsBelievable(now) {
		g.waits = append(g.waits, Wait{By: ByWindow, Text: message.Fixed("the clock is not set: whether the update window is open is not known")})
		return
	}
	if closed := all.Closed(now); closed != "" {
		g.waits = append(g.waits, Wait{By: ByWindow, Text: message.Private(closed)})
	}
}

// podHeld returns what holds a pod, and the command that ends the hold.
func podHeld(name string, h *hold.Hold) message.Text {
	return message.Of("%s (`monopod release %s` ends it)", h.Said(), message.Name(strings.TrimPrefix(name, v1.NamespaceDefault+"/")))
}

func nodeHeld(h *hold.Hold) message.Text {
	return message.Of("the node is %s (`monopod release` ends it)", h.Said())
}

// ofStarts is the gate for the first start of a pod, which only a hold of the whole node delays.
func ofStarts(w *World) (g gate) {
	if w.NodeHold != nil {
		g.holds(w.NodeHold, nodeHeld(w.NodeHold), w)
	}
	return g
}

// isHeld reports whether the owner holds the pod or the node: then the name keeps its version, even
// if it is stopped and started.
func (r *Record) isHeld(w *World) bool { return !r.Back && (r.Hold != nil || w.NodeHold != nil) }

func (g *gate) isOpen() bool { return len(g.waits) == 0 }

func (g *gate) holds(h *hold.Hold, said message.Text, w *World) {
	g.waits = append(g.waits, Wait{By: ByHold, Text: said})
	if ends := h.Ends(); !ends.IsZero() {
		g.until(w, ends)
	}
}

// lock adds the wait for a lock, whose state is unknown before the first check. The lock is checked
// again while anything waits, as the workload may take it later.
func (g *gate) lock(l *Lock, w *World) {
	left := l.left(w)
	if left <= 0 {
		return
	}
	g.until(w, w.Now.Wall.Add(min(left, lookEvery)))
	most := message.Of("until %s", message.Time(wholeMinute(w.Now.Wall.Add(left))))
	if l.Since.IsZero() { // its time does not count yet
		most = message.Of("for %s", message.Duration(left))
	}
	switch l.State {
	case Unlooked:
		g.waits = append(g.waits, Wait{By: ByLook, Text: message.Fixed("a check whether its workload locks it")})
	case Unknown:
		g.waits = append(g.waits, Wait{By: ByLock, Text: message.Of("its disk does not say whether its workload locks it: %s, at most %s", message.Private(l.File), most)})
	case Held:
		g.waits = append(g.waits, Wait{By: ByLock, Text: message.Of("locked by its workload: %s, at most %s", message.Private(l.File), most)})
	}
}

// wholeMinute rounds a time up to the minute, so that small differences between clocks do not
// change the reported time.
func wholeMinute(t time.Time) time.Time { return t.Add(time.Minute - 1).Truncate(time.Minute) }

// until schedules the next check of the gate at a time, and each minute until then.
func (g *gate) until(w *World, t time.Time) {
	t = w.Now.Wall.Add(min(t.Sub(w.Now.Wall), askEvery)) // on the monotonic clock, which a change of the wall clock does not affect
	if g.again.IsZero() || t.Before(g.again) {
		g.again = t
	}
}
