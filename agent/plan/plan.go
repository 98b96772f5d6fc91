// Package plan decides, as pure functions, what a worker does next for its pod.
package plan

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/probe"
	"monopod/agent/update"
	"monopod/manifests"
)

// Facts is everything that a plan is made from.
type Facts struct {
	Now       time.Time                         // the wall clock; comparisons use the process's monotonic clock
	Mark      checkpoint.Mark                   // the same moment, in the form that is saved
	Pod       *manifests.Pod                    // the desired pod; nil: none
	Exchanges bool                              // there is none only because other pods wait for what it has, as it does for what they have
	Known     map[string]*checkpoint.Checkpoint // by uid, of this pod name
	Observed  *pleg.Observed
	Since     time.Time          // when the desired pod started, according to the last report; for one without a checkpoint
	Unseen    bool               // the runtime was not queried: what is not observed may exist
	Failures  map[string]Failure // of the last attempts, by Action.Key: a container name, SandboxFailure, ...
	Running   map[string]Running // by Action.Key
	Runtime   string             // the runtime's name, for container ids
	Fetching  map[string]Pull    // image pulls that run, by container name
	BackOff   BackOff            // the back-off of pods without their own
	Dead      int                // dead attempts kept of each container; 0 is 1
	Policy    string             // the update policy, as in PlanSettings
	Next      map[string]uint32  // next attempts by container name, where the runtime lacks the last one
	Reported  v1.PodPhase        // how the desired pod ended according to the last report; "": it had not ended, or there is none

	Probes    map[string]probe.Results // by container id, of those that run and have probes
	Stopping  map[string]Stopping      // by container id
	PostStart map[string]HookState     // by container id: hooks that this agent started
	Reloading map[string]Reloading     // by container id

	CgroupGone bool      // the pod's cgroup existed and no longer does
	NoNetwork  string    // why the runtime cannot give pods a network; "": it can, or that is not known
	Unsaid     time.Time // since when the runtime does not report the sandbox's network; zero: it does
	// Env has what the variables and volumes of containers that react to changed objects are made of
	// now, by container name, see objects.Set.Env.
	Env        map[string]string
	Restarts   bool           // running containers may restart, or be told, for a change of Env
	Edits      []message.Text // the effects of edits of its objects on the running containers
	Refresh    time.Time      // when its volumes must be updated; zero: they are up to date
	Former     []string       // names of volumes that could not be updated
	Volumes    bool           // the pod has volumes on disk that do not outlive its end
	Unaccepted time.Time      // until then Pod is the former version, since the desired one was not saved; zero: Pod is the desired one
	Halted     Halt           // why the desired pod may not run; zero: it may
}

// Failure is an action that failed and when to retry it. Without a reason it is not reported yet.
type Failure struct {
	Waiting
	Object string // see Action.Object
	Retry  time.Time
	Image  string    // which image is missing and why, in words; "": another failure
	Pulls  bool      // that image will be pulled again
	Count  int       // in a row
	IsDisk bool      // the disk of the root dir takes no data
	Busy   time.Time // since when the runtime is busy with the object; zero: it is not
	Skip   uint32    // attempts whose names are taken by others

	Made   int // sandboxes created in a row, none of which lived long
	MadeAt time.Time
}

// SandboxFailure is the key of a sandbox's failure among those of containers.
const SandboxFailure = ""

// Make decides what to do so that the runtime has what the manifest requires. It is a pure
// function: same facts, same plan. An instance that is not desired is removed completely before
// anything of the desired one is created.
func Make(s Facts) Plan {
	var p Plan
	for _, uid := range s.Leaving() {
		s.planRemoval(&p, uid)
	}
	switch {
	case len(p.Steps) > 0:
	case s.Pod == nil:
		p.Gone = true
	case s.planChange(&p):
	case s.Checkpoint().Ended() != "":
		s.planStopped(&p, "the pod has ended")
		s.planVolumes(&p)
	case s.Halted.Reason != "":
		s.planHalted(&p)
	default:
		s.planRunning(&p)
	}
	for _, uid := range s.Remains() {
		p.then(Action{Do: DoForget, UID: uid, Beside: true, Reason: s.whyLeaving(uid)})
	}
	s.await(&p)
	s.awaitNetwork(&p)
	if !s.Refresh.IsZero() {
		p.wakeAt(s.Refresh)
	}
	s.hold(&p)
	return p
}

// Checkpoint returns the desired pod's checkpoint, or an empty one if there is none yet.
func (s *Facts) Checkpoint() *checkpoint.Checkpoint {
	if c := s.Known[string(s.Pod.UID)]; c != nil {
		return c
	}
	return &checkpoint.Checkpoint{Pod: s.Pod.Pod}
}

// Instance returns what the runtime has of the desired pod, or nil.
func (s *Facts) Instance() *pleg.Instance { return s.Observed.Instances[string(s.Pod.UID)] }

// Leaving returns, in order, the uids of the instances that must be removed before the desired one
// may start.
func (s *Facts) Leaving() []string {
	return slices.DeleteFunc(s.former(), s.onlyFiles)
}

// Remains returns the uids of former instances of which only files are left, which are removed
// while the desired instance runs.
func (s *Facts) Remains() []string {
	return slices.DeleteFunc(s.former(), func(uid string) bool { return !s.onlyFiles(uid) })
}

// onlyFiles reports whether a former instance has nothing that conflicts with the desired one.
func (s *Facts) onlyFiles(uid string) bool {
	if s.Pod == nil || string(s.Pod.UID) == uid || s.Observed.Instances[uid] != nil || s.Unseen {
		return false
	}
	for _, r := range s.Running {
		if r.UID == uid && r.Makes {
			return false
		}
	}
	c := s.Known[uid]
	return c != nil && c.IsRemoving()
}

// former returns the uids of all instances but the desired one, in order.
func (s *Facts) former() []string {
	all := map[string]bool{}
	for uid := range s.Observed.Instances {
		all[uid] = true
	}
	for uid := range s.Known {
		all[uid] = true
	}
	if s.Pod != nil {
		c := s.Checkpoint()
		if !c.IsRemoving() && s.change().Kind < update.Replace {
			delete(all, c.Uid())
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *Facts) whyLeaving(uid string) string {
	c := s.Known[uid]
	switch {
	case s.Pod == nil && s.Exchanges:
		return whyExchanged
	case s.Pod == nil:
		return "its manifest is gone"
	case c != nil && c.IsRemoving() && c.Digest == s.Pod.Digest && uid == string(s.Pod.UID):
		return "its manifest was gone for a while"
	}
	return WhyReplaced
}

// whyExchanged is the reason of a removal because pods exchange ports or uids.
const whyExchanged = "other pods wait for what it has, as its next version does for what they have"

// WhyReplaced is the reason of a removal because another version replaces this one.
const WhyReplaced = "its manifest has changed"

// planRemoval stops one instance, gracefully and in order, and removes
// everything of it.
func (s *Facts) planRemoval(p *Plan, uid string) {
	why := s.whyLeaving(uid)
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
			used = c.RemovingFor(s.Now, s.Mark)
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

// planStopped stops everything of the pod that runs, and keeps its dead
// containers and their logs.
func (s *Facts) planStopped(p *Plan, why string) {
	if i := s.Instance(); i != nil {
		planStop(p, i, s.Pod.Pod, checkpoint.CausePod, why, 0)
		s.planPrune(p, i)
	}
}
