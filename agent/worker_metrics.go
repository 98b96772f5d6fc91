package agent

import (
	"context"
	"os"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/metrics"
	"monopod/agent/probe"
)

// timedPass is a pass that is counted, unless the runtime is away.
func (w *worker) timedPass(ctx context.Context, u Update) (again bool, next time.Time) {
	if u.Pod != nil && w.current != u && !u.Read.IsZero() {
		w.metrics.WorkerStart(u.Read)
	}
	if !w.watch.Up() {
		return w.containedPass(ctx, u)
	}
	op, begun, failed := w.operation(u), time.Now(), w.failed
	again, next = w.containedPass(ctx, u)
	result := metrics.Idle
	switch {
	case w.failed > failed:
		result = metrics.Failed
	case again:
		result = metrics.Acted
	}
	w.metrics.Pass(op, begun, result)
	return again, next
}

// look observes the pod in the runtime and counts what is new.
func (w *worker) look(ctx context.Context) (*observed, error) {
	begun := time.Now()
	seen, err := w.observer.observe(ctx)
	if err == nil {
		w.metrics.Look(begun)
	}
	w.countEnds()
	return seen, err
}

// operation tells what a pass is for, in the kubelet's terms.
func (w *worker) operation(u Update) metrics.Operation {
	if u.Pod == nil {
		return metrics.Kill
	}
	c := w.known[string(u.Pod.UID)]
	switch {
	case c == nil:
		return metrics.Create
	case c.retired():
		return metrics.Kill
	case c.ended() != "":
		return metrics.Terminated
	case w.current != u:
		return metrics.Update
	}
	return metrics.Sync
}

// count takes note of an action that was carried out, or of how it failed.
func (w *worker) count(s *situation, a action, err error) {
	if w.metrics == nil {
		return
	}
	switch a.Do {
	case doAccept:
		if err == nil {
			w.metrics.PodAccepted(len(s.Pod.Spec.Containers))
			w.coming = &coming{uid: a.UID, read: w.current.Read, changed: changeOf(s.Pod.File, w.workers.born)}
		}
	case doCreateSandbox:
		w.metrics.PodStart(err)
	case doStartContainer, doResumeContainer:
		code := ""
		if err != nil {
			code = explain(err).Reason
		}
		w.metrics.ContainerStart(isInit(s.Pod.Pod, findContainer(s.Pod.Pod, a.Name)), code)
	case doEnd:
		w.metrics.ForgetProbes(w.key.Namespace, w.key.Name, a.UID)
	case doForget:
		w.metrics.ForgetProbes(w.key.Namespace, w.key.Name, a.UID)
		if s.Pod != nil && string(s.Pod.UID) == a.UID {
			w.metrics.PodRestarted()
		}
	}
}

// observeVolume takes note of a volume that was made.
func (w *worker) observeVolume(v *v1.Volume, begun time.Time, err error) {
	w.metrics.Volume(volumePlugin(v), begun, err)
}

// coming is a pod that was accepted and has not run yet.
type coming struct {
	uid           string
	read, changed time.Time // zero: not known
}

// came takes note that a pod runs for the first time.
func (w *worker) came(uid string, st *v1.PodStatus) {
	c := w.coming
	if c == nil || st.Phase == v1.PodPending {
		return
	}
	w.coming = nil
	if c.uid == uid && st.Phase == v1.PodRunning {
		w.metrics.PodRunning(c.read, c.changed)
	}
}

// changeOf returns when a file got its content or its name, unless that was
// before the agent was there or cannot be known.
func changeOf(file string, start time.Time) time.Time {
	fi, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	at := time.Unix(st.Ctim.Unix())
	if at.Before(start) || at.After(time.Now()) {
		return time.Time{}
	}
	return at
}

// countEnds takes note of the containers that ended since they were looked at last.
func (w *worker) countEnds() {
	for _, c := range w.observer.ended {
		init := false
		if k := w.known[c.Labels[labelPodUID]]; k != nil {
			init = isInitName(k.Pod, c.Metadata.GetName())
		}
		w.metrics.ContainerEnded(init, c.ExitCode, c.Reason)
	}
	w.observer.ended = nil
}

func isInitName(p *v1.Pod, name string) bool {
	for k := range p.Spec.InitContainers {
		if p.Spec.InitContainers[k].Name == name {
			return true
		}
	}
	return false
}

// justEnded reports whether a container ended while somebody looked after it,
// who began at that time. was is what was seen of it before, nil for nothing.
func justEnded(was, now *rt.ContainerStatus, begun time.Time) bool {
	if now.State != rt.ContainerState_CONTAINER_EXITED {
		return false
	}
	return was != nil && was.State != now.State || was == nil && now.FinishedAt >= begun.UnixNano()
}

// probeCounter counts what the probes find.
func probeCounter(m *metrics.Metrics) func(*probe.Target, probe.Kind, probe.Finding, time.Duration) {
	results := map[probe.Finding]string{probe.Succeeded: metrics.ProbeSuccessful, probe.Failed: metrics.ProbeFailed, probe.Unknown: metrics.ProbeUnknown}
	return func(t *probe.Target, k probe.Kind, f probe.Finding, took time.Duration) {
		m.Probe(metrics.Probed{Kind: k.Title(), Container: t.Container.Name, Pod: t.Pod.Name, Namespace: t.Pod.Namespace, UID: string(t.Pod.UID)}, results[f], took)
	}
}
