package client

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/agent/status"
)

// Outcomes that wait can wait for; the others are "condition=TYPE" and "condition=TYPE=STATUS".
var outcomes = []string{"ready", "running", "succeeded", "failed", "completed", "gone", "removed", "accepted", "updated"}

// outcome is the state that a wait is for.
type outcome struct {
	name            string // one of outcomes, or "condition"
	condition, want string // of a condition
}

// Deleted is kubectl's name for the outcome gone.
const Deleted = "delete"

// Outcomes returns the possible outcomes.
func Outcomes() []string { return append(slices.Clone(outcomes), Deleted, "condition=") }

func parseOutcome(text string) (outcome, error) {
	if text == "removed" {
		text = "gone"
	}
	if slices.Contains(outcomes, text) {
		return outcome{name: text}, nil
	}
	kind, ok := strings.CutPrefix(text, "condition=")
	kind, want, given := strings.Cut(kind, "=")
	if !ok || kind == "" || given && want == "" {
		return outcome{}, fmt.Errorf("--for %q: choose %s or condition=TYPE[=STATUS]", text, strings.Join(outcomes, ", "))
	}
	return outcome{name: "condition", condition: kind, want: cmp.Or(want, string(v1.ConditionTrue))}, nil
}

func (o outcome) String() string {
	if o.name == "condition" {
		return fmt.Sprintf("%s=%s", o.condition, o.want)
	}
	return o.name
}

// succeeded reports whether a pod has ended with success.
func succeeded(p *v1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == v1.PodSucceeded
}

// of reports whether the pod has reached the outcome, and why it never will, if that is certain.
func (o outcome) of(p *v1.Pod) (met bool, never string) {
	if p.DeletionTimestamp != nil {
		return false, "" // another version may follow
	}
	succeeded, failed := p.Status.Phase == v1.PodSucceeded, p.Status.Phase == v1.PodFailed
	end := "" // the phase of a pod that has ended
	if succeeded || failed {
		end = "it has " + strings.ToLower(string(p.Status.Phase))
		if why := print.JoinWords(p.Status.Reason, p.Status.Message); why != "" {
			end += " (" + print.OneLine(why) + ")"
		}
	}
	switch o.name {
	case "succeeded":
		met = succeeded
	case "failed":
		met = failed
	case "completed":
		met = succeeded || failed
	case "running":
		met = p.Status.Phase == v1.PodRunning
	case "ready": // a pod that is being stopped may still look ready
		met = print.PodReady(p) && p.Status.Reason != status.ReasonStopped
	case "condition":
		met = slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
			return strings.EqualFold(string(c.Type), o.condition) && strings.EqualFold(string(c.Status), o.want)
		})
	case "gone":
		return false, ""
	}
	if met {
		return true, ""
	}
	return false, cmp.Or(Halted(p), end)
}

// Halted returns the sentence that the owner has stopped a pod, which reaches no outcome until it
// is started; "": it is not stopped, or it is being removed and another version may follow.
func Halted(p *v1.Pod) string {
	if p.DeletionTimestamp != nil || p.Status.Reason != status.ReasonStopped {
		return ""
	}
	return "it is " + print.OneLine(p.Status.Message)
}
