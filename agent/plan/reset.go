package plan

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// Resetting is the waiting reason while all containers restart together.
const Resetting = "RestartingAllContainers"

// resetsPod reports whether a restart rule restarts all containers of the pod
// after this attempt's exit. No rule is asked about one that was stopped, see MayRestart.
func resetsPod(c *v1.Container, n *pleg.Container) bool {
	return n != nil && n.Exited() && n.Kill == nil && c.RestartPolicy != nil &&
		podspec.RestartRule(c, n.ExitCode) == v1.ContainerRestartRuleActionRestartAllContainers
}

// CanReset reports whether a container has a rule that restarts all containers.
func CanReset(pod *v1.Pod) bool {
	return slices.ContainsFunc(podspec.AllContainers(pod), func(c *v1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
			return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// planReset restarts all containers in their sandbox if a restart rule requires it and its back-off
// is over. All are stopped without grace and removed, the container with the rule last, so that an
// agent that starts in between knows why. Then the pod starts again with its first init container.
func (s *Facts) planReset(p *Plan, i *pleg.Instance) bool {
	cause, marks, said := map[string]bool{}, map[string]string{}, message.Text{}
	due := false
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if !resetsPod(c, n) || n.Sandbox != i.Sandbox().ID {
			continue
		}
		from, mark := s.BackOff.forPod(s.Pod.Pod).next(n, n.Sandbox, s.Now)
		due = due || !s.Now.Before(from)
		cause[n.ID], marks[c.Name] = true, mark
		said = message.Of("container %s exited with %d: its rule restarts all containers", message.Name(c.Name), message.Number(n.ExitCode))
	}
	if !due {
		return false
	}
	uid, why := string(s.Pod.UID), said.String()
	if !maps.Equal(marks, s.Checkpoint().Marks) {
		p.then(Action{Do: DoMark, UID: uid, Marks: marks, Reason: why})
	}
	var stops []Action
	remove := make([][]Action, 4) // regular containers, init containers, then the same for those whose rule applies
	for k := range i.Containers {
		n := &i.Containers[k]
		if n.Alive() {
			a := stopWithin(i, n, why, atOnce)
			a.Whole = true
			stops = append(stops, a)
		}
		at := 0
		if podspec.IsInit(s.Pod.Pod, &v1.Container{Name: n.Name}) {
			at = 1
		}
		if cause[n.ID] {
			at += 2
		}
		remove[at] = append(remove[at], Action{Do: DoRemoveContainer, UID: uid, ID: n.ID, Name: n.Name, Attempt: n.Attempt, Reason: why})
	}
	p.then(stops...)
	for _, step := range remove {
		p.then(step...)
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		p.Wait(c.Name, Waiting{Resetting, said})
	}
	return true
}
