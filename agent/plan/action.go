package plan

import (
	"fmt"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/update"
)

// verb is what an action does, in the imperative: plans and errors print it.
type verb string

const (
	DoAccept          verb = "accept"               // write the pod's checkpoint
	DoMarkRemoving    verb = "mark for removal"     // write into the checkpoint that the instance must be removed
	DoSaveActive      verb = "save active time"     // write into the checkpoint how long the pod has been active
	DoRecordResult    verb = "record result"        // write into the checkpoint how the pod ends, before it is stopped
	DoEnd             verb = "end"                  // write into the checkpoint how the pod ended
	DoSetUp           verb = "set up"               // make the pod's cgroup, dirs and volumes
	DoRemoveVolumes   verb = "remove volumes"       // unmount them and remove their content
	DoForget          verb = "forget"               // remove the instance's cgroup, volumes, dirs, logs and checkpoint
	DoCreateSandbox   verb = "create sandbox"       //
	DoStopSandbox     verb = "stop sandbox"         //
	DoRemoveSandbox   verb = "remove sandbox"       // and the containers in it
	DoStartContainer  verb = "start container"      // pull its image, create and start it
	DoResumeContainer verb = "resume container"     // start one that was created and never started
	DoRunPostStart    verb = "run postStart"        // in the background
	DoMarkKill        verb = "record kill decision" // write it into the checkpoint
	DoStopContainer   verb = "stop container"       // after its preStop hook, in the background
	DoRemoveContainer verb = "remove container"     // and its log files
	DoReload          verb = "reload container"     // tell it that its configuration has changed, in the background
	DoInterrupt       verb = "interrupt"            // write into the checkpoint that the pod starts from the beginning
	DoReplaceSandbox  verb = "replace sandbox"      // write into the checkpoint that the pod must get a new sandbox
	DoUpdate          verb = "update"               // write another version of the pod into the checkpoint, which replaces the present one
	DoFollow          verb = "follow"               // update the volumes to that version, and the pod's cgroup where it grows
	DoResize          verb = "resize container"     // to the cpu and memory of that version
	DoRestartResized  verb = "restart resized"      // write into the checkpoint that a container restarts to be resized
	DoSettle          verb = "settle"               // set the pod's cgroup to the values of that version
	DoMark            verb = "mark"                 // write into the checkpoint the back-offs with which all containers restart
)

// verbTexts are the texts of the log: what was done, or runs in the background from now on, and the
// noun of a failure ("container start" failed).
var verbTexts = map[verb]struct{ done, noun string }{
	DoAccept:          {"pod accepted", "pod acceptance"},
	DoMarkRemoving:    {"pod removal recorded", "pod removal record"},
	DoSaveActive:      {"active time saved", "active time save"},
	DoRecordResult:    {"pod result recorded", "pod result record"},
	DoEnd:             {"pod ended", "pod end"},
	DoSetUp:           {"pod set up", "pod setup"},
	DoRemoveVolumes:   {"pod volumes removed", "removal of pod volumes"},
	DoForget:          {"pod removed", "pod removal"},
	DoCreateSandbox:   {"sandbox created", "sandbox creation"},
	DoStopSandbox:     {"sandbox stopped", "sandbox stop"},
	DoRemoveSandbox:   {"sandbox removed", "sandbox removal"},
	DoStartContainer:  {"container started", "container start"},
	DoResumeContainer: {"container started", "container start"},
	DoRunPostStart:    {"running postStart hook", "postStart hook"},
	DoMarkKill:        {"kill decision recorded", "kill decision record"},
	DoStopContainer:   {"stopping container", "container stop"},
	DoRemoveContainer: {"container removed", "container removal"},
	DoReload:          {"telling container of its changed config", "container reload"},
	DoInterrupt:       {"interruption recorded", "interruption record"},
	DoReplaceSandbox:  {"restart request recorded", "restart request record"},
	DoUpdate:          {"new version accepted", "acceptance of the new version"},
	DoFollow:          {"volumes follow the new version", "update of volumes and cgroup"},
	DoResize:          {"container resized", "container resize"},
	DoRestartResized:  {"restart recorded for a resize", "record of a restart for a resize"},
	DoSettle:          {"cgroup follows the new version", "update of the cgroup"},
	DoMark:            {"back-offs recorded", "back-off record"},
}

// Done returns the log text of an action that was carried out, or that runs in the background from
// now on.
func (v verb) Done() string { return verbTexts[v].done }

// Noun returns the log's name of the action when it has failed.
func (v verb) Noun() string { return verbTexts[v].noun }

// Action is one thing to do, and why. It has all that Apply needs.
type Action struct {
	Do      verb
	UID     string        // the instance
	ID      string        // the id of the sandbox or container in the runtime, if there is one
	Name    string        // the container's name in the pod
	Attempt uint32        // of the sandbox or container to create
	Grace   time.Duration // for a stop
	Active  time.Duration // the active time to save
	BackOff string        // for a start: the back-off before it
	PreStop string        // for a stop: the hook that runs first, as JSON
	Behind  []string      // for a stop: ids of containers that end first, as far as the grace allows
	Whole   bool          // for a stop: all containers stop, and the steps after it wait for their end
	Beside  bool          // the steps after it do not wait for its end
	Marks   map[string]string
	Change  *update.Verdict   // of an update
	Hooked  map[string]string // of an update: see checkpoint.Updated
	Excused []string          // of an interruption, a restart request or a start that was broken off: the containers of a Job whose attempts do not count
	// Revision is the revision of the pod's version, for a start or a resize.
	Revision int
	Verdict  checkpoint.Result // for an end
	Cause    checkpoint.Cause  // for a stop or a kill decision
	Reason   string            // for a person
	Text     string            // for a kill decision: the message of the probe or the hook; for a reload: of what it is told, see objects.Set.EnvOf
	Asked    bool              // for a kill decision: see KillDecision.Requested
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

// Plan is the result of Make.
type Plan struct {
	// Steps are carried out one after the other, the actions of one step
	// together. A step starts only if the one before succeeded.
	Steps [][]Action
	// Wake is when to plan again even if nothing happens; zero: no need.
	Wake time.Time
	// Waiting has the reason why containers that could start do not start yet.
	Waiting map[string]Waiting
	// Starts has when those of them that crashed start again.
	Starts map[string]time.Time
	// Gone: nothing is left of the pod, and no pod is desired.
	Gone bool
}

// Waiting is why a container does not run, in the kubelet's words.
type Waiting struct {
	Reason  string
	Message message.Text
}

func (p *Plan) then(step ...Action) {
	if len(step) > 0 {
		p.Steps = append(p.Steps, step)
	}
}

// wakeAt makes sure that the pod is planned again at t.
func (p *Plan) wakeAt(t time.Time) {
	if p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
	}
}

// startsAt records when a crashed container starts again.
func (p *Plan) startsAt(name string, at time.Time) {
	if p.Starts == nil {
		p.Starts = map[string]time.Time{}
	}
	p.Starts[name] = at.UTC()
}

func (p *Plan) Wait(name string, w Waiting) {
	if p.Waiting == nil {
		p.Waiting = map[string]Waiting{}
	}
	p.Waiting[name] = w
}
