package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// The back-off of the job controller between the pods of a Job whose template has the restart
// policy Never. No run resets it.
const (
	jobBackOffFirst = 10 * time.Second
	jobBackOffMax   = 6 * time.Minute
)

// isSpent reports whether an exited container was the last attempt that its Job allows. Attempts
// that ended by an interruption do not count.
func isSpent(pod *v1.Pod, n *pleg.Container) bool {
	r, ok := annotations.JobRetriesOf(pod)
	return ok && n.Attempt >= r.Limit+n.Excused && !n.BrokenOff && !askedToStart(n)
}

const messageBackoffLimit = "Job has reached the specified backoff limit"

// limitReached ends the pod of a Job when a container has failed as often as the Job allows (reason
// and message are the job controller's).
func (s *Facts) limitReached(i *pleg.Instance) *checkpoint.Result {
	pod := s.Pod.Pod
	if _, ok := annotations.JobRetriesOf(pod); !ok {
		return nil
	}
	for _, c := range podspec.AllContainers(pod) {
		n := i.Newest(c.Name)
		if n == nil || !n.Exited() || podspec.IsSidecar(pod, c) || !isSpent(pod, n) {
			continue
		}
		if n.ExitCode != 0 || podspec.IsInit(pod, c) && !Succeeded(n) {
			return &checkpoint.Result{Phase: v1.PodFailed, Reason: "BackoffLimitExceeded",
				Message: messageBackoffLimit,
				Why: fmt.Sprintf("container %s exited with %d (%s) in attempt %d, the last of its Job",
					c.Name, n.ExitCode, n.Reason, n.Attempt)}
		}
	}
	return nil
}
