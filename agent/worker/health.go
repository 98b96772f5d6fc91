package worker

import (
	"context"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
)

func (w *Worker) newProbes() *probe.Set {
	s := probe.NewSet(&w.Prober, w.ExecProbe, w.Wake, w.Log)
	s.Event = w.recordProbe
	s.Fault = func(t *probe.Target, err error) { w.fault(err, "probe run", t.Container.Name) }
	return s
}

// probe marks kill decisions, updates the set of probes and takes their results.
func (w *Worker) probe(s *plan.Facts) {
	for uid, i := range s.Observed.Instances {
		if c := w.Known[uid]; c != nil {
			i.MarkKills(c.KillDecisions)
			i.MarkReplaced(c.ReplaceSandbox)
		}
	}
	w.probes.Follow(w.targets(s))
	s.Probes = w.probes.Results()
}

// targets returns the containers to probe: all that run of the desired
// instance, and those still ready of instances that leave.
func (w *Worker) targets(s *plan.Facts) []probe.Target {
	var out []probe.Target
	leaving := s.Leaving()
	for _, uid := range leaving {
		if c := w.Known[uid]; c != nil {
			out = w.targetsOf(out, s, c.Pod, s.Observed.Instances[uid], true)
		}
	}
	if s.Pod != nil && len(leaving) == 0 && s.Checkpoint().Ended() == "" {
		out = w.targetsOf(out, s, s.Pod.Pod, s.Instance(), false)
	}
	return out
}

func (w *Worker) targetsOf(out []probe.Target, s *plan.Facts, pod *v1.Pod, i *pleg.Instance, leaving bool) []probe.Target {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			c := &list[k]
			n := i.Newest(c.Name)
			if n == nil || !n.Running() || !probe.Any(c) || !leaving && s.Hooking(n) {
				continue // probes start when the postStart hook is done
			}
			t := probe.Target{ID: n.ID, Pod: pod, Began: n.Started, Container: c, About: events.AboutContainer(pod, c.Name), Leaving: leaving, Adopted: n.Started.Before(w.born)}
			if ips := podstatus.SandboxIPs(pod, i, w.Machine.Now()); len(ips) > 0 {
				t.Host = ips[0]
			}
			t.Started, t.Ready = w.reported(string(pod.UID), n)
			out = append(out, t)
		}
	}
	return out
}

// reported returns what was reported last of a container, by this agent or a
// previous one.
func (w *Worker) reported(uid string, n *pleg.Container) (started, ready bool) {
	last := w.lastStatus(uid)
	if last == nil {
		return false, false
	}
	for _, list := range [][]v1.ContainerStatus{last.InitContainerStatuses, last.ContainerStatuses} {
		for k := range list {
			if c := &list[k]; c.Name == n.Name && strings.HasSuffix(c.ContainerID, "//"+n.ID) && c.State.Running != nil {
				return c.Started != nil && *c.Started, c.Ready
			}
		}
	}
	return false, false
}

// ExecProbe runs a probe's command. $(NAME) in it stands for a value that the
// manifest itself gives, as with the kubelet.
func (w *Worker) ExecProbe(ctx context.Context, t *probe.Target, command []string, timeout time.Duration) (string, int32, error) {
	command, err := podspec.ExpandStatic(command, t.Container.Env)
	if err != nil {
		return "", 0, err
	}
	answer, err := w.Cri.ExecSync(ctx, t.ID, command, timeout)
	if err != nil {
		return "", 0, err
	}
	return string(answer.GetStdout()) + string(answer.GetStderr()), answer.GetExitCode(), nil
}

// MarkKill records a kill decision. If the disk does not take it, the container
// is stopped all the same; only an agent that dies meanwhile forgets why.
func (w *Worker) MarkKill(s *plan.Facts, a plan.Action) {
	c := *w.checkpointOf(s, a.UID)
	all := map[string]checkpoint.KillDecision{a.ID: {Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: a.Asked}}
	maps.Copy(all, c.KillDecisions)
	if a.Asked { // a restart request overrides a probe's decision
		all[a.ID] = checkpoint.KillDecision{Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: true}
	}
	maps.DeleteFunc(all, func(id string, _ checkpoint.KillDecision) bool { return !s.Observed.Instances[a.UID].Has(id) })
	c.KillDecisions = all
	if err := w.remember(&c); err != nil {
		w.setKnown(&c, true)
		w.Log.Warn("kill decision is not saved", "container", a.Name, "err", err)
	}
}
