package admission

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// StartOrder is the state of the pods that start after others. A held pod has no
// worker and no allocation: it takes part in admission when its turn has come. A pod
// that was let start is not held again before the next boot of the machine, when all
// pods start from nothing. The sync loop's goroutine owns it. What happens to one pod
// costs as much as there are pods that start after it.
type StartOrder struct {
	World
	Wake *time.Timer // fires when the first timeout of a held pod ends: then TimeoutsPassed must be called

	started    map[manifests.Key]version // that was last let start in this boot
	dependents map[manifests.Key]*Dependent
	after      map[manifests.Key]map[*Dependent]bool // who names a pod, under each name that may be meant
	changed    map[*Dependent]bool                   // to be decided again
	news       map[*Dependent]bool                   // whose wait or decision is another, for News
	rewired    bool                                  // who starts after whom has changed
	firesAt    time.Time                             // zero: never
	decisions  int                                   // made so far
}

// World is what the start order needs to know of other pods.
type World struct {
	Suffix  string                   // what the node adds to the names of pods
	Desired func(manifests.Key) bool // the pod is desired
	Ready   func(manifests.Key) bool // a worker runs a version of the pod, and that is ready
}

// Dependent is a desired pod that starts after others.
type Dependent struct {
	Pod *manifests.Pod
	Decision
	Held *Held // nil: it is not held

	order decode.Order
	after []manifests.Key // as the order means them
	cycle []manifests.Key // on which it starts after itself
}

// Held is the wait of a version of a pod.
type Held struct {
	Since time.Time
	Last  *v1.PodStatus // as last reported; nil: never
	Said  string        // what it waits for, as last told
	Asked bool          // what previous agents reported of it is being read
	Known bool          // and is known now
}

// NewStartOrder returns the start order as previous agents left it.
func NewStartOrder(b checkpoint.Boot, s *Table, w World, checkpoints []*checkpoint.Checkpoint) *StartOrder {
	o := &StartOrder{World: w, Wake: time.NewTimer(time.Hour), started: map[manifests.Key]version{},
		dependents: map[manifests.Key]*Dependent{}, after: map[manifests.Key]map[*Dependent]bool{},
		changed: map[*Dependent]bool{}, news: map[*Dependent]bool{}}
	o.Wake.Stop()
	for _, c := range checkpoint.Accepted(checkpoints) {
		if s.Admitted(c.Key()) != nil && (c.Boot == "" || c.Boot == b.ID || c.Ended() != "") {
			o.started[c.Key()] = version{c.Pod.UID, c.Digest}
		}
	}
	return o
}

// Update takes over a desired pod that is new or has changed, and reports whether it
// is held: if it starts after others and was not started yet, until Next returns it.
// free: it is not to be held again, as it had its turn, or fails anyway. The names of
// all desired pods must be known.
func (o *StartOrder) Update(p *manifests.Pod, free bool, now time.Time) (held bool) {
	key := p.Key()
	d := o.dependents[key]
	if d == nil || !manifests.Same(d.Pod, p) {
		o.unlink(d)
		if d != nil && d.Held != nil {
			o.Touch(key)
		}
		if d = o.link(p); d == nil {
			return false
		}
	}
	d.Pod = p
	o.changed[d], o.news[d] = true, true
	free = free || o.WasStarted(p)
	if free != (d.Held == nil) {
		d.Held = nil
		if !free {
			d.Held = &Held{Since: now}
			o.arm(d)
		}
		o.Touch(key)
	}
	return d.Held != nil
}

// link adds a pod that starts after others; nil: it does not.
func (o *StartOrder) link(p *manifests.Pod) *Dependent {
	order := decode.OrderOf(p.Pod)
	if len(order.After) == 0 {
		return nil
	}
	d := &Dependent{Pod: p, order: order}
	o.dependents[p.Key()], o.rewired = d, true
	for _, name := range order.After {
		for _, meant := range []manifests.Key{name, o.long(name)} {
			if o.after[meant] == nil {
				o.after[meant] = map[*Dependent]bool{}
			}
			o.after[meant][d] = true
		}
	}
	return d
}

// unlink removes a pod that link added.
func (o *StartOrder) unlink(d *Dependent) {
	if d == nil {
		return
	}
	for _, name := range d.order.After {
		for _, meant := range []manifests.Key{name, o.long(name)} {
			delete(o.after[meant], d)
			if len(o.after[meant]) == 0 {
				delete(o.after, meant)
			}
		}
	}
	delete(o.changed, d)
	delete(o.news, d)
	delete(o.dependents, d.Pod.Key())
	o.rewired = true
}

