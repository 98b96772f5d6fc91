package agent

import (
	"context"
	"fmt"

	"monopod/agent/status"
	"monopod/manifests"
)

// renewal is a restart that somebody asks for: of one container, or of a whole
// pod. It travels through the sync loop to the pod's worker, which answers once
// it is written down: from then on it happens, whatever becomes of the agent.
type renewal struct {
	ctx       context.Context // of who asks; nothing is begun after its end
	key       manifests.Key
	container string       // "": the whole pod
	answer    chan renewed // has room for the one answer
}

type renewed struct {
	restart *status.Restart
	err     error // a *status.Refusal, or what went wrong
}

func declined(format string, args ...any) renewed {
	return renewed{err: &status.Refusal{Why: fmt.Sprintf(format, args...)}}
}

func unknown(format string, args ...any) renewed {
	return renewed{err: &status.Refusal{Unknown: true, Why: fmt.Sprintf(format, args...)}}
}

// Restart replaces a container, or a whole pod if none is named, and returns
// when that is sure to happen. Errors are *status.Refusal, or those of ctx and
// of a disk that takes no checkpoint.
func (l *syncLoop) Restart(ctx context.Context, namespace, pod, container string) (*status.Restart, error) {
	r := &renewal{ctx: ctx, key: manifests.Key{Namespace: namespace, Name: pod}, container: container, answer: make(chan renewed, 1)}
	select {
	case l.renewals <- r:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-r.answer:
		return a.restart, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// renew hands a renewal to the pod's worker.
func (l *syncLoop) renew(r *renewal) {
	w := l.workers[r.key]
	_, reported := l.store.Pod(r.key.String())
	switch {
	case w == nil && reported:
		r.answer <- declined("nothing of pod %s runs yet: see what it waits for", r.key)
	case w == nil:
		r.answer <- unknown("there is no pod %s", r.key)
	case l.told(r.key) == nil:
		r.answer <- declined("pod %s is being removed", r.key)
	default:
		w.askFor(r)
	}
}

// askFor has the worker's next pass carry out a renewal, which comes soon even
// if the worker waits after a failure.
func (w *worker) askFor(r *renewal) {
	w.mu.Lock()
	w.renewals = append(w.renewals, r)
	w.mu.Unlock()
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// renew writes down what is asked for, for the plan that comes after it, and
// answers. What failed before is tried again at once.
func (w *worker) renew(s *situation) {
	w.mu.Lock()
	all := w.renewals
	w.renewals = nil
	w.mu.Unlock()
	for _, r := range all {
		if r.ctx.Err() != nil {
			continue
		}
		a, answer := s.renewal(r.container)
		if answer.err == nil && a.Do != "" {
			answer.err = w.do(w.life, s, a)
		}
		if answer.err != nil {
			r.answer <- answer
			continue
		}
		for name := range answer.restart.Replaces {
			w.forgive(name)
		}
		if r.container == "" {
			w.forgive(sandboxFailure)
			w.images.Forget(string(s.Pod.UID))
		}
		w.log.Info("restart", "container", r.container, "reason", askedFor)
		r.answer <- answer
	}
}

// forgive forgets what has failed of a container or the sandbox.
func (w *worker) forgive(name string) {
	delete(w.failures, name)
	if f := w.fetches[name]; f != nil && f.ready() {
		delete(w.fetches, name)
	}
}
