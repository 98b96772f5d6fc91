package agent

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/probe"
	"monopod/manifests"
)

// situation is all that a plan is made from.
type situation struct {
	Now      time.Time
	Pod      *manifests.Pod         // what shall run under this name; nil: nothing
	Known    map[string]*checkpoint // by uid: what is remembered under this name
	Observed *observed
	Unseen   bool                // the runtime was not asked: nothing follows from what is not observed
	Failures map[string]failure  // by container name, of what was tried last; sandboxFailure: the sandbox
	Runtime  string              // its name, for container ids
	Fetching map[string]underway // by container name: its image is on its way
	BackOff  BackOff             // of pods without their own
	Dead     int                 // containers kept of each container; 0 is 1
	Next     map[string]uint32   // by container name, where the runtime does not have its last attempt: the one that follows

	Probes    map[string]probe.Results // by container id, of those that run and have probes
	Stopping  map[string]stopping      // by container id
	PostStart map[string]hookState     // by container id: hooks that this agent has begun
	Began     time.Time                // when the pod became active, for its deadline
}

// failure is an attempt that went wrong and when to try again.
type failure struct {
	waiting
	Retry time.Time
	Count int // in a row
}

// sandboxFailure is the key of a sandbox's failure among those of containers.
const sandboxFailure = ""

// plan decides what is to be done so that the runtime has what the manifest
// says. It is a pure function: same situation, same plan. An instance that is
// not wanted goes completely before anything of a wanted one is made.
func plan(s situation) planned {
	var p planned
	for _, uid := range s.leaving() {
		s.planRetirement(&p, uid)
	}
	switch {
	case len(p.Steps) > 0:
	case s.Pod == nil:
		p.Gone = true
	case s.known().ended() != "":
		s.planRest(&p, "the pod has ended")
	default:
		s.planLife(&p)
	}
	s.await(&p)
	return p
}

// known returns the wanted pod's checkpoint, an empty one before there is any.
func (s *situation) known() *checkpoint {
	if c := s.Known[string(s.Pod.UID)]; c != nil {
		return c
	}
	return &checkpoint{Pod: s.Pod.Pod}
}

// instance returns what the runtime has of the wanted pod, or nil.
func (s *situation) instance() *instance { return s.Observed.Instances[string(s.Pod.UID)] }

// leaving returns the uids of the instances that must go, in order.
func (s *situation) leaving() []string {
	all := map[string]bool{}
	for uid := range s.Observed.Instances {
		all[uid] = true
	}
	for uid := range s.Known {
		all[uid] = true
	}
	if s.Pod != nil {
		c := s.known()
		if !c.retired() && (c.Digest == "" || c.Digest == s.Pod.Digest) {
			delete(all, c.uid())
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// planRetirement stops one instance, gracefully and in order, and removes all
// that there is of it.
func (s *situation) planRetirement(p *planned, uid string) {
	why := "its manifest is gone"
	if s.Pod != nil {
		why = "its manifest has changed"
	}
	c := s.Known[uid]
	if c != nil && !c.retired() {
		p.then(action{Do: doRetire, UID: uid, Reason: why})
	}
	i := s.Observed.Instances[uid]
	if i == nil {
		i = &instance{UID: uid}
	}
	var pod *v1.Pod
	var used time.Duration
	if c != nil {
		pod = c.Pod
		if c.retired() {
			used = s.Now.Sub(c.Pod.DeletionTimestamp.Time)
		}
	}
	planStop(p, i, pod, causePod, why, used)
	var remove []action
	for _, b := range i.Sandboxes {
		remove = append(remove, action{Do: doRemoveSandbox, UID: uid, ID: b.ID, Reason: why})
	}
	p.then(remove...)
	p.then(action{Do: doForget, UID: uid, Reason: why})
}

// planRest makes sure that nothing of the pod runs, and keeps what is dead for
// whoever wants to read its logs.
func (s *situation) planRest(p *planned, why string) {
	if i := s.instance(); i != nil {
		planStop(p, i, s.Pod.Pod, causePod, why, 0)
		s.planPrune(p, i)
	}
}
