package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/slots"
	"monopod/agent/update"
)

// task is the job of one action that calls the runtime or removes files: it may hang.
type task struct {
	job       *job
	action    plan.Action
	facts     *plan.Facts // that it was planned from
	again     bool        // the last task of its key hung
	cancelled bool
	left      atomic.Bool // no pass waits for it: its end wakes the worker

	since atomic.Pointer[time.Time] // when it started to work; nil: it waits for a slot
	hangs *time.Timer               // wakes the worker when it hangs

	made *madeSandbox // written before the job ends
}

// tasks are the tasks that have not been recorded yet: they run, hang, or ended after the pass
// that started them. The worker's goroutine owns the map.
type tasks struct {
	pod  *pod
	all  map[string]*task // by plan.Action.Key
	hung map[string]hang  // hung and recorded, by plan.Action.Key, until the action succeeds
}

// start starts a task. do gets the context of its job.
func (t *tasks) start(s *plan.Facts, a plan.Action, do func(ctx context.Context, k *task) error) *task {
	_, again := t.hung[a.Key()]
	k := &task{job: t.pod.detachedJob(), action: a, facts: s, again: again, hangs: time.AfterFunc(slots.HangsAfter, t.pod.Wake)}
	k.since.Store(new(time.Now()))
	t.all[a.Key()] = k
	work := func(ctx context.Context) error {
		defer k.hangs.Stop()
		return do(ctx, k)
	}
	t.pod.begin(k.job, a.Do.Noun(), a.Name, work, func() {
		if k.left.Load() {
			t.pod.Wake()
		}
	})
	return k
}

// inSlot makes the task's calls when there is a slot; ctx ends the wait for it. A task that waits
// for a slot does not hang.
func (k *task) inSlot(ctx context.Context, all *slots.Slots, calls func() error) error {
	k.since.Store(nil)
	return all.Do(ctx, k.again, func() error {
		k.since.Store(new(time.Now()))
		k.hangs.Reset(slots.HangsAfter)
		return calls()
	})
}

// working returns since when the task works; zero: it waits for a slot.
func (k *task) working() time.Time {
	if since := k.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// await waits for the tasks of one step until they have ended or hang, or have no slot yet, and
// reports whether all have ended. It does not wait for those that run beside the others.
func (t *tasks) await(step []*task) bool {
	timer := time.NewTimer(slots.HangsAfter)
	defer timer.Stop()
	all := true
	for _, k := range step {
		if !k.action.Beside {
			select {
			case <-k.job.done:
				continue
			case <-timer.C:
				timer.Reset(0) // for the next one
			}
		}
		k.left.Store(true)
		if !k.job.hasEnded() && !k.action.Beside {
			all = false
		}
	}
	return all
}

// logHanging logs each task that hangs, once.
func (t *tasks) logHanging() {
	for _, k := range t.all {
		since := k.working()
		if !k.job.hasEnded() && !since.IsZero() && time.Since(since) >= slots.HangsAfter {
			t.logHang(k)
		}
	}
}

func (t *tasks) logHang(k *task) {
	if _, logged := t.hung[k.action.Key()]; logged {
		return
	}
	now := hang{object: k.action.Object(), call: string(k.action.Do), container: k.action.Name}
	level := slog.LevelWarn
	if t.pod.remakes {
		level = slog.LevelDebug
	}
	for _, one := range t.hung {
		if one.call == now.call && one.container == now.container { // of another sandbox or attempt
			level = slog.LevelDebug
		}
	}
	t.pod.events.RecordWarning(k.action, "FailedSync", message.Of("%s: %s", message.Name(k.action.Do.Noun()), message.Fixed(plan.Hangs)))
	t.hung[k.action.Key()] = now
	t.pod.log.Log(context.Background(), level, "runtime call hangs", "call", now.call, "container", now.container, "reason", plan.Hangs)
}

// hang is a call of the runtime that hangs, or hung the last time.
type hang struct {
	object          string // see plan.Action.Object
	call, container string
}

// take returns the tasks that have ended, which are recorded next.
func (t *tasks) take() []*task {
	var out []*task
	for key, k := range t.all {
		if k.job.hasEnded() {
			delete(t.all, key)
			out = append(out, k)
		}
	}
	return out
}

// cancelUnwanted cancels what still makes something of an instance that u does not want.
func (t *tasks) cancelUnwanted(u Update) {
	for _, k := range t.all {
		if !k.action.Makes() || k.cancelled { // a removal may have been planned when no pod was desired
			continue
		}
		if !t.wanted(u, k) || u.Halted.Reason != "" {
			k.cancelled = true
			k.job.cancel(errNewVersion)
		}
	}
}

// wanted reports whether what a task makes is of this version, too.
func (t *tasks) wanted(u Update, k *task) bool {
	if u.Pod == nil || string(u.Pod.UID) != k.action.UID {
		return false
	}
	return update.Keeps(k.facts.Pod, u.Pod, k.action.Name, t.pod.shared.Settings().UpdatePolicy)
}

// running returns what runs, for the plan.
func (t *tasks) running() map[string]plan.Running {
	var out map[string]plan.Running
	for key, k := range t.all {
		if out == nil {
			out = map[string]plan.Running{}
		}
		out[key] = plan.Running{Do: k.action.Do, UID: k.action.UID, ID: k.action.ID, Makes: k.action.Makes(), Since: k.working()}
	}
	return out
}
