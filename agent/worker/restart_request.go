package worker

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/manifests"
)

// RestartRequest is a request to restart one container or a whole pod. The sync loop passes it to
// the pod's worker, which answers once it is saved: from then on the restart happens even if the
// agent dies.
type RestartRequest struct {
	Ctx       context.Context // of the caller; when it ends, the request is dropped
	Key       manifests.Key
	Container string                  // "": the whole pod
	Answer    chan plan.RestartAnswer // has room for the one answer
}

// RequestRestart queues a restart request and wakes the worker, even if it waits
// after a failure.
func (w *Worker) RequestRestart(r *RestartRequest) {
	w.mu.Lock()
	w.restarts = append(w.restarts, r)
	w.mu.Unlock()
	w.requested.Wake()
}

// ObjectsChanged notifies the worker that an object to which the pod refers has changed.
func (w *Worker) ObjectsChanged() {
	w.objects.Store(true)
	w.requested.Wake()
}

// ImagesCame notifies the worker that an image has come which its pod names.
func (w *Worker) ImagesCame() {
	w.came.Store(true)
	w.requested.Wake()
}

// DevicesCame notifies the worker that devices have come or gone which the pod may request.
func (w *Worker) DevicesCame() { w.ImagesCame() }

// followArrivals retries at once what failed when an image or a device has come.
func (w *Worker) followArrivals(s *plan.Facts) {
	if s.Pod != nil && w.came.Swap(false) {
		w.retryAll(string(s.Pod.UID))
	}
}

// retryAll retries at once what failed of the pod of a uid.
func (w *Worker) retryAll(uid string) {
	for name := range w.failures {
		w.clearFailures(name)
	}
	w.pod.shared.Images.Forget(uid)
}

// followObjects retries at once what failed when an object has changed, and updates the volumes of
// a pod that runs.
func (w *Worker) followObjects(s *plan.Facts) {
	if s.Pod == nil {
		return
	}
	now := w.pod.shared.Disk.Objects.Now()
	changed := w.edits.missed(now)
	changed = w.objects.Swap(false) || changed
	if changed {
		w.retryAll(string(s.Pod.UID))
	}
	w.followEdits(s, now, changed)
	s.Env = w.edits.seen.Env(s.Pod.Pod) // of what the volumes show after the update below, or will show
	var err error
	runs := s.Instance().Sandbox() != nil && s.Checkpoint().Ended() == ""
	if s.Refresh, err = w.pod.files.FollowObjects(w.pod.life, s.Pod, w.pod.shared.Disk.Machine.Now(), s.Now, changed, runs); err != nil {
		w.pod.log.Warn("volumes keep their content", "reason", "FailedMount", "err", err)
		w.pod.shared.Events.Record(events.About(s.Pod.Pod), v1.EventTypeWarning, "FailedMount", message.Private(err.Error()))
	}
	s.Former = w.pod.files.Former()
}

// takeRestartRequests saves the restart requests, for the plan of this pass, and
// answers them. Failed starts are retried at once.
func (w *Worker) takeRestartRequests(s *plan.Facts) {
	w.mu.Lock()
	all := w.restarts
	w.restarts = nil
	w.mu.Unlock()
	for _, r := range all {
		if r.Ctx.Err() != nil {
			continue
		}
		a, answer := s.RequestRestart(r.Container)
		if answer.Err == nil && a.Do != "" {
			answer.Err = w.do(w.pod.life, s, a)
		}
		if answer.Err != nil {
			r.Answer <- answer
			continue
		}
		for name := range answer.Restart.Replaces {
			w.clearFailures(name)
		}
		if r.Container == "" {
			w.clearFailures(plan.SandboxFailure)
			w.pod.shared.Images.Forget(string(s.Pod.UID))
		}
		w.pod.log.Info("restart recorded", "container", r.Container, "reason", checkpoint.RestartRequested)
		r.Answer <- answer
	}
}

// clearFailures forgets the failures of a container or the sandbox.
func (w *Worker) clearFailures(name string) {
	delete(w.failures, name)
	w.fetches.DropEnded(name)
}
