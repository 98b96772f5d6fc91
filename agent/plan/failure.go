package plan

import (
	"errors"
	"maps"
	"time"

	"monopod/agent/image"
	"monopod/agent/message"
	"monopod/agent/panics"
)

// ReasonFault is the reason of a pod whose sync panics.
const ReasonFault = "FailedSync"

// StartError is a failure to start a pod or container, with its reason.
type StartError struct {
	Reason string
	err    error
}

func (e *StartError) Error() string { return e.err.Error() }

func (e *StartError) Unwrap() error { return e.err }

// Because returns the error with a reason; nil stays nil.
func Because(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &StartError{reason, err}
}

// Explain returns why a container does not start, in the kubelet's words.
func Explain(err error) Waiting {
	var i *image.Error
	var s *StartError
	switch {
	case errors.As(err, &i):
		return Waiting{Reason: i.Reason, Message: message.Private(i.Error())}
	case errors.As(err, &s):
		return Waiting{Reason: s.Reason, Message: message.Private(s.Error())}
	case panics.In(err) != nil:
		return Waiting{Reason: ReasonFault, Message: message.Private(err.Error())}
	}
	return Waiting{Reason: "FailedCreatePodSandBox", Message: message.Of("Failed to create pod sandbox: %s", message.Private(err.Error()))}
}

// ExplainAction returns why an action fails, in the kubelet's words where it has any.
func ExplainAction(a Action, err error) Waiting {
	var s *StartError
	switch {
	case a.Do == DoStopSandbox:
		return Waiting{Reason: "FailedKillPod", Message: message.Of("error killing pod: %s", message.Private(err.Error()))}
	case a.Makes() || a.Do == DoAccept || a.Do == DoSetUp || errors.As(err, &s) || panics.In(err) != nil:
		return Explain(err)
	}
	return Waiting{Reason: ReasonFault, Message: message.Of("%s: %s", message.Name(a.Do), message.Private(err.Error()))}
}

// ImageFailure returns why a container without an image waits, and until when.
// From the second failure in a row the status shows the back-off, as the
// kubelet's does most of the time.
func ImageFailure(e *image.Error) (Waiting, time.Time) {
	if e.Count > 1 && e.Reason != image.ImagePullBackOff {
		e = e.BackOff()
	}
	return Waiting{Reason: e.Reason, Message: message.Private(e.Error())}, e.Retry
}

// Refusals are the times when calls first found no runtime while it answered others, by key.
type Refusals map[string]time.Time

// PassKey is the key of a pass, among the keys of actions.
const PassKey = "pass"

// refusesAfter is how long that may last before it counts as a failure like any other.
const refusesAfter = 30 * time.Second

// Lasts records another refusal, and reports whether refusals have lasted for refusesAfter.
func (r Refusals) Lasts(key string, now time.Time) bool {
	if r[key].IsZero() {
		r[key] = now
	}
	return now.Sub(r[key]) >= refusesAfter
}

// Forget drops old refusals: their objects may be gone.
func (r Refusals) Forget(now time.Time) {
	maps.DeleteFunc(r, func(_ string, since time.Time) bool { return now.Sub(since) > time.Hour })
}
