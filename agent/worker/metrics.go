package worker

import (
	"context"
	"time"

	"monopod/agent/metrics"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// timedPass runs a pass and counts it, unless the runtime is down.
func (w *Worker) timedPass(ctx context.Context, u Update) look {
	if u.Pod != nil && w.pod.current != u && !u.Read.IsZero() {
		w.pod.shared.Metrics.WorkerStart(u.Read)
	}
	if !w.pod.shared.Watch.Up() {
		return w.containedPass(ctx, u)
	}
	op, start, failed := plan.OperationOf(u.Pod, w.pod.known, w.pod.current != u), time.Now(), w.failed
	next := w.containedPass(ctx, u)
	result := metrics.Idle
	switch {
	case w.failed > failed:
		result = metrics.Failed
	case next.again:
		result = metrics.Acted
	}
	w.pod.shared.Metrics.Pass(op, start, result)
	return next
}

// observe observes the pod in the runtime and counts the exits that are new.
func (w *Worker) observe(ctx context.Context) (*pleg.Observed, error) {
	start := time.Now()
	seen, err := w.Observer.Observe(ctx)
	if err == nil {
		w.pod.shared.Metrics.Look(start)
	}
	w.countEnds()
	return seen, err
}

// count counts an action that was carried out or failed.
func (w *Worker) count(s *plan.Facts, a plan.Action, err error) {
	if w.pod.shared.Metrics == nil {
		return
	}
	switch a.Do {
	case plan.DoAccept:
		if err == nil {
			w.pod.shared.Metrics.PodAccepted(len(s.Pod.Spec.Containers))
			w.report.starting = &pendingStart{uid: a.UID, read: w.pod.current.Read, changed: metrics.ChangeOf(s.Pod.File, w.pod.shared.Born)}
		}
	case plan.DoCreateSandbox:
		w.pod.shared.Metrics.PodStart(err)
	case plan.DoStartContainer, plan.DoResumeContainer:
		code := ""
		if err != nil {
			code = plan.Explain(err).Reason
		}
		w.pod.shared.Metrics.ContainerStart(podspec.IsInit(s.Pod.Pod, podspec.FindContainer(s.Pod.Pod, a.Name)), code)
	case plan.DoEnd:
		w.pod.shared.Metrics.ForgetProbes(w.pod.key.Namespace, w.pod.key.Name, a.UID)
	case plan.DoForget:
		w.pod.shared.Metrics.ForgetProbes(w.pod.key.Namespace, w.pod.key.Name, a.UID)
		if s.Pod != nil && string(s.Pod.UID) == a.UID {
			w.pod.shared.Metrics.PodRestarted()
		}
	}
}

// countEnds counts the containers that ended since the last observation.
func (w *Worker) countEnds() {
	for _, c := range w.Observer.Ended {
		init := false
		if k := w.pod.known[c.Labels[podspec.LabelPodUID]]; k != nil {
			init = podspec.IsInitName(k.Pod, c.Metadata.GetName())
		}
		w.pod.shared.Metrics.ContainerEnded(init, c.ExitCode, c.Reason)
	}
	w.Observer.Ended = nil
}
