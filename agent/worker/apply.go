package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/inplace"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/slots"
	"monopod/agent/volume"
	"monopod/cri"
)

// LeaveIn is how long a call that changes the runtime may still run when the
// agent must end; a call that takes longer is left to the runtime, and the next
// agent observes its result.
const LeaveIn = 5 * time.Second

// Apply carries out a plan's steps, one after the other, the actions of each together. It ends at
// the first step with a failure that the others wait for, or with a call that hangs. A failed
// container start does not end it: it is kept as a failure, and other containers start.
func (w *Worker) Apply(ctx context.Context, s *plan.Facts, steps [][]plan.Action) error {
	w.start.prefetch(ctx, s, steps)
	for _, step := range steps {
		step, wait := w.startBackground(s, step)
		if wait {
			return nil
		}
		err := w.applyStep(ctx, s, step)
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyStep carries out the actions of one step: what writes a checkpoint one
// after the other, calls of the runtime together.
func (w *Worker) applyStep(ctx context.Context, s *plan.Facts, step []plan.Action) (stop error) {
	var started []*task
	for _, a := range step {
		if do := w.task(ctx, s, a); do != nil {
			started = append(started, w.tasks.start(s, a, do))
		}
	}
	for _, a := range step {
		if !isTask(a) {
			if err := w.recordOutcome(ctx, s, a, w.do(ctx, s, a), nil); err != nil {
				stop = err
			}
		}
	}
	if !w.tasks.await(started) {
		stop = errStop
	}
	for _, k := range started {
		if !k.job.hasEnded() || w.tasks.all[k.action.Key()] != k {
			continue
		}
		delete(w.tasks.all, k.action.Key())
		if err := w.recordOutcome(ctx, s, k.action, k.job.err, k.made); err != nil {
			stop = err
		}
	}
	return stop
}

// errStop ends a plan after a failure that the next plan takes into account.
var errStop = errors.New("the plan ends here")

// do carries out an action that is no task.
func (w *Worker) do(ctx context.Context, s *plan.Facts, a plan.Action) (err error) {
	defer w.pod.caught(&err, a.Do.Noun(), a.Name)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// An update interrupts only waits, not what changes the machine. That is
	// interrupted when the agent ends, see detached.
	firm, cancel := w.pod.detached()
	defer cancel()
	switch a.Do {
	case plan.DoAccept:
		return w.accept(firm, s)
	case plan.DoMarkRemoving:
		return w.markRemoving(firm, s, a.UID)
	case plan.DoSaveActive:
		w.pod.rememberOrWarn(w.checkpointOf(s, a.UID).WithActive(a.Active, s.Mark), "how long the pod has been active")
	case plan.DoRecordResult:
		w.pod.events.RecordResult(s, a.Verdict)
		w.pod.rememberOrWarn(w.checkpointOf(s, a.UID).WithResult(a.Verdict), "that the pod is being stopped")
	case plan.DoMark:
		w.pod.rememberOrWarn(w.checkpointOf(s, a.UID).WithMarks(a.Marks), "with which back-offs all containers restart")
	case plan.DoInterrupt:
		w.pod.rememberOrWarn(w.checkpointOf(s, a.UID).Interrupted(a.ID, a.Excused...).WithActive(a.Active, checkpoint.Mark{}), "that the pod is interrupted")
	case plan.DoReplaceSandbox:
		return w.pod.remember(w.checkpointOf(s, a.UID).WithSandboxReplaced(a.ID).WithExcused(a.Excused...))
	case plan.DoEnd:
		return w.end(firm, s, a)
	case plan.DoSetUp:
		return w.setUp(firm, s)
	case plan.DoUpdate, plan.DoFollow, plan.DoRestartResized, plan.DoSettle:
		return w.change(firm, s, a)
	case plan.DoMarkKill:
		w.MarkKill(s, a)
	default:
		return fmt.Errorf("unknown action %q", a.Do)
	}
	return nil
}

// change carries out an action of an update in place. A version that failed is
// replaced even if the disk does not take the record, which is written with the next step.
func (w *Worker) change(ctx context.Context, s *plan.Facts, a plan.Action) error {
	c, err := inplace.Apply(ctx, &w.pod.files, w.pod.known[a.UID], s.Pod, a)
	if err != nil {
		return err
	}
	err = w.pod.remember(c)
	if a.Do == plan.DoUpdate && w.pod.current.IsBack && disk.Unwritable(err) {
		w.pod.setKnown(c, true)
		return nil
	}
	return plan.Because("FailedCheckpoint", err)
}

// isTask reports whether an action may hang and so has a goroutine of its own.
func isTask(a plan.Action) bool {
	switch a.Do {
	case plan.DoForget, plan.DoRemoveVolumes, plan.DoCreateSandbox, plan.DoStopSandbox, plan.DoRemoveSandbox,
		plan.DoStartContainer, plan.DoResumeContainer, plan.DoRemoveContainer, plan.DoResize:
		return true
	}
	return false
}

// task returns what a task does, nil for an action that is none. ctx ends its wait for a slot. It
// must not use what the worker's goroutine changes later.
func (w *Worker) task(ctx context.Context, s *plan.Facts, a plan.Action) func(firm context.Context, k *task) error {
	if !isTask(a) {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return func(context.Context, *task) error { return err }
	}
	switch a.Do {
	case plan.DoForget:
		next := ""
		if s.Pod != nil {
			next = string(s.Pod.UID)
		}
		return func(firm context.Context, _ *task) error { return w.forget(firm, a.UID, next) }
	case plan.DoRemoveVolumes:
		return func(firm context.Context, _ *task) error {
			return volume.Release(firm, w.pod.shared.Disk.Root.Dir, a.UID)
		}
	case plan.DoCreateSandbox:
		return func(firm context.Context, k *task) (err error) {
			k.made, err = w.start.createSandbox(ctx, firm, s, k)
			return err
		}
	case plan.DoStopSandbox:
		return w.tearDown(ctx, s, a, w.pod.shared.SandboxStops, w.pod.shared.Cri.StopSandbox)
	case plan.DoRemoveSandbox:
		return w.tearDown(ctx, s, a, w.pod.shared.Removals, w.removeSandbox(s, a))
	case plan.DoRemoveContainer:
		return func(firm context.Context, _ *task) error { return w.removeContainer(firm, s, a) }
	case plan.DoResize:
		return func(firm context.Context, _ *task) error {
			return inplace.Resize(firm, w.pod.shared.Cri, s.Pod.Pod, a, w.pod.shared.Disk.Machine.Now())
		}
	case plan.DoResumeContainer:
		return func(firm context.Context, k *task) error { return w.start.resumeContainer(ctx, firm, s, k) }
	}
	m, err := w.start.inSandbox(s)
	get := w.imagesOf(s, a.Name)
	return func(firm context.Context, k *task) error {
		if err != nil {
			return plan.Because("CreateContainerError", err)
		}
		return w.start.startContainer(ctx, firm, s, k, m, get)
	}
}

// tearDown stops or removes a sandbox: at once if a desired pod waits for that,
// else when there is a slot, after the starts and stops of containers.
func (w *Worker) tearDown(ctx context.Context, s *plan.Facts, a plan.Action, slots *slots.Slots, do func(ctx context.Context, id string) error) func(context.Context, *task) error {
	created := s.Observed.Instances[a.UID].Created(a.ID)
	return func(firm context.Context, k *task) error {
		down := func() error {
			w.pod.shared.Cri.KillCreated(firm, created...)
			return Gone(w.pod.shared.CNI.TakeDown(firm, a.ID, do))
		}
		if s.Pod != nil {
			return down()
		}
		return k.inSlot(ctx, slots, func() error { w.yield(ctx); return down() })
	}
}

// killAfter is after how many failures to remove a pod's only sandbox what is left in the pod's
// cgroup is killed: some eight seconds after the first.
const killAfter = 5

// removeSandbox returns the call that removes a sandbox. Nothing of it is to run any more then. But
// containerd 1.6 may keep the process of a container whose start was broken off with its client, call
// the container dead, and refuse to remove it ("cannot delete running task").
func (w *Worker) removeSandbox(s *plan.Facts, a plan.Action) func(ctx context.Context, id string) error {
	remove, log := w.pod.shared.Cri.RemoveSandbox, w.logOf(a)
	if w.failures[a.Key()].Count < killAfter || len(s.Observed.Instances[a.UID].Sandboxes) > 1 {
		return remove
	}
	return func(ctx context.Context, id string) error {
		if err := w.pod.shared.Disk.Cgroups.Kill(ctx, a.UID); err != nil {
			log.Warn("what is left of the pod cannot be killed", "err", err)
		}
		return remove(ctx, id)
	}
}

// yield waits a little while pods of the node start or stop.
func (w *Worker) yield(ctx context.Context) { slots.Yield(ctx, w.pod.shared.urgent) }

// urgent reports whether any pod of the node starts a sandbox or a container, or the
// runtime kills containers whose grace period is over.
func (ws *Pool) urgent() bool {
	return ws.Sandboxes.InUse()+ws.Containers.InUse()+int(ws.kills.Load()) > 0
}

// Gone takes "not found" for success.
func Gone(err error) error {
	if cri.NotFound(err) {
		return nil
	}
	return err
}

func (w *Worker) setUp(ctx context.Context, s *plan.Facts) error {
	if err := w.noteStart(s); err != nil {
		return err
	}
	if err := w.pod.shared.Disk.Cgroups.Create(ctx, s.Pod.Pod, w.pod.shared.Disk.Machine.Now()); err != nil {
		return plan.Because("FailedCreatePodContainer", err)
	}
	if err := w.pod.files.MakeLogDir(s.Pod.Pod); err != nil {
		return plan.Because("FailedMount", err)
	}
	_, err := w.pod.files.SetUpVolumes(ctx, s.Pod, w.pod.shared.Disk.Machine.Now())
	return plan.Because("FailedMount", err)
}

// noteStart records that the pod starts in this boot, and since when it is active in it. What pods
// that start after others and those that never restart do next depends on that.
func (w *Worker) noteStart(s *plan.Facts) error {
	c := w.pod.known[string(s.Pod.UID)]
	if c == nil {
		return nil
	}
	active, counts := c.ActiveFor(s.Mark)
	next := c.InBoot(w.pod.shared.Disk.Machine.Boot)
	if !counts {
		next = next.WithActive(active, s.Mark)
	}
	isLater := c.Boot != w.pod.shared.Disk.Machine.Boot.ID && plan.NotesBoot(c.Pod)
	switch {
	case isLater && c.Pod.Spec.RestartPolicy == v1.RestartPolicyNever: // without the record it could run twice
		return plan.Because("FailedCheckpoint", w.pod.remember(next))
	case isLater || !counts || c.IsInterrupted():
		w.pod.rememberOrWarn(next, "that the pod has started in this boot, and how long it has been active")
	}
	return nil
}

// forget removes what the agent itself made for an instance, its checkpoint last. If another pod
// has the uid now, the files named by the uid are that pod's and stay. next: the uid of the
// version that follows; "": none.
func (w *Worker) forget(ctx context.Context, uid, next string) error {
	if next == "" {
		if err := w.pod.files.Discard(ctx, w.pod.shared.Disk.Root.NextOf(w.pod.key), uid); err != nil {
			return err
		}
	}
	if err := w.pod.files.RemoveLogs(ctx, uid); err != nil {
		return err
	}
	if other, taken := w.pod.shared.Uids.Other(types.UID(uid), w.pod.key); taken {
		w.pod.log.Warn("another pod has this pod's uid; its files stay", "uid", uid, "other", other.String())
		return nil
	}
	return w.clear(ctx, uid)
}

// startBackground starts the actions of a step that run in the background, and
// returns the others. It reports whether the rest of the plan must wait for the
// end of those, which wakes the worker.
func (w *Worker) startBackground(s *plan.Facts, step []plan.Action) (rest []plan.Action, wait bool) {
	var stops, hooks []plan.Action
	for _, a := range step {
		switch a.Do {
		case plan.DoStopContainer:
			stops = append(stops, a)
			wait = wait || a.Whole
		case plan.DoRunPostStart:
			hooks = append(hooks, a)
		case plan.DoReload:
			w.reloads.start(s, a)
		default:
			rest = append(rest, a)
		}
	}
	w.stops.start(s, stops)
	w.hooks.start(s, hooks)
	return rest, wait
}

// forgetFinished ends the stops and hooks of containers that are no longer alive.
func (w *Worker) forgetFinished(seen *pleg.Observed) {
	alive := map[string]bool{}
	for _, i := range seen.Instances {
		for k := range i.Containers {
			alive[i.Containers[k].ID] = i.Containers[k].Alive()
		}
	}
	w.stops.forget(alive)
	w.reloads.forget(alive)
	w.hooks.forget(alive)
}

// removeContainer removes a container that is dead or was never started, then its files.
func (w *Worker) removeContainer(ctx context.Context, s *plan.Facts, a plan.Action) error {
	i := s.Observed.Instances[a.UID]
	w.pod.shared.Cri.KillCreated(ctx, i.Created(a.ID)...)
	c, err := i.Find(a.ID), w.pod.shared.Cri.RemoveContainer(ctx, a.ID)
	if err != nil || c == nil {
		return err
	}
	return w.pod.files.RemoveContainerFiles(ctx, i, c)
}
