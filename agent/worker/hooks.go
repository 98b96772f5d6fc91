package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/hook"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/cri"
)

// hookRun is the job that runs a postStart hook.
type hookRun struct {
	job   *job
	name  string // of the container
	saved bool   // recorded as done in the checkpoint
}

// hooks are the postStart hooks of the desired instance. The worker's goroutine
// owns the map.
type hooks struct {
	pod *pod
	all map[string]*hookRun // by container id
}

// start starts postStart hooks. Their ends wake the worker. They end with
// the agent and with the update that the container was started for.
func (k *hooks) start(s *plan.Facts, step []plan.Action) {
	for _, a := range step {
		h := &hookRun{job: newJob(k.pod.life, func() {}), name: a.Name}
		handler, target := podspec.PostStart(podspec.FindContainer(s.Pod.Pod, a.Name)), k.hookTarget(s, a)
		k.pod.log.Info(a.Do.Done(), "container", a.Name, "reason", a.Reason)
		about := k.pod.events.About(a.UID, a.Name)
		k.all[a.ID] = h
		k.pod.begin(h.job, a.Do.Noun(), a.Name, func(ctx context.Context) error {
			err := k.untilAnswered(ctx, func() error { return hook.Run(ctx, handler, target) })
			if err != nil && ctx.Err() == nil {
				k.pod.log.Warn("postStart hook failed", "container", a.Name, "err", err, "output", hook.Output(err))
				k.pod.shared.Events.Record(about, v1.EventTypeWarning, "FailedPostStartHook", message.Fixed("PostStartHook failed"))
			}
			return err
		}, k.pod.Wake)
	}
}

// untilAnswered runs a hook again when the runtime was unavailable: that is no failure of the
// hook, which may run more than once anyway. The waits grow if the runtime answers everything but
// this; while it answers nothing, no call is made.
func (k *hooks) untilAnswered(ctx context.Context, run func() error) error {
	for tries := 1; ; tries++ {
		err := run()
		if !cri.Unavailable(err) || ctx.Err() != nil {
			return err
		}
		k.pod.shared.Watch.Wake(err)
		pleg.Sleep(ctx, plan.RetryIn(tries))
		for !k.pod.shared.Watch.Up() && ctx.Err() == nil {
			tries = 0
			pleg.Sleep(ctx, pleg.ReconnectEvery)
		}
	}
}

// states returns the states of the hooks, and records those that are done.
func (k *hooks) states() map[string]plan.HookState {
	out := map[string]plan.HookState{}
	for id, h := range k.all {
		if !h.job.hasEnded() {
			out[id] = plan.HookState{}
			continue
		}
		if err := h.job.err; err != nil {
			out[id] = plan.HookState{Failed: err.Error()}
			continue
		}
		out[id] = plan.HookState{Done: true}
		if c := k.pod.known[string(k.pod.current.Pod.UID)]; !h.saved && c != nil {
			h.saved = true
			if err := k.pod.remember(c.WithHookDone(h.name, id)); k.pod.unsaved.IsNew("hook", err) {
				k.pod.log.Warn("end of the postStart hook is not saved; a restarted agent runs it again", "container", h.name, "err", err)
			}
		}
	}
	return out
}

// forget ends and forgets the hooks of containers that are not alive; nil: of all.
func (k *hooks) forget(alive map[string]bool) {
	for id, h := range k.all {
		if !alive[id] {
			h.job.cancel(nil)
			delete(k.all, id)
		}
	}
}

// preStop returns a func that runs the preStop hook of a stop, nil if there is none.
func (k *hooks) preStop(s *plan.Facts, a plan.Action) func(context.Context) error {
	if a.PreStop == "" {
		return nil
	}
	h := &v1.LifecycleHandler{}
	if err := json.Unmarshal([]byte(a.PreStop), h); err != nil {
		return func(context.Context) error { return fmt.Errorf("annotation %s: %w", podspec.AnnPreStop, err) }
	}
	target := k.hookTarget(s, a)
	return func(ctx context.Context) (err error) {
		defer k.pod.caught(&err, "preStop hook", a.Name) // the container stops all the same
		return hook.Run(ctx, h, target)
	}
}

// hookTarget returns the target of a hook of the action's container.
func (k *hooks) hookTarget(s *plan.Facts, a plan.Action) hook.Target {
	t := hook.Target{Exec: func(ctx context.Context, command []string) error {
		return exec(ctx, k.pod.shared.Cri, a.ID, command, 0)
	}}
	about := k.pod.events.About(a.UID, a.Name)
	t.Fallback = func() {
		k.pod.shared.Metrics.HTTPFallback()
		k.pod.shared.Events.Event(about, v1.EventTypeWarning, "LifecycleHTTPFallback", message.Fixed("request to HTTPS lifecycle hook got HTTP response, retry with HTTP succeeded"))
	}
	i := s.Observed.Instances[a.UID]
	for k := range i.Containers {
		if c := &i.Containers[k]; c.ID == a.ID && c.Ports != "" {
			_ = json.Unmarshal([]byte(c.Ports), &t.Ports) // on an error, named ports are not found
		}
	}
	t.Host = k.hostOf(s, i)
	return t
}

// hostOf returns the address of an instance; "": it is not known. It is never the machine's, unless
// the pod has its network.
func (k *hooks) hostOf(s *plan.Facts, i *pleg.Instance) string {
	b := i.Sandbox()
	onHost := b != nil && b.HostNetwork
	if c := s.Known[i.UID]; c != nil {
		onHost = c.Pod.Spec.HostNetwork
	}
	switch ips := k.pod.shared.Disk.Machine.Addresses(); {
	case b != nil && len(b.IPs) > 0:
		return b.IPs[0]
	case !onHost:
		return ""
	case len(ips) > 0:
		return ips[0]
	}
	return "127.0.0.1"
}

// exec runs a command in a container; with no timeout, without one but that of ctx.
func exec(ctx context.Context, runtime *cri.Client, id string, command []string, timeout time.Duration) error {
	r, err := runtime.ExecSync(ctx, id, command, timeout)
	switch {
	case err != nil:
		return err
	case r.ExitCode != 0:
		return &hook.ExitError{Code: r.ExitCode, Output: cmp.Or(string(r.Stderr), string(r.Stdout))}
	}
	return nil
}
