package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/defaults"
)

// accepted returns the accepted version if it has the desired one's uid and differs from it; nil
// otherwise.
func (s *Facts) accepted() *manifests.Pod {
	c := s.Known[string(s.Pod.UID)]
	if c == nil || c.Digest == "" || c.Digest == s.Pod.Digest {
		return nil
	}
	return c.Version()
}

// change returns how the accepted version becomes the desired one. A pod that ends or has ended
// runs again.
func (s *Facts) change() (v update.Verdict) {
	was := s.accepted()
	if was == nil {
		return v
	}
	v = update.Planned(was, s.Pod, s.Policy)
	if c := s.Checkpoint(); v.Kind > update.Nothing && (c.Ended() != "" || c.Result != nil) {
		v.Kind, v.Containers = update.Replace, nil
	}
	return v
}

// ByAccepted makes the pod follow its accepted version for as long as the desired one cannot be
// saved, which has just failed: no action may precede that save.
func (s *Facts) ByAccepted() {
	if s.Pod == nil {
		return
	}
	f := s.Failures[Action{Do: DoUpdate, UID: string(s.Pod.UID)}.Key()]
	was := s.accepted()
	if was != nil && s.Now.Before(f.Retry) && !s.Checkpoint().IsRemoving() && s.change().Kind < update.Replace {
		s.Pod, s.Unaccepted = was, f.Retry
	}
}

// AwaitsAcceptance reports whether the desired version is to be accepted in place and is not yet:
// until then the containers are those of the former version and have its probes.
func (s *Facts) AwaitsAcceptance() bool {
	return s.Pod != nil && s.accepted() != nil && !s.Checkpoint().IsRemoving() && s.change().Kind < update.Replace
}

// planChange accepts the desired version in place of the accepted one. Only the next plan carries
// out what follows, so that a restarted agent knows of the version first.
func (s *Facts) planChange(p *Plan) bool {
	was := s.accepted()
	if !s.Unaccepted.IsZero() {
		p.wakeAt(s.Unaccepted)
		return false
	}
	if was == nil {
		return false
	}
	v := s.change()
	p.then(Action{Do: DoUpdate, UID: string(s.Pod.UID), Change: &v, Hooked: s.hookedBefore(was.Pod), Reason: v.Summary()})
	return true
}

// Accepts reports whether the plan accepts a version in place: until that is done the containers
// are those of the former version.
func (p *Plan) Accepts() bool {
	return slices.ContainsFunc(p.Steps, func(step []Action) bool {
		return slices.ContainsFunc(step, func(a Action) bool { return a.Do == DoUpdate })
	})
}

// hookedBefore returns the running containers, with their ids, that had no postStart hook and have
// one in the desired version.
func (s *Facts) hookedBefore(was *v1.Pod) map[string]string {
	out := map[string]string{}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := s.Instance().Newest(c.Name)
		if n != nil && n.Running() && podspec.PostStart(c) != nil && podspec.PostStart(podspec.FindContainer(was, c.Name)) == nil {
			out[c.Name] = n.ID
		}
	}
	return out
}

// planOutdated removes containers that were created for a former version and never
// started.
func planOutdated(p *Plan, i *pleg.Instance) {
	var remove []Action
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Outdated && c.State == rt.ContainerState_CONTAINER_CREATED {
			remove = append(remove, Action{Do: DoRemoveContainer, UID: i.UID, ID: c.ID, Name: c.Name, Attempt: c.Attempt, Reason: c.Kill.Reason})
		}
	}
	p.then(remove...)
}

// Why a container, or the pod, is not resized yet.
const (
	ReasonInUse   = "ResizeWaits"   // it uses more memory than its new limit
	ReasonRefused = "ResizeRefused" // the runtime refuses it
)

// refusals is how often in a row a runtime may refuse a resize before the container restarts.
const refusals = 3

// planFollow continues what the last accepted version requires: from the pod's cgroup to the
// containers where the pod grows, and then from the containers to the cgroup.
func (s *Facts) planFollow(p *Plan, i *pleg.Instance) {
	c := s.Checkpoint()
	f, uid := c.Following, string(s.Pod.UID)
	if f == nil {
		return
	}
	if !f.Raised {
		p.then(Action{Do: DoFollow, UID: uid, Beside: true, Reason: "another version was accepted"})
		return
	}
	var resize []Action
	fits := true
	for _, name := range f.Resize {
		a, done := s.resize(c, i, name)
		fits = fits && done
		if a != nil {
			resize = append(resize, *a)
		}
	}
	for k := range i.Containers {
		n := &i.Containers[k]
		fits = fits && !(n.Outdated && n.Live())
	}
	p.then(resize...)
	if fits {
		p.then(Action{Do: DoSettle, UID: uid, Beside: true, Reason: "all containers have their resources"})
	}
}

// resize returns the action that resizes a container; done: it has its cpu and memory, or gets them
// at its next start.
func (s *Facts) resize(c *checkpoint.Checkpoint, i *pleg.Instance, name string) (a *Action, done bool) {
	n := i.Newest(name)
	switch {
	case n == nil || n.Exited() || n.Outdated:
		return nil, true
	case !n.Running():
		return nil, false
	}
	a = &Action{Do: DoResize, UID: i.UID, ID: n.ID, Name: name, Revision: c.Revision, Beside: true, Reason: "its resources have changed"}
	failed := s.Failures[a.Key()]
	always := defaults.RestartPolicyOf(s.Pod.Pod, podspec.FindContainer(s.Pod.Pod, name)) == v1.RestartPolicyAlways
	if failed.Reason == ReasonRefused && failed.Count >= refusals && always && n.Revision < c.Revision {
		a.Do, a.Reason = DoRestartResized, "the runtime refuses to resize it: "+failed.Message.String()
	}
	return a, false
}

// Resizing reports whether containers or the pod are yet to be resized, and what prevents one
// resize; "": nothing.
func (s *Facts) Resizing() (w Waiting, resizes bool) {
	f := s.Checkpoint().Following
	if f == nil {
		return w, false
	}
	for _, name := range f.Resize {
		n := s.Instance().Newest(name)
		if n == nil {
			continue
		}
		if failed := s.Failures[Action{Do: DoResize, ID: n.ID}.Key()]; failed.Reason != "" {
			return Waiting{v1.PodReasonError, failed.Message}, true
		}
	}
	uid := s.Checkpoint().Uid()
	if failed := s.Failures[Action{Do: DoSettle, UID: uid}.Key()]; failed.Reason == ReasonInUse {
		return Waiting{v1.PodReasonError, failed.Message}, true
	}
	return w, len(f.Resize) > 0
}
