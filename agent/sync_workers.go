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
	update   worker.Update
	file     string // the manifest that gave its last pod; "": it never had one here
	ready    bool   // the worker reported that the pod of this update is ready
	prepared bool   // and that the next version has what it needs
	lasting  bool   // the next version waits for more than its pulls, or since before this agent
	unmade   bool   // and that no container of the pod was ever created
	idle     bool   // and that nothing of it runs, or is going to
	stop     context.CancelFunc
}

// setDesired gives the worker its desired pod and starts one if there is none.
func (l *syncLoop) setDesired(ctx context.Context, key manifests.Key, p *manifests.Pod) {
	l.send(ctx, key, worker.Update{Pod: p})
}

// send gives the worker an update, if it is one, and starts a worker if there is none.
func (l *syncLoop) send(ctx context.Context, key manifests.Key, u worker.Update) {
	u = l.terminated(key, u)
	p, w := u.Pod, l.workers[key]
	if p != nil && u.Halted.Reason == "" {
		l.order.Started(p)
	}
	if w != nil && p != nil {
		w.file = p.File
	}
	u.Told = l.rolled.Told(p)
	if w != nil && manifests.Same(w.update.Pod, p) && manifests.Same(w.update.Next, u.Next) && w.update.Refused == u.Refused &&
		w.update.Told == u.Told && w.update.Gated == u.Gated && w.update.Halted == u.Halted {
		return
	}
	l.updates++
	u.Generation = l.updates
	l.stale = l.stale || u.Next != nil || w != nil && w.update.Next != nil
	if a := l.desired.Of(key); a != nil && manifests.Same(a.Pod, p) {
		u.Read = a.At
	}
	if w != nil {
		if !manifests.Same(w.update.Next, u.Next) {
			w.prepared, w.lasting = false, false
		}
		l.setReady(key, w, w.ready && manifests.Same(w.update.Pod, p) && u.Halted.Reason == "" && (u.Next == nil || w.lasting))
		w.update, w.unmade, w.idle = u, false, false
		w.Update(u)
		return
	}
	known := l.restored[key]
	delete(l.restored, key)
	if known == nil {
		known = map[string]*checkpoint.Checkpoint{}
	}
	own, stop := context.WithCancel(ctx)
	l.workers[key] = &podWorker{update: u, lasting: u.Next != nil, file: fileOf(p, known), stop: stop, Worker: l.shared.Start(own, &l.running, key, known, u)}
}

// fileOf returns the manifest of a pod, or where there is none of what is left of it.
func fileOf(p *manifests.Pod, left map[string]*checkpoint.Checkpoint) string {
	if p != nil {
		return p.File
	}
	for _, c := range left {
		return c.File
	}
	return ""
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
		if p := w.update.Next; p != nil && objects.Concern(p.Pod, changed) {
			w.Wake()
		}
	}
	return true
}

// handleStates records what workers have reported by now: what many of them free is
// given away once.
func (l *syncLoop) handleStates(now worker.State) {
	l.handleState(now)
	for range len(l.workers) {
		select {
		case now := <-l.shared.States:
			l.handleState(now)
		default:
			return
		}
	}
}

// handleState records the state that a worker reports. A state of an earlier update
// is ignored.
func (l *syncLoop) handleState(now worker.State) {
	w := l.workers[now.Key]
	if w == nil || w.update.Generation != now.Generation {
		return
	}
	if !now.Gone {
		if w.idle = now.Halted || now.Ended; w.update.Halted.Reason == "" {
			l.rolled.Saw(w.update.Pod, now.Health)
		}
		w.prepared, w.unmade, w.lasting = now.Prepared, now.Unmade, w.lasting || now.Waits
		if w.update.Next != nil && (now.Prepared || now.Unmade || now.Ended) {
			l.due = append(l.due, now.Key)
		}
		if now.Cleared {
			l.setReady(now.Key, w, now.Ready && (w.update.Next == nil || w.lasting))
			l.table.Update(now.Key, w.update.Halted.Reason == "" || now.Halted, now.Ended)
		}
		return
	}
	w.stop()
	l.setReady(now.Key, w, false)
	delete(l.workers, now.Key)
	delete(l.seen.Pods, now.Key)
	l.table.Remove(now.Key)
	l.stale = l.stale || !l.desired.Has(now.Key) // its file is reported until then
	l.refused[now.Key] = true                    // a version that waits is reported by the loop from now on
	l.order.Renew(now.Key)
}
