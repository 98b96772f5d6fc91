package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// FollowsDesired reports whether everything of the pod is of the desired version: it is accepted,
// and no container of a former version is left to be removed.
func (s *Facts) FollowsDesired() bool {
	c := s.Checkpoint()
	if c.Digest != "" && c.Digest != s.Pod.Digest || !s.Unaccepted.IsZero() {
		return false
	}
	i := s.Instance()
	if i == nil {
		return true
	}
	for k := range i.Containers {
		if n := &i.Containers[k]; n.Outdated && n.Live() {
			return false
		}
	}
	return true
}

// RunsFormer reports whether containers of a former version with the desired pod's uid run still.
func (s *Facts) RunsFormer() bool {
	i := s.Instance()
	isLive := i != nil && slices.ContainsFunc(i.Containers, func(n pleg.Container) bool { return n.Live() })
	return isLive && !s.FollowsDesired()
}

// AwaitsImage reports whether a container of which this version has made none yet waits for its
// image: it is being pulled, or will be pulled again. last is the last report of the pod.
func (s *Facts) AwaitsImage(last *v1.PodStatus) bool {
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		_, isPulled := s.Fetching[c.Name]
		if (isPulled || s.Failures[c.Name].Pulls) && !s.made(c.Name, last) {
			return true
		}
	}
	return false
}

// made reports whether this version has made a container of this name.
func (s *Facts) made(name string, last *v1.PodStatus) bool {
	n := s.Instance().Newest(name)
	if n != nil {
		return !n.Outdated
	}
	return last != nil && slices.ContainsFunc(slices.Concat(last.InitContainerStatuses, last.ContainerStatuses),
		func(c v1.ContainerStatus) bool { return c.Name == name && wasMade(c) })
}

// RestartsByOthers reports whether a container of the pod is stopped, or is to start again, for a
// reason outside it: a request, another version or config, or trouble of its cgroup or of the
// runtime.
func (s *Facts) RestartsByOthers() bool {
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := s.Instance().Newest(c.Name)
		if n != nil && n.BrokenOff {
			return true
		}
		if n == nil || n.Kill == nil {
			continue
		}
		switch n.Kill.Cause {
		case checkpoint.CauseRequest, checkpoint.CauseConfig, checkpoint.CauseUpdate, checkpoint.CauseCgroup, checkpoint.CauseLost:
			return true
		}
	}
	return false
}

const whyBroken = "its start was broken off, as the agent ended or the runtime was slow"

// planBroken excuses containers of a Job whose starts were broken off. It reports whether there are
// some.
func (s *Facts) planBroken(p *Plan, i *pleg.Instance) bool {
	var marks []Action
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if n == nil || !n.BrokenOff {
			continue
		}
		if names := s.excused(i, c.Name); len(names) > 0 {
			marks = append(marks, Action{Do: DoMarkKill, UID: i.UID, ID: n.ID, Name: c.Name, Cause: checkpoint.CauseBroken, Excused: names, Reason: whyBroken, Asked: true})
		}
	}
	p.then(marks...)
	return len(marks) > 0
}
