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

// accepted returns the accepted version that has the desired one's uid, if it is another;
// nil: there is none.
func (s *Facts) accepted() *manifests.Pod {
	c := s.Known[string(s.Pod.UID)]
	if c == nil || c.Digest == "" || c.Digest == s.Pod.Digest {
		return nil
	}
	return c.Version()
}

// change is how the accepted version becomes the desired one. A pod that ends or has
// ended runs again.
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

// ByAccepted lets the pod go by its accepted version for as long as the desired one
// cannot be saved, which failed a moment ago: nothing may come before that.
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

// AwaitsAcceptance reports whether the desired version is to be accepted in place and is not
// yet: until then the containers are those of the one before, and are probed as it says.
func (s *Facts) AwaitsAcceptance() bool {
	return s.Pod != nil && s.accepted() != nil && !s.Checkpoint().IsRemoving() && s.change().Kind < update.Replace
}

// planChange accepts the desired version in place of the accepted one. Only the next plan
// carries out what that takes: a restarted agent knows of it.
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

// Accepts reports whether the plan accepts a version in place: until that is done the
// containers are of the one before.
func (p *Plan) Accepts() bool {
	return slices.ContainsFunc(p.Steps, func(step []Action) bool {
		return slices.ContainsFunc(step, func(a Action) bool { return a.Do == DoUpdate })
	})
}

// hookedBefore returns the containers that run without a postStart hook and have one in
// the desired version, with their ids.
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
	ReasonInUse   = "ResizeWaits"   // it uses more memory than it is to have
	ReasonRefused = "ResizeRefused" // the runtime says so
)

// refusals is how often in a row a runtime refuses a resize before the container restarts.
const refusals = 3

// planFollow goes on with what follows the version that was accepted last: from the
// outside in where the pod grows, and then from the inside out.
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

// resize returns the action that gives a container its cpu and memory; done: it has them,
// or its next start gives them.
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

// Resizing reports whether containers or the pod are yet to be resized, and what keeps one of them
// from it; "": nothing does.
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
