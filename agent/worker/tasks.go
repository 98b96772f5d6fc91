package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"monopod/agent/plan"
	"monopod/agent/saidonce"
	"monopod/agent/slots"
	"monopod/agent/update"
)

// task is one action that calls the runtime or removes files, in a goroutine of
// its own: it may hang.
type task struct {
	action    plan.Action
	facts     *plan.Facts // that it was planned from
	since     time.Time
	cancel    context.CancelCauseFunc
	cancelled bool
	left      atomic.Bool // no pass waits for it: its end wakes the worker
	done      chan struct{}

	// Written before done is closed.
	err  error
	made *madeSandbox
}

// tasks are the tasks that have not been recorded yet: they run, hang, or ended
// after the pass that began them. The worker's goroutine owns the map.
type tasks struct {
	*pod
	all  map[string]*task // by plan.Action.Key
	hung saidonce.Errors  // by plan.Action.Key: hangs that were said, until it succeeds
}

// begin starts a task. do gets a context that ends with the task's cancel, and
// some time after the agent.
func (t *tasks) begin(s *plan.Facts, a plan.Action, do func(ctx context.Context, k *task) error) *task {
	firm, release := t.detached()
	ctx, cancel := context.WithCancelCause(firm)
	k := &task{action: a, facts: s, since: time.Now(), cancel: cancel, done: make(chan struct{})}
	t.all[a.Key()] = k
	t.background.Go(func() {
		defer func() {
			if k.left.Load() {
				t.Wake()
			}
		}()
		defer close(k.done)
		defer release()
		defer cancel(nil)
		defer t.caught(&k.err, a.Do.Noun(), a.Name)
		k.err = do(ctx, k)
	})
	return k
}

func (k *task) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// await waits for the tasks of one step until they have ended or hang, and
// reports whether all have ended. It does not wait for those that run beside.
func (t *tasks) await(step []*task) bool {
	timer := time.NewTimer(slots.HangsAfter)
	defer timer.Stop()
	all := true
	for _, k := range step {
		if !k.action.Beside {
			select {
			case <-k.done:
				continue
			case <-timer.C:
				timer.Reset(0) // for the next one
			}
		}
		k.left.Store(true)
		if k.ended() {
			continue
		}
		if all = all && k.action.Beside; !k.action.Beside {
			t.sayHangs(k)
		}
	}
	return all
}

// sayHangs says once of a task that it hangs.
func (t *tasks) sayHangs(k *task) {
	text := k.action.Do.Noun() + ": " + plan.Hangs
	if t.RecordWarning(k.action, "FailedSync", text); !t.hung.IsNew(k.action.Key(), errHangs) {
		return
	}
	t.Log.Warn("runtime call hangs", "call", string(k.action.Do), "container", k.action.Name, "reason", plan.Hangs)
}

var errHangs = errors.New(plan.Hangs)

// take returns the tasks that have ended, which are recorded next.
func (t *tasks) take() []*task {
	var out []*task
	for key, k := range t.all {
		if k.ended() {
			delete(t.all, key)
			out = append(out, k)
		}
	}
	return out
}

// cancelUnwanted cancels what still makes something of an instance that u does
// not want.
func (t *tasks) cancelUnwanted(u Update) {
	for _, k := range t.all {
		if !k.action.Makes() || k.cancelled { // a removal may have been planned when no pod was desired
			continue
		}
		if !t.wanted(u, k) || u.Halted.Reason != "" {
			k.cancelled = true
			k.cancel(errNewVersion)
		}
	}
}

// wanted reports whether what a task makes is of this version, too.
func (t *tasks) wanted(u Update, k *task) bool {
	if u.Pod == nil || string(u.Pod.UID) != k.action.UID {
		return false
	}
	return update.Keeps(k.facts.Pod, u.Pod, k.action.Name, t.Settings().UpdatePolicy)
}

// running returns what runs, for the plan.
func (t *tasks) running() map[string]plan.Running {
	var out map[string]plan.Running
	for key, k := range t.all {
		if out == nil {
			out = map[string]plan.Running{}
		}
		out[key] = plan.Running{UID: k.action.UID, Makes: k.action.Makes(), Since: k.since}
	}
	return out
}
