package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/manifests"
)

// Decision is what is to become of one pod name.
type Decision struct {
	Run     *manifests.Pod // the version of which anything may be there; nil: everything must go
	Prepare *manifests.Pod // is made ready beside it; nil: nothing
	Halt    plan.Halt      // why nothing of Run is to run though it stays; zero: it runs
	Rests   bool           // nothing is there and nothing is to be: no worker is needed

	Removes  bool                 // no manifest gives the pod any more
	Takes    bool                 // Run is let start, and takes its room
	Replaces bool                 // Run takes the place of the accepted version, whose room it has
	Refused  *admission.Rejection // why the offered version is not let start; nil: it is, or nothing was asked
	Keeps    bool                 // the former version runs until the offered one can
	IsEarly  bool                 // for that, it would not have been let start yet either way
	Waits    []Wait               // for what, in the order in which it is told; nothing: the offered version runs

	// Again is when the name must be decided on again though nothing happens; zero: never. A
	// rule whose answer changes with time gives the moment in which it does, to be compared
	// with World.Now: always one that is still to come.
	Again time.Time
}

// Reasons of the events about an update that does not happen at once.
const (
	ReasonWaits     = "UpdateWaits"
	ReasonContinues = "UpdateContinues"
)

// Cause is what something waits for.
type Cause string

// The causes.
const (
	ByOwner      Cause = "Stopped"    // the owner stopped the pod
	ByShutdown   Cause = "Shutdown"   // the machine goes down
	ByStartOrder Cause = "StartOrder" // pods that it starts after
	ByHold       Cause = "Hold"       // the node is held: no pod starts
	ByGate       Cause = "Gate"       // a hold, an update window, or the workload's lock
	ByPreparing  Cause = "Preparing"  // what the new version lacks is not known yet
	ByLack       Cause = "Lack"       // the new version lacks something
	ByRoom       Cause = "Room"       // the node has no room
	ByLook       Cause = "Look"       // whether there is a lock is not known yet
	ByFault      Cause = "Fault"      // the loop panicked over it
)

// Wait is one thing that a pod waits for.
type Wait struct {
	By   Cause
	Text message.Text
}

// waits adds a wait.
func (d *Decision) waits(by Cause, text message.Text) { d.Waits = append(d.Waits, Wait{by, text}) }

// lookAgain makes the name be decided on again at a time, or earlier if another rule says so.
func (d *Decision) lookAgain(at time.Time) {
	if d.Again.IsZero() || at.Before(d.Again) {
		d.Again = at
	}
}

// Gated is what a hold, a window or a lock says of the prepared version, or of a removal; "":
// none of them keeps it.
func (d *Decision) Gated() string {
	for _, w := range d.Waits {
		if w.By == ByGate {
			return w.Text.String()
		}
	}
	return ""
}

// Line says what an update or a removal waits for while the version before runs; "": nothing
// that is worth a word.
func (d *Decision) Line() string {
	if d.Run == nil || d.Halt.Reason != "" {
		return ""
	}
	var reasons []string
	for _, w := range d.Waits {
		if w.By != ByLook && w.By != ByPreparing && w.By != ByStartOrder {
			reasons = append(reasons, w.Text.String())
		}
	}
	switch {
	case len(reasons) == 0:
		return ""
	case d.Removes:
		return "removal waits: " + strings.Join(reasons, "; ")
	}
	return "update waits: " + strings.Join(reasons, "; ")
}

// WaitsBy reports whether the cause is one of its waits.
func (d *Decision) WaitsBy(cause Cause) bool {
	return slices.ContainsFunc(d.Waits, func(w Wait) bool { return w.By == cause })
}

// String tells the decision in a line, for tests and logs.
func (d Decision) String() string {
	text := "run nothing"
	switch {
	case d.Rests:
		text = "rest"
	case d.Run != nil:
		text = "run " + short(d.Run)
	}
	if d.Halt.Reason != "" {
		text += " halted"
	}
	if d.Takes {
		text += ", take its room"
	}
	if d.Replaces {
		text += ", in place"
	}
	if d.Prepare != nil {
		text += ", prepare " + short(d.Prepare)
	}
	for _, w := range d.Waits {
		text += fmt.Sprintf("; waits by %s", w.By)
	}
	return text
}

func short(p *manifests.Pod) string { return fmt.Sprintf("%.8s", p.Digest) }
