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

// Decision is the decision about one pod name.
type Decision struct {
	Run     *manifests.Pod // the version that may have anything on the node; nil: everything is removed
	Prepare *manifests.Pod // the version that is prepared beside it; nil: none
	Final   bool           // only the last check of what Prepare needs is missing
	Halt    plan.Halt      // why no container of Run is to run though its volumes stay; zero: it runs
	Rests   bool           // nothing exists and nothing is to run: no worker is needed

	Removes  bool     // no manifest gives the pod any more
	Takes    bool     // Run may start now, and takes its room
	Replaces bool     // Run replaces the accepted version and takes over its room
	Keeps    bool     // the former version runs until the offered one can
	IsEarly  bool     // because of Keeps, the offered version would not start yet, even with room
	Refused  *Refusal // why a version may not start; nil: it may, or no version asked
	Waits    []Wait   // the waits in the order of the report; none: the offered version runs

	Outdated     string // the changed object for which containers of Run are to restart; "": none
	Restarts     bool   // containers of Run may restart for changed config
	RestartWaits []Wait // the waits of that restart; none: it does not wait, or there is no such container
	CommitWaits  []Wait // what the gate says of Run while the disk has not taken it, so that the former version runs; none: it may be taken
	Looks        bool   // the lock of the accepted version is to be checked, from now on

	Trial   *Trial  // the trial of the name from now on; nil: none, or the record already has it
	Outcome Outcome // the result of checking the trial

	// Again is when the name must be decided on again even if nothing happens; zero: never. A rule
	// whose answer changes with time sets the time of the change, on the clock of World.Now: always
	// in the future.
	Again time.Time
}

// Refusal is the reason why the node does not start a version.
type Refusal struct {
	Of    *manifests.Pod
	Why   admission.Rejection
	Since time.Time // of the first refusal of this version
}

// refuse records why a version may not start; nil: it may.
func (d *Decision) refuse(of *manifests.Pod, why *admission.Rejection, r *Record, now time.Time) {
	if why == nil {
		return
	}
	d.Refused = &Refusal{Of: of, Why: *why, Since: now}
	if was := r.Now.Refused; was != nil && manifests.Same(was.Of, of) {
		d.Refused.Since = was.Since
	}
}

// Equal reports whether two refusals are the same.
func (a *Refusal) Equal(b *Refusal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// IsFinal reports whether a version is refused and will not start until its manifest changes.
func (d *Decision) IsFinal() bool { return d.Refused != nil && d.Refused.Why.Final() }

// IsRetried reports whether a version is refused and may start once the node has room.
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

// Cause classifies what a pod waits for. The rule that makes a pod wait adds it to Decision.Waits
// with a text for people, which ps, wait, describe, diff and events show. The event that ends the
// wait marks the name (agent/agenda.go), or the rule sets the time of the next decision.
// search_test.go combines the rules.
type Cause string

// The causes.
const (
	ByOwner      Cause = "Stopped"    // the owner stopped the pod
	ByShutdown   Cause = "Shutdown"   // the machine shuts down
	ByStartOrder Cause = "StartOrder" // pods that it starts after
	ByHold       Cause = "Hold"       // the owner holds the pod or the node
	ByWindow     Cause = "Window"     // the next update window
	ByLock       Cause = "Lock"       // a lock file of the workload
	ByPreparing  Cause = "Preparing"  // what the new version lacks is not known yet
	ByLastLook   Cause = "LastLook"   // a last check of what the new version needs
	ByLack       Cause = "Lack"       // the new version lacks something
	ByRoom       Cause = "Room"       // the node has no room
	ByLook       Cause = "Look"       // it is not known yet whether there is a lock
	ByFault      Cause = "Fault"      // the loop panicked over it
	BySaved      Cause = "Saved"      // the record that it is the version of the pod is not on disk yet
	ByTrial      Cause = "Trial"      // it was rolled back, or the record of its trial is not on disk
)

// Wait is one thing that a pod waits for.
type Wait struct {
	By   Cause
	Text message.Text
	Next time.Time // for an image: when the next pull starts, or started; zero: not such a wait
}

// waits adds a wait.
func (d *Decision) waits(by Cause, text message.Text) {
	d.Waits = append(d.Waits, Wait{By: by, Text: text})
}

// lookAgain schedules the next decision of the name for this time, unless an earlier one is
// scheduled.
func (d *Decision) lookAgain(at time.Time) {
	if d.Again.IsZero() || at.Before(d.Again) {
		d.Again = at
	}
}

// Gated returns why the gate delays the prepared version, or the removal; "": it does not.
func (d *Decision) Gated() string {
	if d.Refused != nil && d.Prepare == nil { // the text of the refusal has it
		return ""
	}
	return gateTexts(d.Waits)
}

// CommitLine returns why Run must not replace the former version yet; "": it may.
func (d *Decision) CommitLine() string { return gateTexts(d.CommitWaits) }

// RestartLine returns what a restart or reload for changed config waits for; "": nothing that is
// reported.
func (d *Decision) RestartLine() string {
	why := gateTexts(d.RestartWaits)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s waits: %s", d.Outdated, why)
}

// gateTexts joins the texts of the waits of a gate, except that of a lock that has not been checked
// yet.
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

// IsLockAlone reports whether nothing delays the change but the lock of the workload, if that does.
func (d *Decision) IsLockAlone() bool {
	isOther := func(w Wait) bool { return w.By != ByLock && !w.isQuiet() }
	return d.Prepare != nil && !slices.ContainsFunc(d.Waits, isOther) || d.Outdated != "" && !slices.ContainsFunc(d.RestartWaits, isOther)
}

// Line returns what an update or a removal waits for while the former version runs; "": nothing
// worth reporting.
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

// Tries returns what of its waits is retried, and when; zero: nothing is.
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

// String returns the decision in a line, for tests and logs.
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
