package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

// refusedStatus is what is reported of a pod that is not admitted, as the
// kubelet does for one that it will not try again.
func refusedStatus(p *v1.Pod, r refusal, since metav1.Time) v1.PodStatus {
	return v1.PodStatus{
		Phase: v1.PodFailed, Reason: r.Reason, Message: "Pod was rejected: " + r.Message,
		QOSClass: qosClass(p), StartTime: &since,
	}
}

// wasRefused reports whether a status is that of a pod that is not admitted:
// one that ran, or was to run, has conditions.
func wasRefused(s *v1.PodStatus) bool {
	return s.Phase == v1.PodFailed && s.Reason != "" && len(s.Conditions) == 0
}

// reasonHeld is why a pod waits that starts after others.
const reasonHeld = "WaitingForPods"

// heldStatus is what is reported of a pod that starts after others: one that is
// still to come. text says what it waits for. It has no start time: waiting is
// not running. last is what was reported before, nil if nothing was.
func heldStatus(pod *manifests.Pod, since time.Time, text string, last *v1.PodStatus) v1.PodStatus {
	w := waiting{reasonHeld, text}
	s := &situation{Now: time.Now(), Pod: pod, Observed: &observed{}, Unseen: true, Failures: map[string]failure{sandboxFailure: {waiting: w}}}
	p := &planned{}
	for _, c := range allContainers(pod.Pod) {
		p.wait(c.Name, w)
	}
	st := podStatus(s, p, &node{}, last)
	if last == nil || last.StartTime == nil {
		st.StartTime = nil
	}
	for k := range st.Conditions {
		if c := &st.Conditions[k]; c.Reason == reasonHeld {
			c.LastTransitionTime = metav1.Time{Time: since.Truncate(time.Second)}
		}
	}
	return st
}

// heldSince returns since when a pod was held, if its status is that of one.
func heldSince(s *v1.PodStatus) (time.Time, bool) {
	for _, c := range s.Conditions {
		if c.Reason == reasonHeld {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

func wasHeld(s *v1.PodStatus) bool {
	_, held := heldSince(s)
	return held
}
