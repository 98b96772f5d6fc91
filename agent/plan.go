package agent

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/probe"
	"monopod/manifests"
)

// situation is all that a plan is made from.
type situation struct {
	Now      time.Time
	Pod      *manifests.Pod         // what shall run under this name; nil: nothing
	Known    map[string]*checkpoint // by uid: what is remembered under this name
	Observed *observed
	Failures map[string]failure // by container name, of what was tried last; sandboxFailure: the sandbox
	Runtime  string             // its name, for container ids
	Fetching map[string]bool    // by container name: its image is on its way
	BackOff  BackOff            // of pods without their own
	Logged   map[string]uint32  // by container name: the attempt that follows those whose log files are on disk

	Probes map[string]probe.Results // by container id, of those that run and have probes
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
	if c != nil {
		pod = c.Pod
	}
	planStop(p, i, pod, why)
	var remove []action
	for _, b := range i.Sandboxes {
		remove = append(remove, action{Do: doRemoveSandbox, UID: uid, ID: b.ID, Reason: why})
	}
	p.then(remove...)
	p.then(action{Do: doForget, UID: uid, Reason: why})
}

// planStop stops an instance's containers and sandboxes: regular containers
// together, then sidecars in reverse order. pod may be nil when nobody knows
// what the instance was made from; then all containers stop together.
func planStop(p *planned, i *instance, pod *v1.Pod, why string) {
	order := map[string]int{} // sidecars by name, 1 for the one that stops first
	if pod != nil {
		for k := len(pod.Spec.InitContainers) - 1; k >= 0; k-- {
			if c := &pod.Spec.InitContainers[k]; restarts(c) {
				order[c.Name] = len(order) + 1
			}
		}
	}
	steps := make([][]action, len(order)+1)
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.running() || c.State == rt.ContainerState_CONTAINER_UNKNOWN {
			at := order[c.Name]
			steps[at] = append(steps[at], stopContainer(i, c, why))
		}
	}
	for _, step := range steps {
		p.then(step...)
	}
	var stop []action
	for _, b := range i.Sandboxes {
		if b.Ready {
			stop = append(stop, action{Do: doStopSandbox, UID: i.UID, ID: b.ID, Reason: why})
		}
	}
	p.then(stop...)
}

// minGrace is the least time a container gets between SIGTERM and SIGKILL, as
// with the kubelet (spec: killing, minimum).
const minGrace = 2 * time.Second

func stopContainer(i *instance, c *container, why string) action {
	return action{Do: doStopContainer, UID: i.UID, ID: c.ID, Name: c.Name, Grace: max(c.Grace, minGrace), Reason: why}
}

// planRest makes sure that nothing of the pod runs, and keeps what is dead for
// whoever wants to read its logs.
func (s *situation) planRest(p *planned, why string) {
	if i := s.instance(); i != nil {
		planStop(p, i, s.Pod.Pod, why)
	}
}
