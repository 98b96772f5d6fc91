package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

// holdDependents holds every changed pod that starts after others and was not started
// yet, until its turn has come, unless it fails anyway. It returns the other pods.
func (l *syncLoop) holdDependents(changed []*manifests.Pod) (free []*manifests.Pod) {
	for _, p := range changed {
		if h := l.halted[p.Key()]; h != nil && !h.starts {
			free = append(free, p)
			continue
		}
		waits, hadItsTurn := l.table.Rejected(p.Key())
		hadItsTurn = hadItsTurn && manifests.Same(waits.Pod, p)
		if l.order.Update(p, hadItsTurn || l.startsNothing(p) || admission.AdmitOS(p.Pod) != nil, time.Now()) {
			l.table.Withdraw(p.Key()) // an earlier version, which is no longer desired
		} else {
			free = append(free, p)
		}
	}
	return free
}

// applyStartOrder lets the pods start whose turn has come, and reports what the others
// wait for.
func (l *syncLoop) applyStartOrder(ctx context.Context) {
	for free := l.order.Next(time.Now()); len(free) > 0; free = l.order.Next(time.Now()) {
		for k := range free {
			l.letStart(ctx, &free[k])
		}
	}
	var unknown []past
	for _, d := range l.order.News() {
		l.stale = true
		if d.Held == nil {
			continue
		}
		_ = l.contained(d.Pod.Pod, "hold the pod", func() { l.hold(ctx, d) })
		if !d.Held.Asked {
			d.Held.Asked = true
			unknown = append(unknown, past{d, d.Held, d.Pod, nil})
		}
	}
	if len(unknown) > 0 {
		l.startReadingPasts(ctx, unknown)
	}
}

// letStart admits a pod that is no longer held.
func (l *syncLoop) letStart(ctx context.Context, d *admission.Dependent) {
	log := l.shared.Log.With("pod", d.Pod.Key().String())
	if len(d.Unready) > 0 {
		log.Warn("start-after timeout passed; pod starts",
			"waited", time.Since(d.Held.Since).Round(time.Second), "reason", l.order.Reason(&d.Decision))
	} else if d.Held.Said != "" {
		log.Info("start order fulfilled; pod starts")
	}
	l.admit(ctx, d.Pod)
}

// hold keeps a pod from starting: its previous version keeps running, and an instance
// that a previous agent retired is removed.
func (l *syncLoop) hold(ctx context.Context, d *admission.Dependent) {
	key, h, text := d.Pod.Key(), d.Held, l.order.Reason(&d.Decision)
	if d.Problem != "" {
		text += ": " + d.Problem
	}
	previous := l.table.Admitted(key)
	switch {
	case l.halted[key] != nil:
		l.halt(ctx, key, plan.Waiting{Reason: podstatus.ReasonHeld, Message: text})
	case previous != nil && !manifests.Same(previous, d.Pod) && l.order.WasStarted(previous):
		l.setDesired(ctx, key, previous)
	case previous == nil && l.restored[key] != nil:
		l.setDesired(ctx, key, nil)
	}
	if text != h.Said {
		h.Said = text
		log := l.shared.Log.With("pod", key.String(), "reason", text)
		if d.Problem != "" {
			log.Warn("pod held; it may wait forever", "file", d.Pod.File)
		} else {
			log.Info("pod held by its start order")
		}
		l.shared.Events.Record(events.About(d.Pod.Pod), v1.EventTypeNormal, podstatus.ReasonHeld, text)
	}
	if h.Known && l.workers[key] == nil { // a worker of this name reports its pod itself
		out := *d.Pod.Pod
		out.Status = podstatus.HeldStatus(d.Pod, h.Since, text, h.Last)
		h.Last = &out.Status
		l.store.SetPod(key.String(), &out)
	}
}

// past is what a previous agent reported of a held pod.
type past struct {
	dependent *admission.Dependent // the loop's, as is held
	held      *admission.Held
	pod       *manifests.Pod
	last      *v1.Pod // nil: nothing
}

// startReadingPasts reads what previous agents reported of held pods. Until that is
// known, nothing is reported of them, which would overwrite it.
func (l *syncLoop) startReadingPasts(ctx context.Context, all []past) {
	l.running.Go(func() {
		for k := range all {
			all[k].last, _ = l.previous(all[k].pod.Key().String())
		}
		select {
		case l.pasts <- all:
		case <-ctx.Done():
		}
	})
}

// continueWaits lets held pods continue the waits that a previous agent of this boot
// reported.
func (l *syncLoop) continueWaits(all []past) {
	for _, was := range all {
		var last *v1.PodStatus
		var since time.Time
		if p := was.last; p != nil && p.UID == was.pod.UID && !podstatus.WasRefused(&p.Status) {
			last = &p.Status
			if t, held := podstatus.HeldSince(last); held && t.After(l.shared.Disk.Machine.Boot.Since) {
				since = t
			}
		}
		l.order.Continue(was.dependent, was.held, since, last)
	}
}
