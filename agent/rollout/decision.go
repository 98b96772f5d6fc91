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
	Final   bool           // only the last look at what Prepare needs is missing
	Halt    plan.Halt      // why nothing of Run is to run though it stays; zero: it runs
	Rests   bool           // nothing is there and nothing is to be: no worker is needed

	Removes  bool     // no manifest gives the pod any more
	Takes    bool     // Run is let start, and takes its room
	Replaces bool     // Run takes the place of the accepted version, whose room it has
	Keeps    bool     // the former version runs until the offered one can
	IsEarly  bool     // for that, the offered version would not have been let start yet, with room or without
	Refused  *Refusal // a version is not let start; nil: it is, or nothing was asked
	Waits    []Wait   // for what, in the order in which it is told; nothing: the offered version runs

	Outdated     string // the object for whose change containers of Run are to restart; "": none is
	Restarts     bool   // containers of Run may restart for changed config
	RestartWaits []Wait // for what that waits; nothing: for nothing, or there is no such container
	Looks        bool   // it is to be looked for the lock of the accepted version, from now on

	Trial   *Trial  // of the name from now on; nil: there is none, or the record has it
	Outcome Outcome // what the look at it came to

	// Again is when the name must be decided on again though nothing happens; zero: never. A
	// rule whose answer changes with time gives the moment in which it does, to be compared
	// with World.Now: always one that is still to come.
	Again time.Time
}

// Refusal is why the node does not let a version start.
type Refusal struct {
	Of    *manifests.Pod
	Why   admission.Rejection
	Since time.Time // of the first refusal of this version
}

// refuse says why a version is not let start; nil: it is.
func (d *Decision) refuse(of *manifests.Pod, why *admission.Rejection, r *Record, now time.Time) {
	if why == nil {
		return
	}
	d.Refused = &Refusal{Of: of, Why: *why, Since: now}
	if was := r.Now.Refused; was != nil && manifests.Same(was.Of, of) {
		d.Refused.Since = was.Since
	}
}

// Equal reports whether two refusals say the same.
func (a *Refusal) Equal(b *Refusal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// IsFinal reports whether a version is refused that will not start until its manifest changes.
func (d *Decision) IsFinal() bool { return d.Refused != nil && d.Refused.Why.Final() }

// IsRetried reports whether a version is refused that may start once the node has room.
func (d *Decision) IsRetried() bool { return d.Refused != nil && !d.Refused.Why.Final() }

// IsRefusedFor reports whether a version is refused for this reason.
func (d *Decision) IsRefusedFor(reason string) bool {
	return d.Refused != nil && d.Refused.Why.Reason == reason
}

// Reasons of the events about an update, or a restart for changed config, that does not happen at
// once.
const (
	ReasonWaits        = "UpdateWaits"
	ReasonContinues    = "UpdateContinues"
	ReasonRestartWaits = "RestartWaits"
)

// Cause is what something waits for. The rule that makes a pod wait adds it to Decision.Waits with a
// text for people: ps, wait, describe, diff and events show it. What ends the wait marks the name
// (agent/agenda.go), or the rule says when to look again. search_test.go combines the rules.
type Cause string

// The causes.
const (
	ByOwner      Cause = "Stopped"    // the owner stopped the pod
	ByShutdown   Cause = "Shutdown"   // the machine goes down
	ByStartOrder Cause = "StartOrder" // pods that it starts after
	ByHold       Cause = "Hold"       // the owner holds the pod or the node
	ByWindow     Cause = "Window"     // the next update window
	ByLock       Cause = "Lock"       // the workload
	ByPreparing  Cause = "Preparing"  // what the new version lacks is not known yet
	ByLastLook   Cause = "LastLook"   // a last look at what the new version needs
	ByLack       Cause = "Lack"       // the new version lacks something
	ByRoom       Cause = "Room"       // the node has no room
	ByLook       Cause = "Look"       // whether there is a lock is not known yet
	ByFault      Cause = "Fault"      // the loop panicked over it
	BySaved      Cause = "Saved"      // the disk takes the record that it is the version of the pod
	ByTrial      Cause = "Trial"      // it gave way to the former version, or the record of its trial is not on disk
)

// Wait is one thing that a pod waits for.
type Wait struct {
	By   Cause
	Text message.Text
	Next time.Time // for an image: when it is tried again, or was; zero: it is no such wait
}

// waits adds a wait.
func (d *Decision) waits(by Cause, text message.Text) {
	d.Waits = append(d.Waits, Wait{By: by, Text: text})
}

// lookAgain makes the name be decided on again at a time, or earlier if another rule says so.
func (d *Decision) lookAgain(at time.Time) {
	if d.Again.IsZero() || at.Before(d.Again) {
		d.Again = at
	}
}

// Gated returns why the gate keeps the prepared version, or the removal, waiting; "" if it does not.
func (d *Decision) Gated() string {
	if d.Refused != nil && d.Prepare == nil { // whose text has it
		return ""
	}
	return gateTexts(d.Waits)
}

// RestartLine returns what a restart for changed config waits for; "": for nothing that is reported.
func (d *Decision) RestartLine() string {
	why := gateTexts(d.RestartWaits)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("restart with the changed %s waits: %s", d.Outdated, why)
}

// gateTexts joins the texts of the waits of a gate, but for that of a lock that is still looked for.
func gateTexts(all []Wait) string {
	var texts []message.Text
	for _, w := range all {
		if w.By == ByHold || w.By == ByWindow || w.By == ByLock {
			texts = append(texts, w.Text)
		}
	}
	return message.Join(texts, "; ").String()
}

// Wait returns the text of the first wait by this cause; is is false if there is none.
func (d *Decision) Wait(by Cause) (text message.Text, is bool) {
	for _, w := range d.Waits {
		if w.By == by {
			return w.Text, true
		}
	}
	return text, false
}

// Line says what an update or a removal waits for while the version before runs; "": nothing
// that is worth a word.
func (d *Decision) Line() string {
	if d.Run == nil || d.Halt.Reason != "" && (d.Halt.Terminated || !d.Removes) {
		return ""
	}
	var reasons []string
	for _, w := range d.Waits {
		if !w.isQuiet() && w.By != ByStartOrder {
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

// Tries returns what is tried again of what it waits for, and when; zero: nothing is.
func (d *Decision) Tries() (text string, next time.Time) {
	for _, w := range d.Waits {
		if !w.Next.IsZero() {
			return w.Text.String(), w.Next
		}
	}
	return "", next
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
	if d.Final {
		text += " at last"
	}
	for _, w := range d.Waits {
		text += fmt.Sprintf("; waits by %s", w.By)
	}
	if d.Restarts {
		text += "; may restart"
	}
	for _, w := range d.RestartWaits {
		text += fmt.Sprintf("; restart waits by %s", w.By)
	}
	if d.Outcome != Watching {
		text += fmt.Sprintf("; trial: %s", d.Outcome)
	}
	return text
}

func short(p *manifests.Pod) string { return fmt.Sprintf("%.8s", p.Digest) }
