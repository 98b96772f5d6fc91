package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/admission"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests"
)

// RefusedStatus returns the status of a pod that is not admitted (kubelet: a pod that it does not
// retry), and the public part of its messages.
func RefusedStatus(p *v1.Pod, r admission.Rejection, since metav1.Time) (v1.PodStatus, message.Book) {
	public := message.Book{}
	return v1.PodStatus{
		Phase: v1.PodFailed, Reason: r.Reason, Message: public.Note(message.Of(status.RefusedPrefix+"%s", r.Message)),
		QOSClass: podspec.QosClass(p), StartTime: &since,
	}, public
}

// ReasonWaitingForPods is why a pod that starts after others waits.
const ReasonWaitingForPods = "WaitingForPods"

// WaitingForPods returns the status of a pod that waits for others to start, which text names, and
// the public part of its messages. It has no start time unless last has one. last is the last
// reported status, or nil.
func WaitingForPods(pod *manifests.Pod, since time.Time, text message.Text, last *v1.PodStatus) (v1.PodStatus, message.Book) {
	w := plan.Waiting{Reason: ReasonWaitingForPods, Message: text}
	s := &plan.Facts{Now: time.Now(), Pod: pod, Observed: &pleg.Observed{}, Unseen: true, Failures: map[string]plan.Failure{plan.SandboxFailure: {Waiting: w}}}
	p := &plan.Plan{}
	for _, c := range podspec.AllContainers(pod.Pod) {
		p.Wait(c.Name, w)
	}
	st, public := Report(s, p, &podspec.Host{}, last)
	if last == nil || last.StartTime == nil {
		st.StartTime = nil
	}
	for k := range st.Conditions {
		if c := &st.Conditions[k]; c.Reason == ReasonWaitingForPods {
			c.LastTransitionTime = metav1.Time{Time: since.Truncate(time.Second)}
		}
	}
	return st, public
}

// HaltedStatus returns the status of a pod that never ran here and is not to run, and the public
// part of its messages.
func HaltedStatus(pod *manifests.Pod, why plan.Waiting) (v1.PodStatus, message.Book) {
	s := &plan.Facts{Now: time.Now(), Pod: pod, Observed: &pleg.Observed{}, Unseen: true, Halted: plan.Halt{Waiting: why}}
	p := plan.Make(*s)
	st, public := Report(s, &p, &podspec.Host{}, nil)
	st.StartTime = nil
	return st, public
}

// WaitsForPodsSince returns since when a pod waits for others to start, according to its status;
// false: it does not.
func WaitsForPodsSince(s *v1.PodStatus) (time.Time, bool) {
	for _, c := range s.Conditions {
		if c.Reason == ReasonWaitingForPods {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// WaitsForPods reports whether a status is of a pod that waits for others to start.
func WaitsForPods(s *v1.PodStatus) bool {
	_, waits := WaitsForPodsSince(s)
	return waits
}
