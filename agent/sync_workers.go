package agent

import (
	"context"

	"monopod/agent/checkpoint"
	"monopod/agent/objects"
	"monopod/agent/worker"
	"monopod/manifests"
)

// podWorker is the worker of one pod name, with its last update.
type podWorker struct {
	*worker.Worker
	update worker.Update
	ready  bool // the worker reported that the pod of this update is ready
	stop   context.CancelFunc
}

// setDesired gives the worker its desired pod and starts one if there is none.
func (l *syncLoop) setDesired(ctx context.Context, key manifests.Key, p *manifests.Pod) {
	if p != nil {
		l.order.Started(key, p.UID)
	}
	w := l.workers[key]
	if w != nil && manifests.Same(w.update.Pod, p) {
		return
	}
	l.updates++
	u := worker.Update{Pod: p, Generation: l.updates}
	if a, known := l.arrivals[key]; known && manifests.Same(a.pod, p) {
		u.Read = a.at
	}
	if w != nil {
		w.update = u
		l.setReady(key, w, false)
		w.Update(u)
		return
	}
	known := l.restored[key]
	delete(l.restored, key)
	if known == nil {
		known = map[string]*checkpoint.Checkpoint{}
	}
	own, stop := context.WithCancel(ctx)
	l.workers[key] = &podWorker{update: u, stop: stop, Worker: l.shared.Start(own, &l.running, key, known, u)}
}

// setReady records whether the pod of the worker's update is ready.
func (l *syncLoop) setReady(key manifests.Key, w *podWorker, ready bool) {
	if w.ready != ready {
		w.ready = ready
		l.order.Touch(key)
	}
}

// isReady reports whether the pod that a worker runs under this name is ready. While
// a new version waits for admission that is the previous version, which counts too.
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

// replaceObjects makes these the objects that there are, and wakes the workers whose pods
// refer to one that has changed. It reports whether there is any.
func (l *syncLoop) replaceObjects(all []*manifests.Object) bool {
	changed := l.shared.Disk.Objects.Replace(all)
	if len(changed) == 0 {
		return false
	}
	for _, w := range l.workers {
		if p := w.update.Pod; p != nil && objects.Concern(p.Pod, changed) {
			w.ObjectsChanged()
		}
	}
	return true
}
