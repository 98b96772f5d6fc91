package checkpoint

import v1 "k8s.io/api/core/v1"

// Result is how a pod ends. It is written down before what still runs is
// stopped: a stop makes exit codes of its own, and an agent may die meanwhile.
type Result struct {
	Phase   v1.PodPhase `json:"phase"`
	Reason  string      `json:"reason,omitempty"`  // the pod's, "" where the containers tell
	Message string      `json:"message,omitempty"` // likewise
	Why     string      `json:"why"`               // for a person
}
