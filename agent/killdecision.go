package agent

import "time"

// condemned is why a container that lives must be stopped although its pod
// goes on, as its checkpoint remembers it.
type condemned struct {
	Cause  cause         `json:"cause,omitempty"`
	Reason string        `json:"reason"`         // for a person
	Text   string        `json:"text,omitempty"` // what its probe said
	Grace  time.Duration `json:"grace"`          // how long it gets to end, ns
	// Asked: somebody asked for it. The container starts again at once and
	// whatever its restart policy is, as if it were for the first time.
	Asked bool `json:"asked,omitempty"`
}

// cause is what a container is stopped for.
type cause string

const (
	causePod     cause = ""          // its pod stops as a whole
	causeProbe   cause = "probe"     // a liveness or startup probe found it dead
	causeHook    cause = "postStart" // its postStart hook has failed
	causeRequest cause = "request"   // a restart was asked for
	causeLost    cause = "lost"      // the runtime has lost track of it
)

// Reasons of kill decisions, for a person.
const (
	askedFor   = "a restart was asked for"
	hookFailed = "its postStart hook has failed"
)

// withCause returns the decision with its cause: those of agents that wrote
// none are told by what else they say.
func (k condemned) withCause() condemned {
	switch {
	case k.Cause != "":
	case k.Asked:
		k.Cause = causeRequest
	case k.Reason == hookFailed:
		k.Cause = causeHook
	default:
		k.Cause = causeProbe
	}
	return k
}
