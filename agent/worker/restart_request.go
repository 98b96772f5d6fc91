package worker

import (
	"context"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/manifests"
)

// RestartRequest is a restart that somebody asks for: of one container, or of a whole
// pod. It travels through the sync loop to the pod's worker, which answers once
// it is written down: from then on it happens, whatever becomes of the agent.
type RestartRequest struct {
	Ctx       context.Context // of who asks; nothing is begun after its end
	Key       manifests.Key
	Container string                  // "": the whole pod
	Answer    chan plan.RestartAnswer // has room for the one answer
}

// RequestRestart has the worker's next pass carry out a renewal, which comes soon even
// if the worker waits after a failure.
func (w *Worker) RequestRestart(r *RestartRequest) {
	w.mu.Lock()
	w.restarts = append(w.restarts, r)
	w.mu.Unlock()
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// takeRestartRequests writes down what is asked for, for the plan that comes after it, and
// answers. What failed before is tried again at once.
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
			answer.Err = w.do(w.Life, s, a)
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
			w.Images.Forget(string(s.Pod.UID))
		}
		w.Log.Info("restart", "container", r.Container, "reason", checkpoint.RestartRequested)
		r.Answer <- answer
	}
}

// clearFailures forgets what has failed of a container or the sandbox.
func (w *Worker) clearFailures(name string) {
	delete(w.failures, name)
	if f := w.fetches[name]; f != nil && f.ready() {
		delete(w.fetches, name)
	}
}
