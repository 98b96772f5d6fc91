package agent

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/hold"
	"monopod/agent/shutdown"
	"monopod/agent/worker"
	"monopod/manifests"
)

// gateOf says what keeps the version of a pod that runs from being replaced, and whether
// nothing does. The gate is looked at again while it is closed.
func (l *syncLoop) gateOf(ctx context.Context, key manifests.Key) (why string, open bool) {
	former := l.table.Runs(key)
	if former == nil {
		l.gates.Forget(key)
		return "", true
	}
	why, open = l.gates.Update(former.Pod)
	l.gates.Watch(key, !open || l.gates.HasLock(key))
	l.gates.Look(ctx, &l.running, false)
	return why, open
}

// gatesChanged lets go on what need not wait any more, or says what it waits for now.
func (l *syncLoop) gatesChanged(ctx context.Context) {
	for _, key := range l.gates.Waiting() {
		w := l.workers[key]
		r, refused := l.table.Rejected(key)
		switch {
		case w != nil && w.update.Next != nil:
			if why, open := l.gateOf(ctx, key); open && w.prepared || why != w.update.Gated {
				l.admit(ctx, w.update.Next)
			}
		case w != nil && !l.desired.Has(key):
			if w.update.Gated != l.gates.Removal(key) {
				l.releaseUndesired(ctx, []manifests.Key{key})
			}
		case refused && r.Reason == hold.ReasonHeld && r.Message != l.gates.Start():
			l.admit(ctx, r.Pod)
		}
	}
}

// keepsRemoval lets the removal of a pod wait that runs, while it is held or its window is
// closed.
func (l *syncLoop) keepsRemoval(ctx context.Context, key manifests.Key) bool {
	runs, why := l.table.Runs(key), ""
	if runs != nil && (l.workers[key] != nil || l.restored[key] != nil) {
		why = l.gates.Removal(key)
	}
	if l.gates.Forget(key); why == "" {
		return false
	}
	l.gates.Watch(key, true)
	l.table.Withdraw(key)
	l.order.Touch(key)
	l.send(ctx, key, worker.Update{Pod: runs, Gated: why})
	l.stale = true
	return true
}

// maysStart reports whether a pod may start: none does while the machine goes down. One of
// which nothing runs waits while the whole node is held. Else it returns the version that is admitted; nil: none.
func (l *syncLoop) maysStart(p *manifests.Pod) (admitted *manifests.Pod, may bool) {
	key, why := p.Key(), l.gates.Start()
	admitted = l.table.Admitted(key)
	if l.down.On() && (admitted == nil || !manifests.Same(admitted, p)) {
		l.table.Refuse(p, admission.Rejection{Reason: shutdown.ReasonRefused, Message: shutdown.MessageRefused}, metav1.Now().Rfc3339Copy())
		return admitted, false
	}
	if why == "" || l.table.Runs(key) != nil || l.halted[key] != nil || admitted != nil && manifests.Same(admitted, p) {
		return nil, true
	}
	l.table.Refuse(p, admission.Rejection{Reason: hold.ReasonHeld, Message: why}, metav1.Now().Rfc3339Copy())
	l.gates.Watch(key, true)
	return admitted, false
}
