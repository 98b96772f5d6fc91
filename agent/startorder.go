package agent

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// startOrder is the state of the pods that start after others. A held pod has no
// worker and no allocation: it takes part in admission when its turn has come. A pod
// that was let start is not held again before the next boot of the machine, when all
// pods start from nothing.
type startOrder struct {
	boot    checkpoint.Boot
	started map[manifests.Key]types.UID // the instance that was last let start in this boot
	held    map[manifests.Key]*heldPod
	wake    *time.Timer                 // fires when the first timeout of a held pod ends
	found   map[string][]status.Problem // by file
}

// heldPod is a version of a pod that waits for its turn.
type heldPod struct {
	pod      *manifests.Pod
	since    time.Time
	last     *v1.PodStatus // as last reported; nil: never
	decision admission.Decision
	said     string
}

// newStartOrder returns the start order as previous agents left it.
func newStartOrder(b checkpoint.Boot, s *admission.Table, checkpoints []*checkpoint.Checkpoint) *startOrder {
	o := &startOrder{boot: b, started: map[manifests.Key]types.UID{},
		held: map[manifests.Key]*heldPod{}, wake: time.NewTimer(time.Hour)}
	o.wake.Stop()
	for _, c := range checkpoints {
		at := s.Entries[c.Key()]
		current := at != nil && at.Pod != nil && at.Pod.UID == c.Pod.UID && !c.IsRemoving()
		if current && (c.Boot == "" || c.Boot == b.ID || c.Ended() != "") {
			o.started[c.Key()] = c.Pod.UID
		}
	}
	return o
}

// forget drops the state of a pod that is no longer desired.
func (o *startOrder) forget(key manifests.Key) {
	delete(o.started, key)
	delete(o.held, key)
}

// holdDependents holds every pod of a new snapshot that starts after others and was
// not started yet, until release lets it go, unless it fails anyway. It returns the
// other pods.
func (l *syncLoop) holdDependents(pods []*manifests.Pod) []*manifests.Pod {
	var free []*manifests.Pod
	for _, p := range pods {
		key := p.Key()
		waits, hadItsTurn := l.table.Rejected[key]
		hadItsTurn = hadItsTurn && manifests.Same(waits.Pod, p)
		if len(decode.OrderOf(p.Pod).After) == 0 || l.order.started[key] == p.UID || hadItsTurn || admission.AdmitOS(p.Pod) != nil {
			delete(l.order.held, key)
			free = append(free, p)
		} else if h := l.order.held[key]; h == nil || !manifests.Same(h.pod, p) {
			l.order.held[key] = l.newHeld(p)
			delete(l.table.Rejected, key) // an earlier version, which is no longer desired
		} else {
			h.pod = p
		}
	}
	return free
}

// newHeld returns a pod that starts to wait, or that continues the wait which a
// previous agent of this boot reported.
func (l *syncLoop) newHeld(p *manifests.Pod) *heldPod {
	h := &heldPod{pod: p, since: time.Now()}
	prev, ok := l.store.Previous(p.Key().String())
	if !ok || prev.UID != p.UID || podstatus.WasRefused(&prev.Status) {
		return h
	}
	h.last = &prev.Status
	if since, ok := podstatus.HeldSince(h.last); ok && since.After(l.order.boot.Since) && since.Before(h.since) {
		h.since = h.since.Add(-h.since.Sub(since)) // on the monotonic clock
	}
	return h
}

// applyStartOrder lets the pods start whose turn has come, and reports what the others
// wait for.
func (l *syncLoop) applyStartOrder(ctx context.Context) {
	if l.last == nil {
		return
	}
	decisions := l.decisions()
	for l.release(ctx, decisions) {
		decisions = l.decisions()
	}
	l.order.wake.Stop()
	var first time.Time
	for key, h := range l.order.held {
		h.decision = decisions[key]
		_ = l.contained(h.pod.Pod, "hold the pod", func() { l.hold(ctx, key, h) })
		if t := decode.OrderOf(h.pod.Pod).Timeout; t > 0 && (first.IsZero() || h.since.Add(t).Before(first)) {
			first = h.since.Add(t)
		}
	}
	if !first.IsZero() {
		l.order.wake.Reset(time.Until(first))
	}
	if found := l.orderProblems(decisions); !reflect.DeepEqual(found, l.order.found) {
		l.order.found = found
		l.report(*l.last)
	}
}

