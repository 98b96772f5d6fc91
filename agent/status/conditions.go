package status

import v1 "k8s.io/api/core/v1"

// Reasons of conditions whose message only names the containers that are not as far: their own
// statuses have the reasons.
const (
	ReasonNotInitialized = "ContainersNotInitialized"
	ReasonNotReady       = "ContainersNotReady"
)

// RefusedPrefix starts the message of a pod that is not admitted.
const RefusedPrefix = "Pod was rejected: "

// WasRefused reports whether a status is that of a pod that is not admitted: an
// admitted pod has conditions.
func WasRefused(s *v1.PodStatus) bool {
	return s.Phase == v1.PodFailed && s.Reason != "" && len(s.Conditions) == 0
}
