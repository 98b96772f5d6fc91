package agent

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/node"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/manifests"
)

// admit lets the pod run if there is a place for it, else its former version if
// that has one.
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
		outcome := "there is no place for the pod; it waits"
		if now.Final() {
			outcome = "the pod can never run on this node; it has failed"
		}
		log.Warn(outcome, "reason", now.Reason, "err", now.Message, "former", version != nil)
		l.recordRefusal(p, now.Rejection)
	case waited && !waits:
		log.Info("there is a place for the pod now")
	}
	if version != nil || l.restored[key] != nil {
		l.setDesired(ctx, key, version)
	}
}

// readmit asks again for the pods that wait, and reports those that wait on.
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
		l.shared.Log.Info("the pod makes place for others that make place for it", "pod", key.String())
		l.table.Free(l.table.Entry(key))
		l.setDesired(ctx, key, nil)
	}
	for key, r := range l.table.Rejected {
		// A worker that is there reports what it has under this name.
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

// setFacts goes by what the node is now.
func (l *syncLoop) setFacts(ctx context.Context, f node.Facts) {
	f.StrictGroups, f.RuntimeAsked = l.shared.Watch.StrictGroups()
	if f.Same(&l.table.Facts) {
		return
	}
	l.table.Facts = f
	l.readmit(ctx)
}

// factsRead is what came of reading the machine.
type factsRead struct {
	node.Facts
	err error
}

// refreshFacts has the machine read anew while a pod waits: it may have grown.
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
		f, err := l.shared.Machine.ReadFacts()
		if err != nil {
			l.shared.Log.Error("what the node has is not known anew", "err", err)
		}
		select {
		case l.facts <- factsRead{f, err}:
		case <-ctx.Done():
		}
	})
}

// read is the endpoint's check that it is known what shall run: the folder was
// listed, and each file in it that can be read was read, once. A file that is
// wrong or unreadable does not count against that, as it is shown elsewhere and
// may stay so; a folder that is not there, or cannot be read, does.
func (l *syncLoop) read() error {
	if !l.known.Load() {
		return errors.New("the manifests have not been read yet")
	}
	return nil
}

// report hands what became of the manifests to the store: what the Source
// says, and which pods keep their former version because the new one has no place.
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