// release admits the pods that are no longer held, in order of arrival, and reports
// whether there were any.
func (l *syncLoop) release(ctx context.Context, decisions map[manifests.Key]admission.Decision) bool {
	var free []*manifests.Pod
	for key, h := range l.order.held {
		if !decisions[key].Held {
			free = append(free, h.pod)
		}
	}
	for _, p := range slices.SortedFunc(slices.Values(free), admission.ByArrival) {
		key := p.Key()
		log := l.shared.Log.With("pod", key.String())
		h := l.order.held[key]
		if late := decisions[key].Unready; len(late) > 0 {
			log.Warn("start-after timeout passed; pod starts", "waited", time.Since(h.since).Round(time.Second), "reason", l.reason(late))
		} else if h.said != "" {
			log.Info("start order fulfilled; pod starts")
		}
		delete(l.order.held, key)
		l.admit(ctx, p)
	}
	return len(free) > 0
}

// decisions returns the decision on each desired pod that starts after others.
func (l *syncLoop) decisions() map[manifests.Key]admission.Decision {
	turns := make(map[manifests.Key]admission.Turn, len(l.last.Pods))
	for _, p := range l.last.Pods {
		turns[p.Key()] = admission.Turn{}
	}
	for _, p := range l.last.Pods {
		key := p.Key()
		h, o := l.order.held[key], decode.OrderOf(p.Pod)
		t := admission.Turn{Started: h == nil, Ready: h == nil && l.isReady(key)}
		for _, other := range o.After {
			t.After = append(t.After, l.resolveName(other, turns))
		}
		if h != nil && o.Timeout > 0 {
			t.Until = h.since.Add(o.Timeout)
		}
		turns[key] = t
	}
	return admission.Order(turns, time.Now(), l.shortName)
}

// isReady reports whether the pod that a worker runs under this name is ready. While
// a new version waits for admission that is the previous version, which counts too.
func (l *syncLoop) isReady(key manifests.Key) bool {
	w := l.workers[key]
	return w != nil && w.update.Pod != nil && w.ready
}

// resolveName returns the pod that a manifest names, by its short or its full name.
func (l *syncLoop) resolveName(key manifests.Key, pods map[manifests.Key]admission.Turn) manifests.Key {
	long := manifests.Key{Namespace: key.Namespace, Name: key.Name + l.shared.Suffix}
	_, isLong := pods[long]
	if _, isFull := pods[key]; isFull && !isLong {
		return key
	}
	return long
}

// shortName returns "namespace/name" without the node's suffix.
func (l *syncLoop) shortName(key manifests.Key) string {
	return key.Namespace + "/" + strings.TrimSuffix(key.Name, l.shared.Suffix)
}

func (l *syncLoop) reason(unready []manifests.Key) string {
	return "waits for " + admission.JoinNames(unready, ", ", l.shortName) + " to be ready"
}

// hold keeps a pod from starting: its previous version keeps running, and an instance
// that a previous agent retired is removed.
func (l *syncLoop) hold(ctx context.Context, key manifests.Key, h *heldPod) {
	text := l.reason(h.decision.Unready)
	if h.decision.Problem != "" {
		text += ": " + h.decision.Problem
	}
	previous := l.table.Entry(key).Pod
	switch {
	case previous != nil && !manifests.Same(previous, h.pod) && l.order.started[key] == previous.UID:
		l.setDesired(ctx, key, previous)
	case previous == nil && l.restored[key] != nil:
		l.setDesired(ctx, key, nil)
	}
	if text != h.said {
		h.said = text
		log := l.shared.Log.With("pod", key.String(), "reason", text)
		if h.decision.Problem != "" {
			log.Warn("pod held; it may wait forever", "file", h.pod.File)
		} else {
			log.Info("pod held by its start order")
		}
		l.shared.Events.Record(events.About(h.pod.Pod), v1.EventTypeNormal, podstatus.ReasonHeld, text)
	}
	if l.workers[key] == nil { // a worker of this name reports its pod itself
		out := *h.pod.Pod
		out.Status = podstatus.HeldStatus(h.pod, h.since, text, h.last)
		h.last = &out.Status
		l.store.SetPod(key.String(), &out)
	}
}
