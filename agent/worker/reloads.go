package worker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/hook"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/saidonce"
	"monopod/cri"
	"monopod/manifests/annotations"
)

// reloadWithin is how long telling a container of its changed config may take.
const reloadWithin = time.Minute

// reload is the job that tells a container of its changed config.
type reload struct {
	job   *job
	words string // of what, see objects.Set.EnvOf
	by    string // how
	name  string // of the container

	// The worker's, after it.
	tries int // that failed in a row
	retry time.Time
	saved bool // of what it was told
}

// reloads are the last reloads of the containers that are alive. The
// worker's goroutine owns the map.
type reloads struct {
	pod    *pod
	all    map[string]*reload // by container id
	logged saidonce.Errors    // by container id: of reloads that failed
}

// start starts a reload. Its end wakes the worker.
func (r *reloads) start(s *plan.Facts, a plan.Action) {
	reaction := annotations.ReactionOf(s.Pod.Pod, a.Name)
	now := &reload{job: newJob(r.pod.life, func() {}), words: a.Text, by: reaction.String(), name: a.Name}
	if was := r.all[a.ID]; was != nil && was.words == now.words {
		now.tries = was.tries
	}
	r.all[a.ID] = now
	about := r.pod.events.About(a.UID, a.Name)
	r.pod.begin(now.job, a.Do.Noun(), a.Name, func(ctx context.Context) error {
		err := r.tell(ctx, a.ID, reaction)
		if cri.Unavailable(err) {
			r.pod.shared.Watch.Wake(err)
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		isNews := r.logged.IsNew(a.ID, err)
		if err == nil {
			r.pod.log.Info("container told of its changed config", "container", a.Name, "by", now.by, "reason", a.Reason)
			r.pod.shared.Events.Record(about, v1.EventTypeNormal, "Reloaded",
				message.Of("Told container %s of its changed config: %s", message.Name(a.Name), message.Private(now.by+": "+a.Reason)))
			return nil
		}
		if isNews {
			r.pod.log.Warn("container is not told of its changed config; retrying", "container", a.Name, "by", now.by, "reason", a.Reason, "err", err, "output", hook.Output(err))
		}
		r.pod.shared.Events.Record(about, v1.EventTypeWarning, "FailedReload",
			message.Of("Container %s is not told of its changed config: %s", message.Name(a.Name), message.Private(now.by+": "+err.Error())))
		return err
	}, r.pod.Wake)
}

// tell tells a container that its config has changed.
func (r *reloads) tell(ctx context.Context, id string, by annotations.Reaction) error {
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	if by.Signal == "" {
		return exec(ctx, r.pod.shared.Cri, id, by.Command, reloadWithin)
	}
	pid, err := r.pod.shared.Cri.ContainerPID(ctx, id)
	switch {
	case err != nil:
		return err
	case pid <= 0:
		return errors.New("the runtime does not say which process is the container's first")
	}
	return hook.Signal(hook.Proc, pid, id, by.Signal)
}

// states returns the states of the reloads, and records those that are done.
func (r *reloads) states(seen *pleg.Observed) map[string]plan.Reloading {
	var out map[string]plan.Reloading
	for id, n := range r.all {
		now := plan.Reloading{Words: n.words}
		switch {
		case !n.job.hasEnded():
		case n.job.err == nil:
			now.Told = true
			r.save(seen, id, n)
		default:
			if n.retry.IsZero() {
				n.tries++
				n.retry = nextTry(n.tries)
			}
			now.Retry = n.retry
			now.Text = message.Of("container %s is not told of its changed config by %s: %s; next try at %s",
				message.Name(n.name), message.Private(n.by), message.Private(n.job.err.Error()), message.Time(n.retry))
		}
		if out == nil {
			out = map[string]plan.Reloading{}
		}
		out[id] = now
	}
	return out
}

// nextTry returns when to tell a container again after this number of failures in a row.
func nextTry(failures int) time.Time {
	wait := plan.RetryAfter(failures)
	if failures > patientAfter {
		wait = time.Minute
	}
	return time.Now().Add(wait)
}

// save records, once, of what a container was told. Without that the next agent tells it once more.
func (r *reloads) save(seen *pleg.Observed, id string, n *reload) {
	for uid, i := range seen.Instances {
		if c := r.pod.known[uid]; c != nil && i.Has(id) && !n.saved {
			n.saved = true
			r.pod.rememberOrWarn(c.WithReloaded(id, n.words, i.Has), "of which changed config a container was told")
		}
	}
}

// forget ends and forgets the reloads of containers that are not alive.
func (r *reloads) forget(alive map[string]bool) {
	for id, n := range r.all {
		if !alive[id] {
			n.job.cancel(nil)
			delete(r.all, id)
			r.logged.IsNew(id, nil)
		}
	}
}
