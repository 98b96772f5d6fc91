package server

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/elide"
)

// elideStatus returns the pod's status without the secrets in what probes, hooks
// and the runtime say, and without what containers wrote to their logs. It
// shares with p all that it does not change.
func elideStatus(p *v1.Pod, secrets *elide.Values) v1.PodStatus {
	st := p.Status
	logged := map[string]bool{} // containers whose last words may be the end of their log
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		logged[c.Name] = c.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError
	}
	st.Message = secrets.Hide(st.Message)
	st.Conditions = slices.Clone(st.Conditions)
	for k := range st.Conditions {
		st.Conditions[k].Message = secrets.Hide(st.Conditions[k].Message)
	}
	for _, all := range []*[]v1.ContainerStatus{&st.InitContainerStatuses, &st.ContainerStatuses} {
		*all = slices.Clone(*all)
		for k := range *all {
			c := &(*all)[k]
			c.State = elideState(c.State, secrets, logged[c.Name])
			c.LastTerminationState = elideState(c.LastTerminationState, secrets, logged[c.Name])
		}
	}
	return st
}

func elideState(s v1.ContainerState, secrets *elide.Values, logged bool) v1.ContainerState {
	if w := s.Waiting; w != nil {
		s.Waiting = &v1.ContainerStateWaiting{Reason: w.Reason, Message: secrets.Hide(w.Message)}
	}
	if s.Terminated != nil && s.Terminated.Message != "" {
		t := *s.Terminated
		if t.Message = secrets.Hide(t.Message); logged {
			t.Message = elided
		}
		s.Terminated = &t
	}
	return s
}
