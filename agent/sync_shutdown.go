package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/shutdown"
	"monopod/agent/worker"
	"monopod/manifests"
)

// handleShutdown stops all pods in order, as the machine goes down, or lets them run again,
// as it does not after all.
func (l *syncLoop) handleShutdown(ctx context.Context, down bool) {
	if down == l.down.On() || l.down.Final && !down {
		l.down.Repeat()
		return
	}
	text, said := shutdown.MessageCancelled, "shutdown cancelled; pods start again"
	if down {
		text, said = shutdown.MessageShutdown, "the machine goes down; pods stop in order"
	}
	l.shared.Log.Warn(said, "atMost", shutdown.Total(l.down.Periods))
	l.shared.Events.Record(events.NodeRef(l.shared.Disk.Machine.Cfg.NodeName), v1.EventTypeNormal, shutdown.ReasonShutdown, text)
	if down {
		l.down.Begin(l.stoppable())
		return
	}
	l.resume(ctx, l.down.Cancel())
}

// stoppable returns the pods of which anything may run.
func (l *syncLoop) stoppable() (all []shutdown.Pod) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(l.workers)), maps.Keys(l.restored))
	for _, key := range keys {
		p := shutdown.Pod{Key: key, After: l.order.After(key)}
		if version := cmp.Or(l.desiredOf(key), l.table.Admitted(key)); version != nil {
			p.Priority = shutdown.PriorityOf(version.Pod)
		}
		all = append(all, p)
	}
	return all
}

// continueShutdown stops the pods whose turn has come.
func (l *syncLoop) continueShutdown(ctx context.Context) {
	for wave := l.down.Next(time.Now()); len(wave) > 0; wave = l.down.Next(time.Now()) {
		for _, key := range wave {
			if w := l.workers[key]; w != nil {
				l.send(ctx, key, w.update)
			} else if l.restored[key] != nil {
				l.setDesired(ctx, key, l.table.Admitted(key))
			}
		}
	}
}

// terminated lets nothing of a pod run whose turn in the shutdown has come.
func (l *syncLoop) terminated(key manifests.Key, u worker.Update) worker.Update {
	if h, ok := l.down.HaltOf(key); ok && u.Pod != nil && (u.Halted.Reason == "" || u.Halted.Terminated) {
		u.Halted, u.Next = h, nil
	}
	return u
}

// isIdle reports whether nothing of a pod runs, or is going to.
func (l *syncLoop) isIdle(key manifests.Key) bool {
	w := l.workers[key]
	return (w == nil || w.idle) && l.restored[key] == nil
}

// resume lets pods run again, in their start order, and asks again for those that were
// refused.
func (l *syncLoop) resume(ctx context.Context, stopped map[manifests.Key]plan.Halt) {
	var again []*manifests.Pod
	for key := range stopped {
		l.order.Forget(key)
	}
	for key := range stopped {
		w, a := l.workers[key], l.desired.Of(key)
		switch {
		case a != nil:
			again = append(again, a.Pod)
		case w != nil && w.update.Halted.Terminated: // its removal waits
			u := w.update
			u.Halted = plan.Halt{}
			l.send(ctx, key, u)
		}
	}
	for _, r := range l.table.AllRejected() {
		if _, was := stopped[r.Pod.Key()]; !was && r.Reason == shutdown.ReasonRefused {
			again = append(again, r.Pod)
		}
	}
	again = l.holdDependents(again)
	admission.ByArrival(again)
	for _, p := range again {
		l.admit(ctx, p)
	}
}
