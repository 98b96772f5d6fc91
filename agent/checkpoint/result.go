package checkpoint

import v1 "k8s.io/api/core/v1"

// Result is how a pod ends. It is saved before its containers are stopped: a
// stop changes exit codes, and the agent may die meanwhile.
type Result struct {
	Phase   v1.PodPhase `json:"phase"`
	Reason  string      `json:"reason,omitempty"`  // of the pod status; "": the containers have it
	Message string      `json:"message,omitempty"` // of the pod status; "": the containers have it
	Why     string      `json:"why"`               // for a person
}
