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
	Windows window.Windows // without any, changes wait for none
	LockMax time.Duration  // for how long the lock of a workload keeps a change away at most
}

// Locked is what is known of a workload's lock.
type Locked int

const (
	Unlooked Locked = iota // it was not looked for it yet
	Unknown                // the look had no answer: it may be held
	Free
	Held
)

// Lock is the file with which the version that runs keeps its own changes away, and what is
// known of it while a change waits. The zero value: there is none.
type Lock struct {
	File  string // its path in the container; "": that version has no such file
	UID   types.UID
	State Locked
	Since checkpoint.Moment // since when it keeps a change away; zero: it did not yet. Saved
}

// LockOf returns the lock of a version. was is what is known of the lock of its name.
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

// Seen returns the lock after a look.
func (l Lock) Seen(state Locked, now checkpoint.Moment) Lock {
	l.State = state
	if l.Since.IsZero() && (state == Unknown || state == Held) {
		l.Since = now
	}
	return l
}

// left returns for how long the lock may keep a change away yet.
func (l Lock) left(w *World) time.Duration {
	if l.Since.IsZero() {
		return w.Rules.LockMax
	}
	return w.Rules.LockMax - l.Since.Since(w.Now)
}

// gate is the answer of the one gate before every stop for a change.
type gate struct {
	waits []Wait    // for what the change waits, in the order in which it is told; nothing: it may be
	again time.Time // when the answer may be another; zero: not by itself
}

// How often it is asked again, at the latest, what waits for a time of the machine's clock,
// which may be set, and how often it is looked for a lock.
const (
	askEvery  = time.Minute
	lookEvery = 2 * time.Second
)

// ofChange is the gate for another version in the place of the one that runs. It is open where
// none does, and for a version that comes back: what fails gives way at once.
func (r *Record) ofChange(w *World) gate {
	former := r.Running()
	if r.Back || former == nil || r.Offered == nil || manifests.Same(former, r.Offered) {
		return gate{}
	}
	return r.ofRestart(w)
}

// ofRestart is the gate for a restart of what runs, for changed config.
func (r *Record) ofRestart(w *World) gate {
	g := r.ofRemoval(w)
	if r.Lock.File != "" {
		g.lock(&r.Lock, w)
	}
	return g
}

// ofRemoval is the gate for the removal of what runs, which no lock of its workload keeps away.
func (r *Record) ofRemoval(w *World) gate {
	var g gate
	if r.Hold != nil {
		g.holds(r.Hold, podHeld(w.Names.short(r.Key), r.Hold), w)
	}
	if w.NodeHold != nil {
		g.holds(w.NodeHold, nodeHeld(w.NodeHold), w)
	}
	now, windows := w.Now.Wall, w.Rules.Windows
	if len(windows) > 0 {
		g.until(w, windows.Next(now)) // and each minute before: an open one closes
	}
	if closed := windows.Closed(now); closed != "" {
		g.waits = append(g.waits, Wait{By: ByWindow, Text: message.Private(closed)})
	}
	return g
}

// podHeld says what holds a pod, and what ends that.
func podHeld(name string, h *hold.Hold) message.Text {
	return message.Of("%s (`monopod release %s` ends it)", h.Said(), message.Name(strings.TrimPrefix(name, v1.NamespaceDefault+"/")))
}

func nodeHeld(h *hold.Hold) message.Text {
	return message.Of("the node is %s (`monopod release` ends it)", h.Said())
}

// ofStarts is the gate for the first start of a pod, which only a hold of the whole node keeps
// away.
func ofStarts(w *World) (g gate) {
	if w.NodeHold != nil {
		g.holds(w.NodeHold, nodeHeld(w.NodeHold), w)
	}
	return g
}

// isHeld reports whether the owner holds the pod or the node: then a name keeps its version,
// also one that is stopped and started.
func (r *Record) isHeld(w *World) bool { return !r.Back && (r.Hold != nil || w.NodeHold != nil) }

func (g *gate) isOpen() bool { return len(g.waits) == 0 }

func (g *gate) holds(h *hold.Hold, said message.Text, w *World) {
	g.waits = append(g.waits, Wait{By: ByHold, Text: said})
	if ends := h.Ends(); !ends.IsZero() {
		g.until(w, ends)
	}
}

// lock adds the wait for a lock, of which nothing is known until it was looked for it. It is
// looked again while anything waits, as the lock may come late.
func (g *gate) lock(l *Lock, w *World) {
	left := l.left(w)
	if left <= 0 {
		return
	}
	g.until(w, w.Now.Wall.Add(min(left, lookEvery)))
	most := message.Time(wholeMinute(w.Now.Wall.Add(left)))
	switch l.State {
	case Unlooked:
		g.waits = append(g.waits, Wait{By: ByLook, Text: message.Fixed("a check whether its workload locks it")})
	case Unknown:
		g.waits = append(g.waits, Wait{By: ByLock, Text: message.Of("its disk does not say whether its workload locks it: %s, at most until %s", message.Private(l.File), most)})
	case Held:
		g.waits = append(g.waits, Wait{By: ByLock, Text: message.Of("locked by its workload: %s, at most until %s", message.Private(l.File), most)})
	}
}

// wholeMinute is the minute until which a time lasts: clocks that run apart a little do not make
// it another each time.
func wholeMinute(t time.Time) time.Time { return t.Add(time.Minute - 1).Truncate(time.Minute) }

// until makes the gate be asked again at a time, and each minute until then.
func (g *gate) until(w *World, t time.Time) {
	t = w.Now.Wall.Add(min(t.Sub(w.Now.Wall), askEvery)) // which no change of the clock moves
	if g.again.IsZero() || t.Before(g.again) {
		g.again = t
	}
}
