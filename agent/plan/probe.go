package plan

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/probe"
	"monopod/manifests/annotations"
	"monopod/manifests/defaults"
)

// planKills stops the containers whose probes failed or whose variables are outdated, and those
// with a kill decision. The kill decision is saved before the container is stopped: otherwise an
// agent that is killed meanwhile would lose it, and the container's exit code might not lead to a
// restart.
func (s *Facts) planKills(p *Plan, i *pleg.Instance) {
	pod := s.Pod.Pod
	var stops []Action
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			c := &list[k]
			n := i.Newest(c.Name)
			if n == nil || !n.Running() {
				continue
			}
			kill := n.Kill
			if kill == nil {
				if kill = s.killDecision(c, n); kill == nil {
					continue
				}
				mark := Action{Do: DoMarkKill, UID: i.UID, ID: n.ID, Name: c.Name, Grace: kill.Grace, Cause: kill.Cause, Reason: kill.Reason, Text: kill.Text, Asked: kill.Requested}
				if mark.Asked {
					mark.Excused = s.excused(i, c.Name)
				}
				p.then(mark)
			}
			within := *n
			within.Grace = kill.Grace
			if kill.Requested { // the kubelet would stop the whole pod
				within.Grace = max(within.Grace, leastGrace)
			}
			stops = append(stops, stopContainer(i, &within, kill.Cause, kill.Reason))
		}
	}
	p.then(stops...)
}

// killDecision returns why a running container must be stopped; nil if its liveness and startup
// probes have not failed, and no object has changed.
func (s *Facts) killDecision(c *v1.Container, n *pleg.Container) *checkpoint.KillDecision {
	if name := s.outdated(c, n); name != "" && s.Restarts && annotations.ReactionOf(s.Pod.Pod, c.Name).Restart {
		why := name + " has changed, of which its variables or volumes are made"
		return &checkpoint.KillDecision{Cause: checkpoint.CauseConfig, Reason: why, Text: why, Grace: n.Grace, Requested: true}
	}
	r := s.Probes[n.ID]
	if r.Failed == "" {
		return nil
	}
	pr := c.LivenessProbe
	if r.Failed == probe.Startup {
		pr = c.StartupProbe
	}
	grace := n.Grace
	if pr != nil && pr.TerminationGracePeriodSeconds != nil {
		grace = defaults.Seconds(*pr.TerminationGracePeriodSeconds)
	}
	why := fmt.Sprintf("Container %s failed %s probe", c.Name, r.Failed)
	if podspec.IsSidecar(s.Pod.Pod, c) || defaults.RestartPolicyOf(s.Pod.Pod, c) != v1.RestartPolicyNever {
		why += ", will be restarted"
	}
	return &checkpoint.KillDecision{Cause: checkpoint.CauseProbe, Reason: why, Text: r.Why, Grace: grace}
}

// outdated returns the name of a changed object that the variables or volumes of a running
// container are made of, and for which the container is to restart or to be told; "": none.
func (s *Facts) outdated(c *v1.Container, n *pleg.Container) string {
	once := podspec.IsInit(s.Pod.Pod, c) && !podspec.Restartable(c)
	now := s.Env[c.Name]
	if now == "" || n.EnvObjects == "" || once {
		return ""
	}
	return s.changed(n, annotations.ReactionOf(s.Pod.Pod, c.Name), now)
}

// Outdated returns what running containers are to do for changed objects, such as `restart with the
// changed ConfigMap "a"`, each once; "": nothing, or that is decided already.
func (s *Facts) Outdated() string {
	i := s.Instance()
	var all []string
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if n == nil || !n.Running() || n.Kill != nil {
			continue
		}
		name := s.outdated(c, n)
		if name == "" {
			continue
		}
		do := "restart with the changed " + name
		if annotations.ReactionOf(s.Pod.Pod, c.Name).Reloads() {
			do = "reload with the changed " + name
		}
		if !slices.Contains(all, do) {
			all = append(all, do)
		}
	}
	return strings.Join(all, ", ")
}

// Health reports whether a running container has started and is ready, according to its probes.
func (s *Facts) Health(c *v1.Container, n *pleg.Container) (started, ready bool) {
	if r, ok := s.Probes[n.ID]; ok {
		return r.Started, r.Ready
	}
	started = c.StartupProbe == nil
	return started, started && c.ReadinessProbe == nil
}

// ProbeMessages returns the probe failures of the containers that are not ready, such as "Readiness
// probe failed: ..."; "": none.
func (s *Facts) ProbeMessages(st *v1.PodStatus) string {
	i := s.Instance()
	var names, texts []string
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		n := i.Newest(c.Name)
		if n == nil || c.Ready {
			continue
		}
		if r := s.Probes[n.ID]; r.Text != "" {
			names, texts = append(names, c.Name), append(texts, r.Text)
		}
	}
	if len(texts) > 1 {
		for k := range texts {
			texts[k] = names[k] + ": " + texts[k]
		}
	}
	return strings.Join(texts, "; ")
}
