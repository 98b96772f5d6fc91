package agent

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/node"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/manifests"
)

// admit lets the pod run if it fits on the node, else its previous version if that
// one was admitted.
func (l *syncLoop) admit(ctx context.Context, p *manifests.Pod) {
	if err := l.contained(p.Pod, "admit the pod", func() { l.admitPod(ctx, p) }); err != nil {
		l.table.Refuse(p, admission.Rejection{Reason: "UnexpectedAdmissionError", Message: err.Error()}, metav1.Now().Rfc3339Copy())
	}
}

func (l *syncLoop) admitPod(ctx context.Context, p *manifests.Pod) {
	key := p.Key()
	before, waited := l.table.Rejected[key]
	version := l.table.Admit(p, metav1.Now().Rfc3339Copy())
	now, waits := l.table.Rejected[key]
	log := l.shared.Log.With("pod", key.String())
	switch {
	case waits && (!waited || now.Reason != before.Reason || !manifests.Same(now.Pod, before.Pod)):
		l.shared.Metrics.Rejected(now.Reason)
		outcome := "pod not admitted; it waits"
		if now.Final() {
			outcome = "pod not admitted for good; it has failed"
		}
		log.Warn(outcome, "reason", now.Reason, "err", now.Message, "former", version != nil)
		l.recordRefusal(p, now.Rejection)
	case waited && !waits:
		log.Info("pod admitted after waiting")
	}
	if version != nil || l.restored[key] != nil {
		l.setDesired(ctx, key, version)
	}
}

// readmit tries to admit the pods that wait, and reports those that still wait.
func (l *syncLoop) readmit(ctx context.Context) {
	l.applyStartOrder(ctx)
	if len(l.table.Rejected) == 0 {
		return
	}
	before := maps.Clone(l.table.Rejected)
	for _, p := range l.table.Waiting() {
		l.admit(ctx, p)
	}
	for _, key := range l.table.Swaps() {
		l.shared.Log.Info("pod stops so that pods that wait for each other's allocations can start", "pod", key.String())
		l.table.Free(l.table.Entry(key))
		l.setDesired(ctx, key, nil)
	}
	for key, r := range l.table.Rejected {
		// A worker of this name reports its pod itself.
		if l.workers[key] == nil {
			_ = l.contained(r.Pod.Pod, "report the pod", func() {
				out := *r.Pod.Pod
				out.Status = podstatus.RefusedStatus(r.Pod.Pod, r.Rejection, r.Since)
				l.store.SetPod(key.String(), &out)
			})
		}
	}
	if !maps.Equal(before, l.table.Rejected) {
		l.report(*l.last)
	}
}

// setFacts takes over new facts of the node and tries again to admit what waits.
func (l *syncLoop) setFacts(ctx context.Context, f node.Facts) {
	f.StrictGroups, f.RuntimeAsked = l.shared.Watch.StrictGroups()
	if f.Same(&l.table.Facts) {
		return
	}
	l.table.Facts = f
	l.readmit(ctx)
}

// factsRead is the result of reading the machine.
type factsRead struct {
	node.Facts
	err error
}

// refreshFacts reads the machine again while a pod waits: it may have grown.
func (l *syncLoop) refreshFacts(ctx context.Context) {
	if len(l.table.Waiting()) > 0 {
		l.startReadingFacts(ctx)
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

// report gives the store the state of the manifests: the problems that the Source
// found, and the pods whose previous version runs because the new one is not admitted.
func (l *syncLoop) report(s manifests.Snapshot) {
	m := status.Manifests{Dir: l.dir, Problems: slices.Clone(s.Problems)}
	for _, f := range s.Files {
		out := status.File{Path: f.Path, Pods: f.Pods, Held: f.Held, Problems: slices.Clone(f.Problems)}
		for _, p := range l.table.All() {
			key := p.Key()
			if p.File == f.Path && l.table.Entry(key).Pod != nil {
				out.Held = true
				out.Problems = append(out.Problems, status.Problem{File: f.Path, Pod: key.String(), Message: l.table.Rejected[key].Message})
			}
		}
		out.Held = out.Held || l.heldVersion(f.Path)
		out.Problems = append(out.Problems, l.order.found[f.Path]...)
		m.Files = append(m.Files, out)
	}
	l.store.SetManifests(m)
	l.recordProblems(&m)
}
