package plan

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/probe"
	"monopod/manifests"
)

// Facts is all that a plan is made from.
type Facts struct {
	Now      time.Time
	Pod      *manifests.Pod                    // what shall run under this name; nil: nothing
	Known    map[string]*checkpoint.Checkpoint // by uid: what is remembered under this name
	Observed *pleg.Observed
	Unseen   bool               // the runtime was not asked: nothing follows from what is not observed
	Failures map[string]Failure // by container name, of what was tried last; sandboxFailure: the sandbox
	Runtime  string             // its name, for container ids
	Fetching map[string]Pull    // by container name: its image is on its way
	BackOff  BackOff            // of pods without their own
	Dead     int                // containers kept of each container; 0 is 1
	Next     map[string]uint32  // by container name, where the runtime does not have its last attempt: the one that follows

	Probes    map[string]probe.Results // by container id, of those that run and have probes
	Stopping  map[string]Stopping      // by container id
	PostStart map[string]HookState     // by container id: hooks that this agent has begun
	Began     time.Time                // when the pod became active, for its deadline
}

// Failure is an attempt that went wrong and when to try again.
type Failure struct {
	Waiting
	Retry time.Time
	Count int // in a row
}

// SandboxFailure is the key of a sandbox's failure among those of containers.
const SandboxFailure = ""

// Make decides what is to be done so that the runtime has what the manifest
// says. It is a pure function: same situation, same plan. An instance that is
// not wanted goes completely before anything of a wanted one is made.
func Make(s Facts) Plan {
	var p Plan
	for _, uid := range s.Leaving() {
		s.planRemoval(&p, uid)
	}
	switch {
	case len(p.Steps) > 0:
	case s.Pod == nil:
		p.Gone = true
	case s.Checkpoint().Ended() != "":
		s.planStopped(&p, "the pod has ended")
	default:
		s.planRunning(&p)
	}
	s.await(&p)
	return p
}

// Checkpoint returns the wanted pod's checkpoint, an empty one before there is any.
func (s *Facts) Checkpoint() *checkpoint.Checkpoint {
	if c := s.Known[string(s.Pod.UID)]; c != nil {
		return c
	}
	return &checkpoint.Checkpoint{Pod: s.Pod.Pod}
}

// Instance returns what the runtime has of the wanted pod, or nil.
func (s *Facts) Instance() *pleg.Instance { return s.Observed.Instances[string(s.Pod.UID)] }

// Leaving returns the uids of the instances that must go, in order.
func (s *Facts) Leaving() []string {
	all := map[string]bool{}
	for uid := range s.Observed.Instances {
		all[uid] = true
	}
	for uid := range s.Known {
		all[uid] = true
	}
	if s.Pod != nil {
		c := s.Checkpoint()
		if !c.IsRemoving() && (c.Digest == "" || c.Digest == s.Pod.Digest) {
			delete(all, c.Uid())
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// planRemoval stops one instance, gracefully and in order, and removes all
// that there is of it.
func (s *Facts) planRemoval(p *Plan, uid string) {
	why := "its manifest is gone"
	if s.Pod != nil {
		why = "its manifest has changed"
	}
	c := s.Known[uid]
	if c != nil && !c.IsRemoving() {
		p.then(Action{Do: DoMarkRemoving, UID: uid, Reason: why})
	}
	i := s.Observed.Instances[uid]
	if i == nil {
		i = &pleg.Instance{UID: uid}
	}
	var pod *v1.Pod
	var used time.Duration
	if c != nil {
		pod = c.Pod
		if c.IsRemoving() {
			used = s.Now.Sub(c.Pod.DeletionTimestamp.Time)
		}
	}
	planStop(p, i, pod, checkpoint.CausePod, why, used)
	var remove []Action
	for _, b := range i.Sandboxes {
		remove = append(remove, Action{Do: DoRemoveSandbox, UID: uid, ID: b.ID, Reason: why})
	}
	p.then(remove...)
	p.then(Action{Do: DoForget, UID: uid, Reason: why})
}

// planStopped makes sure that nothing of the pod runs, and keeps what is dead for
// whoever wants to read its logs.
func (s *Facts) planStopped(p *Plan, why string) {
	if i := s.Instance(); i != nil {
		planStop(p, i, s.Pod.Pod, checkpoint.CausePod, why, 0)
		s.planPrune(p, i)
	}
}
