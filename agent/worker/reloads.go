package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/clip"
	"monopod/agent/hook"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/cri"
	"monopod/manifests/annotations"
)

// reloadWithin is how long a command that tells a container of its changed config may take, and
// reloadWords how much is kept of why it failed, in bytes.
const (
	reloadWithin = time.Minute
	reloadWords  = 1024
)

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

// isOver reports whether the container was told.
func (n *reload) isOver() bool { return n.job.hasEnded() && n.job.err == nil }

// reloads are the last reloads of the containers that are alive. The worker's goroutine owns the map.
type reloads struct {
	pod *pod
	all map[string]*reload // by container id
}

// start starts a reload. Its end wakes the worker.
func (r *reloads) start(s *plan.Facts, a plan.Action) {
	reaction := annotations.ReactionOf(s.Pod.Pod, a.Name)
	now := &reload{job: newJob(r.pod.life, func() {}), words: a.Text, by: reaction.String(), name: a.Name}
	if was := r.all[a.ID]; was != nil && was.words == now.words && was.by == now.by && !was.isOver() {
		now.tries = was.tries
	}
	r.all[a.ID] = now
	isFirst := now.tries == 0
	r.record(s.Observed, a.ID, checkpoint.Told.Trying, a.Text)
	about := r.pod.events.About(a.UID, a.Name)
	r.pod.begin(now.job, a.Do.Noun(), a.Name, func(ctx context.Context) error {
		err := clip.Error(r.tell(ctx, a.ID, reaction), reloadWords)
		if cri.Unavailable(err) {
			r.pod.shared.Watch.Wake(err)
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		if err == nil {
			r.pod.log.Info("container told of its changed config", "container", a.Name, "by", now.by, "reason", a.Reason)
			r.pod.shared.Events.Record(about, v1.EventTypeNormal, "Reloaded",
				message.Of("Told container %s of its changed config: %s", message.Name(a.Name), message.Private(now.by+": "+a.Reason)))
			return nil
		}
		level := slog.LevelDebug
		if isFirst {
			level = slog.LevelWarn
		}
		r.pod.log.Log(ctx, level, "container is not told of its changed config; retrying", "container", a.Name, "by", now.by, "reason", a.Reason, "err", err, "output", hook.Output(err))
		r.pod.shared.Events.Record(about, v1.EventTypeWarning, "FailedReload",
			message.Of("Container %s is not told of its changed config: %s", message.Name(a.Name), message.Private(now.by+": "+err.Error())))
		return err
	}, r.pod.Wake)
}

// tell tells a container that its config has changed.
func (r *reloads) tell(ctx context.Context, id string, by annotations.Reaction) error {
	if by.Signal == "" {
		err := exec(ctx, r.pod.shared.Cri, id, by.Command, reloadWithin)
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the command did not end within %s", reloadWithin)
		}
		return err
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
		now := plan.Reloading{Words: n.words, By: n.by}
		switch {
		case !n.job.hasEnded():
		case n.job.err == nil:
			n.saved = n.saved || r.record(seen, id, told, n.words)
			if r.isRecorded(id, n.words) {
				continue
			}
			if n.retry.IsZero() { // there is no checkpoint: the disk takes none
				n.retry = time.Now().Add(time.Minute)
			}
			now.Retry = n.retry
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

// isRecorded reports whether a checkpoint has it that a container was told of words.
func (r *reloads) isRecorded(id, words string) bool {
	for _, c := range r.pod.known {
		if c.Told[id].Words == words {
			return true
		}
	}
	return false
}

// told is what a container knows that was told of words.
func told(_ checkpoint.Told, words string) checkpoint.Told { return checkpoint.Told{Words: words} }

// record records what a container knows, which change returns, and reports whether that is on disk.
// Without it a container is told once more by the next agent.
func (r *reloads) record(seen *pleg.Observed, id string, change func(checkpoint.Told, string) checkpoint.Told, words string) (saved bool) {
	for uid, i := range seen.Instances {
		c := r.pod.known[uid]
		if c == nil || !i.Has(id) {
			continue
		}
		now := change(c.Told[id], words)
		return r.pod.rememberOrWarn(c.WithTold(id, now, i.Has), "of which changed config a container was told")
	}
	return false
}

// forget ends and forgets the reloads of containers that are not alive.
func (r *reloads) forget(alive map[string]bool) {
	for id, n := range r.all {
		if !alive[id] {
			n.job.cancel(nil)
			delete(r.all, id)
		}
	}
}
