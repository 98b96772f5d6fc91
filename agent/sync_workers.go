package agent

import (
	"context"

	"monopod/agent/checkpoint"
	"monopod/agent/worker"
	"monopod/manifests"
)

// podWorker is the worker of one pod name, with its last update.
type podWorker struct {
	*worker.Worker
	update   worker.Update
	ready    bool // the worker reported that the pod of this update is ready
	prepared bool // and that the next version has what it needs
	lasting  bool // the next version waits for more than its pulls, or since before this agent
	unmade   bool // and that no container of the pod was ever created
	stop     context.CancelFunc
}

// setDesired gives the worker its desired pod and starts one if there is none.
func (l *syncLoop) setDesired(ctx context.Context, key manifests.Key, p *manifests.Pod) {
	l.send(ctx, key, worker.Update{Pod: p})
}

// send gives the worker an update, if it is one, and starts a worker if there is none.
func (l *syncLoop) send(ctx context.Context, key manifests.Key, u worker.Update) {
	p, w := u.Pod, l.workers[key]
	if p != nil && u.Halted.Reason == "" {
		l.order.Started(key, p.UID)
	}
	if w != nil && manifests.Same(w.update.Pod, p) && manifests.Same(w.update.Next, u.Next) && w.update.Refused == u.Refused && w.update.Gated == u.Gated && w.update.Halted == u.Halted {
		return
	}
	l.updates++
	u.Generation = l.updates
	l.stale = l.stale || u.Next != nil || w != nil && w.update.Next != nil
	if a, known := l.arrivals[key]; known && manifests.Same(a.pod, p) {
		u.Read = a.at
	}
	if w != nil {
		if !manifests.Same(w.update.Next, u.Next) {
			w.prepared, w.lasting = false, false
		}
		l.setReady(key, w, w.ready && manifests.Same(w.update.Pod, p) && u.Halted.Reason == "" && (u.Next == nil || w.lasting))
		w.update, w.unmade = u, false
		w.Update(u)
		return
	}
	known := l.restored[key]
	delete(l.restored, key)
	if known == nil {
		known = map[string]*checkpoint.Checkpoint{}
	}
	own, stop := context.WithCancel(ctx)
	l.workers[key] = &podWorker{update: u, lasting: u.Next != nil, stop: stop, Worker: l.shared.Start(own, &l.running, key, known, u)}
}

// setReady records whether the pod of the worker's update is ready.
func (l *syncLoop) setReady(key manifests.Key, w *podWorker, ready bool) {
	if w.ready != ready {
		w.ready = ready
		l.order.Touch(key)
	}
}

// isReady reports whether the pod that a worker runs under this name is ready. While
// a new version waits that is the previous version, which counts too, unless the new one
// is only being pulled.
func (l *syncLoop) isReady(key manifests.Key) bool {
	w := l.workers[key]
	return w != nil && w.update.Pod != nil && w.ready
}

// desiredOf returns the desired pod of the worker, nil without a worker.
func (l *syncLoop) desiredOf(key manifests.Key) *manifests.Pod {
	if w := l.workers[key]; w != nil {
		return w.update.Pod
	}
	return nil
}
