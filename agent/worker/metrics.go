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
	if u.Pod != nil && w.current != u && !u.Read.IsZero() {
		w.Metrics.WorkerStart(u.Read)
	}
	if !w.Watch.Up() {
		return w.containedPass(ctx, u)
	}
	op, start, failed := plan.OperationOf(u.Pod, w.Known, w.current != u), time.Now(), w.failed
	next := w.containedPass(ctx, u)
	result := metrics.Idle
	switch {
	case w.failed > failed:
		result = metrics.Failed
	case next.again:
		result = metrics.Acted
	}
	w.Metrics.Pass(op, start, result)
	return next
}

// observe observes the pod in the runtime and counts the exits that are new.
func (w *Worker) observe(ctx context.Context) (*pleg.Observed, error) {
	start := time.Now()
	seen, err := w.Observer.Observe(ctx)
	if err == nil {
		w.Metrics.Look(start)
	}
	w.countEnds()
	return seen, err
}

// count counts an action that was carried out or failed.
func (w *Worker) count(s *plan.Facts, a plan.Action, err error) {
	if w.Metrics == nil {
		return
	}
	switch a.Do {
	case plan.DoAccept:
		if err == nil {
			w.Metrics.PodAccepted(len(s.Pod.Spec.Containers))
			w.report.starting = &pendingStart{uid: a.UID, read: w.current.Read, changed: metrics.ChangeOf(s.Pod.File, w.Pool.Born)}
		}
	case plan.DoCreateSandbox:
		w.Metrics.PodStart(err)
	case plan.DoStartContainer, plan.DoResumeContainer:
		code := ""
		if err != nil {
			code = plan.Explain(err).Reason
		}
		w.Metrics.ContainerStart(podspec.IsInit(s.Pod.Pod, podspec.FindContainer(s.Pod.Pod, a.Name)), code)
	case plan.DoEnd:
		w.Metrics.ForgetProbes(w.Key.Namespace, w.Key.Name, a.UID)
	case plan.DoForget:
		w.Metrics.ForgetProbes(w.Key.Namespace, w.Key.Name, a.UID)
		if s.Pod != nil && string(s.Pod.UID) == a.UID {
			w.Metrics.PodRestarted()
		}
	}
}

// countEnds counts the containers that ended since the last observation.
func (w *Worker) countEnds() {
	for _, c := range w.Observer.Ended {
		init := false
		if k := w.Known[c.Labels[podspec.LabelPodUID]]; k != nil {
			init = podspec.IsInitName(k.Pod, c.Metadata.GetName())
		}
		w.Metrics.ContainerEnded(init, c.ExitCode, c.Reason)
	}
	w.Observer.Ended = nil
}
