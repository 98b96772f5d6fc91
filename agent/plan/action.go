package plan

import (
	"fmt"
	"time"

	"monopod/agent/checkpoint"
)

// verb is what an action does.
type verb string

const (
	DoAccept          verb = "accept"            // write the pod's checkpoint
	DoMarkRemoving    verb = "retire"            // write into the checkpoint that the instance is to go
	DoRecordResult    verb = "settle"            // write into the checkpoint how the pod will have ended
	DoEnd             verb = "end"               // write into the checkpoint how the pod ended
	DoSetUp           verb = "set up"            // make the pod's cgroup, dirs and volumes
	DoForget          verb = "forget"            // remove the instance's cgroup, volumes, dirs, logs and checkpoint
	DoCreateSandbox   verb = "create sandbox"    //
	DoStopSandbox     verb = "stop sandbox"      //
	DoRemoveSandbox   verb = "remove sandbox"    // and the containers in it
	DoStartContainer  verb = "start container"   // pull its image, create and start it
	DoResumeContainer verb = "resume container"  // start one that was created and never started
	DoRunPostStart    verb = "run postStart"     // beside the worker
	DoMarkKill        verb = "condemn container" // write into the checkpoint that it is to be stopped and restarted
	DoStopContainer   verb = "stop container"    // after its preStop hook, beside the worker
	DoRemoveContainer verb = "remove container"  // and its log files
	DoReplaceSandbox  verb = "renew"             // write into the checkpoint that the pod is to get a new sandbox
	DoMark            verb = "mark"              // write into the checkpoint with which back-offs all containers restart
)

// Action is one thing to be done, and why. It says all that apply needs.
type Action struct {
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
	Verdict checkpoint.Result // for an end
	Cause   checkpoint.Cause  // for a stop, and the decision to stop
	Reason  string            // for a person
	Text    string            // for a condemnation: what the probe or the hook said
	Asked   bool              // likewise: somebody asked for it, see condemned
}

func (a Action) String() string {
	s := string(a.Do)
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Do == DoCreateSandbox || a.Do == DoStartContainer {
		s += fmt.Sprintf(" #%d", a.Attempt)
	}
	return s + ": " + a.Reason
}

// Plan is what plan decided.
type Plan struct {
	// Steps are carried out one after the other, the actions of one step
	// together. A step is begun only when the one before went well.
	Steps [][]Action
	// Wake is when to look again even if nothing happens; zero: no need.
	Wake time.Time
	// Waiting says of containers that could start why they do not yet.
	Waiting map[string]Waiting
	// Gone: nothing is left of the pod, and nothing shall be.
	Gone bool
}

// Waiting is why a container does not run, in the kubelet's words.
type Waiting struct{ Reason, Message string }

func (p *Plan) then(step ...Action) {
	if len(step) > 0 {
		p.Steps = append(p.Steps, step)
	}
}

// wakeAt makes sure that the pod is looked at again at t.
func (p *Plan) wakeAt(t time.Time) {
	if p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
	}
}

func (p *Plan) Wait(name string, w Waiting) {
	if p.Waiting == nil {
		p.Waiting = map[string]Waiting{}
	}
	p.Waiting[name] = w
}