// Forget drops the state of a pod that is no longer desired.
func (o *StartOrder) Forget(key manifests.Key) {
	delete(o.started, key)
	o.unlink(o.dependents[key])
	o.Touch(key)
}

// Touch records that a pod may be desired, ready or neither now: the pods that start
// after it are decided again.
func (o *StartOrder) Touch(key manifests.Key) {
	for d := range o.after[key] {
		o.changed[d] = true
	}
}

// version is a version of a pod's instance.
type version struct {
	uid    types.UID
	digest string
}

// Started records that a version of a pod was let start.
func (o *StartOrder) Started(p *manifests.Pod) { o.started[p.Key()] = version{p.UID, p.Digest} }

// WasStarted reports whether that version is the one that was let start last.
func (o *StartOrder) WasStarted(p *manifests.Pod) bool {
	return o.started[p.Key()] == version{p.UID, p.Digest}
}

// Held returns a pod that is held; nil: it is not.
func (o *StartOrder) Held(key manifests.Key) *Dependent {
	if d := o.dependents[key]; d != nil && d.Held != nil {
		return d
	}
	return nil
}

// Continue takes over what a previous agent reported of a held pod: since when it
// waited, if that was in this boot, and its last status; nil: nothing. Nothing happens
// if the pod has ended that wait.
func (o *StartOrder) Continue(d *Dependent, h *Held, since time.Time, last *v1.PodStatus) {
	if d.Held != h || o.dependents[d.Pod.Key()] != d {
		return
	}
	h.Known, h.Last, o.changed[d], o.news[d] = true, last, true, true
	if !since.IsZero() && since.Before(h.Since) {
		h.Since = h.Since.Add(-h.Since.Sub(since)) // on the monotonic clock
		o.arm(d)
	}
}

// Next decides on the pods of which something has changed. It returns those that are
// held no longer, in order of arrival, each with its decision and its wait. It must be
// called until there are none.
func (o *StartOrder) Next(now time.Time) []Dependent {
	if len(o.changed) == 0 && !o.rewired {
		return nil
	}
	o.rewire()
	var free []*manifests.Pod
	for d := range o.changed {
		was := d.Decision
		o.decide(d, now)
		if was.Problem != d.Problem || was.Held != d.Decision.Held || d.Held != nil && !slices.Equal(was.Unready, d.Unready) {
			o.news[d] = true
		}
		if d.Held != nil && !d.Decision.Held {
			free = append(free, d.Pod)
		}
	}
	clear(o.changed)
	ByArrival(free)
	var out []Dependent
	for _, p := range free { // once all are decided on
		d := o.dependents[p.Key()]
		out = append(out, *d)
		d.Held = nil
		o.Touch(p.Key())
	}
	return out
}

// News returns the pods whose wait or decision is another than at the last call, by name.
func (o *StartOrder) News() []*Dependent {
	if len(o.news) == 0 {
		return nil
	}
	all := slices.SortedFunc(maps.Keys(o.news), byName)
	clear(o.news)
	return all
}

// Renew makes News return the pod if it is held.
func (o *StartOrder) Renew(key manifests.Key) {
	if d := o.Held(key); d != nil {
		o.news[d] = true
	}
}

// All returns all pods that start after others, by name.
func (o *StartOrder) All() []*Dependent { return slices.SortedFunc(maps.Values(o.dependents), byName) }

func byName(a, b *Dependent) int { return strings.Compare(a.Pod.Key().String(), b.Pod.Key().String()) }

// After returns the pods that a pod starts after, as it means them.
func (o *StartOrder) After(key manifests.Key) []manifests.Key {
	if d := o.dependents[key]; d != nil {
		return d.after
	}
	return nil
}

// Len returns of how many pods it has something.
func (o *StartOrder) Len() int { return len(o.started) + len(o.dependents) + len(o.after) }

// TimeoutsPassed decides again on the held pods whose timeouts have passed.
func (o *StartOrder) TimeoutsPassed(now time.Time) {
	o.firesAt = time.Time{}
	for _, d := range o.dependents {
		switch until := d.until(); {
		case until.IsZero():
		case now.Before(until):
			o.arm(d)
		default:
			o.changed[d] = true
		}
	}
}

// arm makes Wake fire when the timeout of a held pod ends.
func (o *StartOrder) arm(d *Dependent) {
	if until := d.until(); !until.IsZero() && (o.firesAt.IsZero() || until.Before(o.firesAt)) {
		o.firesAt = until
		o.Wake.Reset(time.Until(until))
	}
}

// until is when a held pod starts although others are not ready; zero: never.
func (d *Dependent) until() time.Time {
	if d.Held == nil || d.order.Timeout <= 0 {
		return time.Time{}
	}
	return d.Held.Since.Add(d.order.Timeout)
}
