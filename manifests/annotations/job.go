package annotations

import (
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Job is the annotation of a Job's pod whose containers are retried: the restartPolicy of the Job's
// template and the limit, such as Never/6.
const Job = "monopod.job"

// JobRetries is how the containers of a Job's pod are retried when they fail.
type JobRetries struct {
	Policy v1.RestartPolicy // of the template: Never or OnFailure
	Limit  uint32           // retries of each container, at most
}

// SetJobRetries has failed containers of a Job's pod restarted in the same pod, also when the
// template's policy is Never: there is no controller that would create another pod.
func SetJobRetries(pod *v1.Pod, limit int32) {
	pod.Annotations = maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[Job] = string(pod.Spec.RestartPolicy) + "/" + strconv.Itoa(int(limit))
	pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
}

// JobRetriesOf returns how a pod is retried; false if it is not a Job's.
func JobRetriesOf(pod *v1.Pod) (JobRetries, bool) {
	policy, text, _ := strings.Cut(pod.Annotations[Job], "/")
	limit, err := strconv.ParseUint(text, 10, 31)
	known := policy == string(v1.RestartPolicyNever) || policy == string(v1.RestartPolicyOnFailure)
	if err != nil || !known || pod.Spec.RestartPolicy != v1.RestartPolicyOnFailure {
		return JobRetries{}, false
	}
	return JobRetries{Policy: v1.RestartPolicy(policy), Limit: uint32(limit)}, true
}

// UnsetJobRetries undoes SetJobRetries.
func UnsetJobRetries(pod *v1.Pod) {
	if r, ok := JobRetriesOf(pod); ok {
		pod.Spec.RestartPolicy = r.Policy
		delete(pod.Annotations, Job)
	}
}
