package agent

import (
	"context"

	"monopod/agent/plan"
	"monopod/agent/status"
	"monopod/agent/worker"
	"monopod/manifests"
)

// Restart restarts a container, or replaces the whole pod if none is named. It
// returns when the restart is recorded in the checkpoint. Errors are
// *status.Refusal, or those of ctx and of a disk that takes no checkpoint.
func (l *syncLoop) Restart(ctx context.Context, namespace, pod, container string) (*status.Restart, error) {
	r := &worker.RestartRequest{Ctx: ctx, Key: manifests.Key{Namespace: namespace, Name: pod}, Container: container, Answer: make(chan plan.RestartAnswer, 1)}
	select {
	case l.restarts <- r:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-r.Answer:
		return a.Restart, a.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handleRestart hands a restart request to the pod's worker.
func (l *syncLoop) handleRestart(r *worker.RestartRequest) {
	w := l.workers[r.Key]
	_, reported := l.store.Pod(r.Key.String())
	switch {
	case w == nil && reported:
		r.Answer <- plan.Declined("nothing of pod %s runs yet: see what it waits for", r.Key)
	case w == nil:
		r.Answer <- plan.Unknown("there is no pod %s", r.Key)
	case l.desiredOf(r.Key) == nil:
		r.Answer <- plan.Declined("pod %s is being removed", r.Key)
	case w.update.Halted.Reason != "":
		r.Answer <- plan.Declined("pod %s does not run: %s", r.Key, w.update.Halted.Message)
	default:
		w.RequestRestart(r)
	}
}
