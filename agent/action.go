package agent

import (
	"fmt"
	"time"
)

// verb is what an action does.
type verb string

const (
	doAccept          verb = "accept"            // write the pod's checkpoint
	doRetire          verb = "retire"            // write into the checkpoint that the instance is to go
	doSettle          verb = "settle"            // write into the checkpoint how the pod will have ended
	doEnd             verb = "end"               // write into the checkpoint how the pod ended
	doSetUp           verb = "set up"            // make the pod's cgroup, dirs and volumes
	doForget          verb = "forget"            // remove the instance's cgroup, volumes, dirs, logs and checkpoint
	doCreateSandbox   verb = "create sandbox"    //
	doStopSandbox     verb = "stop sandbox"      //
	doRemoveSandbox   verb = "remove sandbox"    // and the containers in it
	doStartContainer  verb = "start container"   // pull its image, create and start it
	doResumeContainer verb = "resume container"  // start one that was created and never started
	doRunPostStart    verb = "run postStart"     // beside the worker
	doCondemn         verb = "condemn container" // write into the checkpoint that it is to be stopped and restarted
	doStopContainer   verb = "stop container"    // after its preStop hook, beside the worker
	doRemoveContainer verb = "remove container"  // and its log files
	doRenew           verb = "renew"             // write into the checkpoint that the pod is to get a new sandbox
	doMark            verb = "mark"              // write into the checkpoint with which back-offs all containers restart
)

// action is one thing to be done, and why. It says all that apply needs.
type action struct {
	Do      verb
	UID     string        // the instance
	ID      string        // the sandbox or container in the runtime, where there is one
	Name    string        // the container's name in the pod
	Attempt uint32        // of the sandbox or container to be made
	Grace   time.Duration // for a stop
	BackOff string        // for a start: what was waited before it
	PreStop string        // for a stop: the hook that comes first, as JSON
	Behind  []string      // for a stop: ids of containers that end first, as far as the grace allows
	Whole   bool          // for a stop: all containers stop, and what is planned after it waits for their end
	Marks   map[string]string
	Verdict verdict // for an end
	Cause   cause   // for a stop, and the decision to stop
	Reason  string  // for a person
	Text    string  // for a condemnation: what the probe or the hook said
	Asked   bool    // likewise: somebody asked for it, see condemned
}

func (a action) String() string {
	s := string(a.Do)
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Do == doCreateSandbox || a.Do == doStartContainer {
		s += fmt.Sprintf(" #%d", a.Attempt)
	}
	return s + ": " + a.Reason
}

// planned is what plan decided.
type planned struct {
	// Steps are carried out one after the other, the actions of one step
	// together. A step is begun only when the one before went well.
	Steps [][]action
	// Wake is when to look again even if nothing happens; zero: no need.
	Wake time.Time
	// Waiting says of containers that could start why they do not yet.
	Waiting map[string]waiting
	// Gone: nothing is left of the pod, and nothing shall be.
	Gone bool
}

// waiting is why a container does not run, in the kubelet's words.
type waiting struct{ Reason, Message string }

func (p *planned) then(step ...action) {
	if len(step) > 0 {
		p.Steps = append(p.Steps, step)
	}
}

// wakeAt makes sure that the pod is looked at again at t.
func (p *planned) wakeAt(t time.Time) {
	if p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
	}
}

func (p *planned) wait(name string, w waiting) {
	if p.Waiting == nil {
		p.Waiting = map[string]waiting{}
	}
	p.Waiting[name] = w
}
