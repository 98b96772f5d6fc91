package annotations

import (
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Job is the annotation of a Job's pod whose containers are run again: the
// restartPolicy of the Job's template and how often, such as Never/6.
const Job = "monopod.job"

// JobRetries is how a Job's pod is run again when it fails.
type JobRetries struct {
	Policy v1.RestartPolicy // of the template: Never or OnFailure
	Limit  uint32           // how often each container is, at most
}

// SetJobRetries has the containers of a Job's pod run again in it, which is also how a
// template that says Never is: there is no controller to make another pod.
func SetJobRetries(pod *v1.Pod, limit int32) {
	pod.Annotations = maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[Job] = string(pod.Spec.RestartPolicy) + "/" + strconv.Itoa(int(limit))
	pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
}

// JobRetriesOf returns how a pod is run again, false of one that is no Job's.
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
