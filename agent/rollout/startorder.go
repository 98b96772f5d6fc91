package rollout

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/agent/update"
	"monopod/manifests"
)

// Order is the place of a version in the start order. The zero value: it starts after no other pod.
// A version that waits for its turn has no room and is not prepared. A version that had its turn
// does not wait again until its owner or a shutdown stops it.
type Order struct {
	Of      *manifests.Pod  // the version; nil: none
	After   []manifests.Key // the pods that it starts after
	Timeout time.Duration   // after waiting this long it starts anyway; 0: never
	Circle  []manifests.Key // the circle on which it starts after itself, with the pod first and last; nil: none
	Since   time.Time       // since when it waits for its turn; zero: it had its turn
	Former  *Order          // of the version that runs until then, if that must start again in an order of its own, and has waited since the same time; nil: it need not wait
}

// Version is a version of a pod's instance.
type Version struct {
	UID    types.UID
	Digest string
}

// VersionOf returns the Version of p.
func VersionOf(p *manifests.Pod) Version { return Version{p.UID, p.Digest} }

// WasStarted reports whether the version is the one that was started last, in this boot.
func (r *Record) WasStarted(p *manifests.Pod) bool { return r.Started == VersionOf(p) }

// MustWait reports whether the offered version, which is new, must wait for its turn. It need not
// if it was started already, starts nothing, or can never run.
func (r *Record) MustWait(policy string) bool {
	return !r.WasStarted(r.Offered) && !r.startsNothing(policy) && !r.hadTurn() && admission.AdmitOS(r.Offered.Pod) == nil
}

// hadTurn reports whether the offered version comes back in place of one that was started in this boot.
func (r *Record) hadTurn() bool {
	return r.Trial.IsBack(r.Offered) && r.Accepted != nil && r.WasStarted(r.Accepted)
}

// startsNothing reports whether the offered version is an in-place update of the version that was
// started last, and starts nothing.
func (r *Record) startsNothing(policy string) bool {
	return r.Accepted != nil && r.Accepted.UID == r.Offered.UID && r.WasStarted(r.Accepted) && r.Becomes(r.Offered, policy) < update.Restart
}

// AwaitsTurn reports whether the offered version has not had its turn. Then the pod is not ready
// for pods that start after it, though a former version of it may be.
func (r *Record) AwaitsTurn() bool { return !r.Order.Since.IsZero() }

// turn returns what the offered version waits for before it may start. until: when it starts
// anyway; zero: never.
func (r *Record) turn(w *World) (why message.Text, waits bool, until time.Time) {
	if !r.AwaitsTurn() {
		return why, false, until
	}
	unready, until := r.Order.unready(w, r.Order.Since)
	if len(unready) == 0 {
		return why, false, until
	}
	why = message.Of("waits for %s to be ready", message.Name(w.Names.join(unready, ", ")))
	if !until.IsZero() {
		why = message.Of("%s, at most until %s", why, message.Time(until))
	}
	problem := r.Order.Problem(&w.Names)
	if problem != "" {
		why = message.Of("%s: %s", why, message.Name(problem))
	}
	return why, true, until
}

// unready returns the pods for which the version waits, which it has done since then. until: when it
// starts anyway; zero: never.
func (o *Order) unready(w *World, since time.Time) (others []manifests.Key, until time.Time) {
	until = o.until(since)
	if !until.IsZero() && !w.Now.Wall.Before(until) {
		return nil, until
	}
	for _, other := range o.After {
		if !w.Ready(other) {
			others = append(others, other)
		}
	}
	return others, until
}

// Until returns when a version that waits for its turn starts although others are not ready; zero:
// never.
func (o *Order) Until() time.Time { return o.until(o.Since) }

// until is Until of a version that has waited since then.
func (o *Order) until(since time.Time) time.Time {
	if since.IsZero() || o.Timeout <= 0 {
		return time.Time{}
	}
	return since.Add(o.Timeout)
}

// Problem returns why the version may wait forever, in words; "": no reason.
func (o *Order) Problem(names *Names) string {
	var unknown []manifests.Key
	for _, other := range o.After {
		if !names.Has(other) {
			unknown = append(unknown, other)
		}
	}
	var problems []string
	if len(unknown) > 0 {
		problems = append(problems, "there is no pod "+names.join(unknown, ", "))
	}
	if o.Circle != nil {
		problems = append(problems, "a circle: "+names.join(o.Circle, " starts after "))
	}
	return strings.Join(problems, "; ")
}

// inTurn is for a version that waits for its turn in the start order: the former version runs on, or
// starts again once its own turn has come, and what a previous agent was removing is removed.
func inTurn(r *Record, why message.Text, until time.Time, w *World) Decision {
	d, isHalted := Decision{}, false
	isDue, formerUntil := r.isFormerDue(w)
	switch {
	case r.startsAsHeld(w) && isDue:
		d = startAsHeld(r, w)
		d.Prepare = nil
	case r.Stop != nil:
		d, isHalted = halted(r, ByStartOrder, plan.Waiting{Reason: podstatus.ReasonWaitingForPods, Message: why}), true
	case r.Accepted != nil && !manifests.Same(r.Accepted, r.Offered) && (r.WasStarted(r.Accepted) || r.startsAgain() && isDue):
		d.Run = r.Accepted
	case r.Works: // a cancelled shutdown halted it, and it stays halted until its turn
		d.Run, d.Prepare, d.Halt = r.Now.Run, r.Now.Prepare, r.Now.Halt
	case r.Accepted == nil && r.isLeft(): // everything of it is removed
	default:
		d.Rests = true
	}
	if !isHalted {
		d.waits(ByStartOrder, why)
	}
	for _, at := range []time.Time{until, formerUntil} {
		if !at.IsZero() {
			d.lookAgain(at)
		}
	}
	return d
}

// isFormerDue reports whether the turn of the version has come that runs until the turn of the
// offered one. until: when it starts anyway; zero: never, or its turn has come.
func (r *Record) isFormerDue(w *World) (is bool, until time.Time) {
	if r.Order.Former == nil {
		return true, until
	}
	others, until := r.Order.Former.unready(w, r.Order.Since)
	if len(others) == 0 {
		return true, time.Time{}
	}
	return false, until
}

// startsAgain reports whether the accepted version, which was not started since the last boot or
// shutdown, is there to start again.
func (r *Record) startsAgain() bool {
	return !r.Over && (r.Left != nil || r.Works && manifests.Same(r.Now.Run, r.Accepted))
}

// Names knows which pods exist and their names.
type Names struct {
	Suffix string                   // the suffix that the node adds to the names of pods
	Has    func(manifests.Key) bool // a manifest gives the pod
}

// Long returns the full name of a pod whose short name a manifest gives.
func (n *Names) Long(name manifests.Key) manifests.Key {
	return manifests.Key{Namespace: name.Namespace, Name: name.Name + n.Suffix}
}

// Meant returns the pod that a manifest names, by its short or its full name.
func (n *Names) Meant(name manifests.Key) manifests.Key {
	long := n.Long(name)
	if n.Has(long) || !n.Has(name) {
		return long
	}
	return name
}

// short returns "namespace/name" without the node's suffix.
func (n *Names) short(key manifests.Key) string {
	return key.Namespace + "/" + strings.TrimSuffix(key.Name, n.Suffix)
}

func (n *Names) join(keys []manifests.Key, by string) string {
	names := make([]string, len(keys))
	for k, key := range keys {
		names[k] = n.short(key)
	}
	return strings.Join(names, by)
}
