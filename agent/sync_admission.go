package agent

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/node"
	"monopod/agent/podstatus"
	"monopod/manifests"
)

// admit lets the pod run if it fits on the node, else its previous version if that
// one was admitted.
func (l *syncLoop) admit(ctx context.Context, p *manifests.Pod) {
	key := p.Key()
	if l.keepsStopped(ctx, key) {
		return
	}
	before, _ := l.table.Rejected(key)
	if err := l.contained(p.Pod, "admit the pod", func() { l.admitPod(ctx, p) }); err != nil {
		l.table.Refuse(p, admission.Rejection{Reason: "UnexpectedAdmissionError", Message: err.Error()}, metav1.Now().Rfc3339Copy())
	}
	if now, waits := l.table.Rejected(key); now != before {
		l.stale = true
		if waits {
			l.refused[key] = true
		}
	}
}

func (l *syncLoop) admitPod(ctx context.Context, p *manifests.Pod) {
	if l.takeOver(ctx, p) {
		return
	}
	key := p.Key()
	before, waited := l.table.Rejected(key)
	keeps := l.keepsFormer(ctx, p)
	admit := l.table.Admit
	gated, open := "", true
	if keeps {
		gated, open = l.gateOf(ctx, key)
	} else {
		l.gates.Forget(key)
	}
	if keeps && !(open && l.isPrepared(p)) {
		admit = l.table.Test
	}
	version, mayStart := l.maysStart(p)
	if mayStart {
		version = admit(p, metav1.Now().Rfc3339Copy())
	}
	now, waits := l.table.Rejected(key)
	switch {
	case waits && (!waited || now.Reason != before.Reason || !manifests.Same(now.Pod, before.Pod)):
		l.shared.Metrics.Rejected(now.Reason)
		outcome := "pod not admitted; it waits"
		if now.Final() {
			outcome = "pod not admitted for good; it has failed"
		}
		l.shared.Log.Warn(outcome, "pod", key.String(), "reason", now.Reason, "err", now.Message, "former", version != nil)
		l.recordRefusal(p, now.Rejection)
	case waited && !waits && version == p:
		l.shared.Log.Info("pod admitted after waiting", "pod", key.String())
	}
	if l.startHalted(ctx, key, version) {
		return
	}
	if version != nil || l.restored[key] != nil {
		l.setVersions(ctx, p, version, keeps, gated)
	}
}

// readmit ends a turn of the loop: it lets the pods start whose turn has come, tries to
// admit those that wait for what was freed in this turn, and reports what has changed
// of those that still wait. It costs nothing if nothing has changed.
func (l *syncLoop) readmit(ctx context.Context) {
	l.applyStartOrder(ctx)
	for _, p := range l.table.Retry() {
		l.admit(ctx, p)
	}
	l.continueUpdates(ctx)
	for _, key := range l.table.Swaps() {
		l.shared.Log.Info("pod stops so that pods that wait for each other's allocations can start", "pod", key.String())
		l.table.Free(key)
		l.setDesired(ctx, key, nil)
		l.stale = true
	}
	for key := range l.refused {
		l.reportStopped(key)
		// A worker of this name reports its pod itself.
		if r, waits := l.table.Rejected(key); waits && l.workers[key] == nil {
			_ = l.contained(r.Pod.Pod, "report the pod", func() {
				out := *r.Pod.Pod
				out.Status = podstatus.RefusedStatus(r.Pod.Pod, r.Rejection, r.Since)
				l.store.SetPod(key.String(), &out)
			})
		}
	}
	clear(l.refused)
	if l.stale && l.last != nil {
		l.stale = false
		l.report(*l.last)
	}
}

// setFacts takes over new facts of the node.
func (l *syncLoop) setFacts(f node.Facts) {
	f.StrictGroups, f.RuntimeAsked = l.shared.Watch.StrictGroups()
	l.table.SetFacts(f)
}

// factsRead is the result of reading the machine.
type factsRead struct {
	node.Facts
	err error
}

// refreshFacts reads the machine again while a pod waits: it may have grown.
func (l *syncLoop) refreshFacts(ctx context.Context) {
	if l.table.Waiting() {
		l.startReadingFacts(ctx)
	}
}

// takeFacts takes what was read of the machine.
func (l *syncLoop) takeFacts(f factsRead) {
	l.reading = false
	if f.err == nil {
		l.setFacts(f.Facts)
	}
}

func (l *syncLoop) startReadingFacts(ctx context.Context) {
	if l.reading {
		return
	}
	l.reading = true
	l.running.Go(func() {
		f, err := l.shared.Disk.Machine.ReadFacts()
		if err != nil {
			l.shared.Log.Error("node facts not read; the previous values count", "err", err)
		}
		select {
		case l.facts <- factsRead{f, err}:
		case <-ctx.Done():
		}
	})
}
