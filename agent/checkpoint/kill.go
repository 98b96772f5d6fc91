package checkpoint

import "time"

// KillDecision is why a container that lives must be stopped although its pod
// goes on, as its checkpoint remembers it.
type KillDecision struct {
	Cause  Cause         `json:"cause,omitempty"`
	Reason string        `json:"reason"`         // for a person
	Text   string        `json:"text,omitempty"` // what its probe said
	Grace  time.Duration `json:"grace"`          // how long it gets to end, ns
	// Asked: somebody asked for it. The container starts again at once and
	// whatever its restart policy is, as if it were for the first time.
	Requested bool `json:"asked,omitempty"`
}

// Cause is what a container is stopped for.
type Cause string

const (
	CausePod     Cause = ""          // its pod stops as a whole
	CauseProbe   Cause = "probe"     // a liveness or startup probe found it dead
	CauseHook    Cause = "postStart" // its postStart hook has failed
	CauseRequest Cause = "request"   // a restart was asked for
	CauseLost    Cause = "lost"      // the runtime has lost track of it
)

// Reasons of kill decisions, for a person.
const (
	RestartRequested = "a restart was asked for"
	HookFailed       = "its postStart hook has failed"
)

// withCause returns the decision with its cause: those of agents that wrote
// none are told by what else they say.
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
