package agent

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// resetting is the reason of containers while all are being restarted together.
const resetting = "RestartingAllContainers"

// resetsPod reports whether the attempt's end asks for all containers of the
// pod to be restarted.
func resetsPod(c *v1.Container, n *container) bool {
	return n != nil && n.exited() && c.RestartPolicy != nil &&
		restartRule(c, n.ExitCode) == v1.ContainerRestartRuleActionRestartAllContainers
}

// canReset reports whether a container has a rule that may restart them all.
func canReset(pod *v1.Pod) bool {
	return slices.ContainsFunc(allContainers(pod), func(c *v1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
			return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// planReset restarts all containers in their sandbox if one's rule asks for it
// and its back-off is over. All are stopped without grace and removed, the one
// that asked last, so that an agent that comes in between knows why. Then the
// pod begins anew, with its first init container.
func (s *situation) planReset(p *planned, i *instance) bool {
	asked, marks, why := map[string]bool{}, map[string]string{}, ""
	due := false
	for _, c := range allContainers(s.Pod.Pod) {
		n := i.newest(c.Name)
		if !resetsPod(c, n) || n.Sandbox != i.sandbox().ID {
			continue
		}
		from, mark := s.BackOff.forPod(s.Pod.Pod).next(n, n.Sandbox, s.Now)
		due = due || !s.Now.Before(from)
		asked[n.ID], marks[c.Name] = true, mark
		why = fmt.Sprintf("container %s exited with %d, upon which all restart", c.Name, n.ExitCode)
	}
	if !due {
		return false
	}
	uid := string(s.Pod.UID)
	if !maps.Equal(marks, s.known().Marks) {
		p.then(action{Do: doMark, UID: uid, Marks: marks, Reason: why})
	}
	var stops []action
	remove := make([][]action, 4) // others, other init containers, then those that asked
	for k := range i.Containers {
		n := &i.Containers[k]
		if n.alive() {
			a := stopWithin(i, n, why, atOnce)
			a.Whole = true
			stops = append(stops, a)
		}
		at := 0
		if isInit(s.Pod.Pod, &v1.Container{Name: n.Name}) {
			at = 1
		}
		if asked[n.ID] {
			at += 2
		}
		remove[at] = append(remove[at], action{Do: doRemoveContainer, UID: uid, ID: n.ID, Name: n.Name, Attempt: n.Attempt, Reason: why})
	}
	p.then(stops...)
	for _, step := range remove {
		p.then(step...)
	}
	for _, c := range allContainers(s.Pod.Pod) {
		p.wait(c.Name, waiting{resetting, why})
	}
	return true
}

// allRestarting tells whether all containers are being restarted together.
func allRestarting(st *v1.PodStatus) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	of := func(c v1.ContainerStatus) bool { return c.State.Waiting != nil && c.State.Waiting.Reason == resetting }
	switch {
	case st.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case st.Phase == v1.PodFailed:
		c.Reason = "PodFailed"
	case slices.ContainsFunc(slices.Concat(st.InitContainerStatuses, st.ContainerStatuses), of):
		c.Status, c.Reason = v1.ConditionTrue, "RestartAllContainersStarted"
	}
	return c
}
