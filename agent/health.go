package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/probe"
)

func (w *worker) newProbes() *probe.Set {
	s := probe.NewSet(&w.prober, w.execProbe, w.poke, w.log)
	s.Event = w.recordProbe
	s.Fault = func(t *probe.Target, err error) { w.fault(err, "probe", t.Container.Name) }
	return s
}

// probe marks what is condemned, has what runs probed, and takes in what the
// probes have found so far.
func (w *worker) probe(s *situation) {
	for uid, i := range s.Observed.Instances {
		if c := w.known[uid]; c != nil {
			i.mark(c.Condemned)
			i.markRenewed(c.Renew)
		}
	}
	w.probes.Follow(w.targets(s))
	s.Probes = w.probes.Results()
}

// mark notes which containers are condemned.
func (i *instance) mark(all map[string]condemned) {
	for k := range i.Containers {
		if sentence, ok := all[i.Containers[k].ID]; ok {
			i.Containers[k].Condemned = &sentence
		}
	}
}

// targets returns what is to be probed: of the wished instance all that runs,
// of those that leave what is ready still.
func (w *worker) targets(s *situation) []probe.Target {
	var out []probe.Target
	leaving := s.leaving()
	for _, uid := range leaving {
		if c := w.known[uid]; c != nil {
			out = w.targetsOf(out, s, c.Pod, s.Observed.Instances[uid], true)
		}
	}
	if s.Pod != nil && len(leaving) == 0 && s.known().ended() == "" {
		out = w.targetsOf(out, s, s.Pod.Pod, s.instance(), false)
	}
	return out
}

func (w *worker) targetsOf(out []probe.Target, s *situation, pod *v1.Pod, i *instance, leaving bool) []probe.Target {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			c := &list[k]
			n := i.newest(c.Name)
			if n == nil || !n.running() || !probe.Any(c) || !leaving && s.hooking(n) {
				continue // probes begin when the postStart hook is done
			}
			t := probe.Target{ID: n.ID, Pod: pod, Began: n.Started, Container: c, About: containerRef(pod, c.Name), Leaving: leaving, Adopted: n.Started.Before(w.born)}
			if ips := sandboxIPs(pod, i, w.machine.Now()); len(ips) > 0 {
				t.Host = ips[0]
			}
			t.Started, t.Ready = w.reported(string(pod.UID), n)
			out = append(out, t)
		}
	}
	return out
}

// reported returns what was reported last of a container: for one that a former
// agent knew, what it knew.
func (w *worker) reported(uid string, n *container) (started, ready bool) {
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

// execProbe runs a probe's command. $(NAME) in it stands for what the manifest
// itself gives as value, as with the kubelet.
func (w *worker) execProbe(ctx context.Context, t *probe.Target, command []string, timeout time.Duration) (string, int32, error) {
	command, err := expandStatic(command, t.Container.Env)
	if err != nil {
		return "", 0, err
	}
	answer, err := w.cri.ExecSync(ctx, t.ID, command, timeout)
	if err != nil {
		return "", 0, err
	}
	return string(answer.GetStdout()) + string(answer.GetStderr()), answer.GetExitCode(), nil
}

func expandStatic(command []string, vars []v1.EnvVar) ([]string, error) {
	if !slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, "$") }) {
		return command, nil
	}
	fixed := env{values: map[string]string{}}
	for _, v := range vars {
		if v.ValueFrom == nil {
			fixed.values[v.Name] = v.Value
		}
	}
	return fixed.expandAll("command", command)
}

// condemn writes down that a container must be stopped. Where that cannot be
// written, the container is stopped nevertheless: only if the agent dies
// meanwhile will nobody know why.
func (w *worker) condemn(s *situation, a action) {
	c := *w.checkpointOf(s, a.UID)
	all := map[string]condemned{a.ID: {Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Asked: a.Asked}}
	maps.Copy(all, c.Condemned)
	if a.Asked { // which weighs more than what a probe found
		all[a.ID] = condemned{Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Asked: true}
	}
	maps.DeleteFunc(all, func(id string, _ condemned) bool { return !s.Observed.Instances[a.UID].has(id) })
	c.Condemned = all
	if err := w.remember(&c); err != nil {
		w.goBy(&c, true)
		w.log.Warn("cannot remember that a container is to be stopped", "container", a.Name, "err", err)
	}
}

// has reports whether the instance has a container of that id.
func (i *instance) has(id string) bool {
	for k := range i.Containers {
		if i.Containers[k].ID == id {
			return true
		}
	}
	return false
}
