package checkpoint

import "time"

// KillDecision is why a running container must be stopped although its pod continues to run, as the
// checkpoint records it.
type KillDecision struct {
	Cause  Cause         `json:"cause,omitempty"`
	Reason string        `json:"reason"`         // for a person
	Text   string        `json:"text,omitempty"` // the message of its probe or hook
	Grace  time.Duration `json:"grace"`          // grace period, ns
	// Requested: it comes from a restart request. The container starts again at
	// once, whatever its restart policy and back-off are.
	Requested bool `json:"asked,omitempty"`
}

// Cause is the reason for which a container is stopped.
type Cause string

const (
	CausePod     Cause = ""          // its pod stops as a whole
	CauseProbe   Cause = "probe"     // its liveness or startup probe failed
	CauseHook    Cause = "postStart" // its postStart hook failed
	CauseRequest Cause = "request"   // a restart request
	CauseConfig  Cause = "config"    // an object that its variables are made of has changed
	CauseCgroup  Cause = "cgroup"    // its pod's cgroup is gone
	CauseLost    Cause = "lost"      // the runtime does not know its state
	CauseUpdate  Cause = "update"    // another version of it was accepted
	CauseBroken  Cause = "broken"    // its start was broken off
)

// Reasons of kill decisions, for a person. Checkpoints on disk contain them.
const (
	RestartRequested = "a restart was asked for"
	HookFailed       = "its postStart hook has failed"
)

// withCause returns the decision with its cause, which is derived from the other fields if an older
// agent wrote none.
func (k KillDecision) withCause() KillDecision {
	switch {
	case k.Cause != "":
	case k.Requested:
		k.Cause = CauseRequest
	case k.Reason == HookFailed:
		k.Cause = CauseHook
	default:
		k.Cause = CauseProbe
	}
	return k
}
