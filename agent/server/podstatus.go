package server

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// elideStatus returns the pod's status without the values of its env in what
// probes, hooks and the runtime say, and without what containers wrote to their
// logs. It shares with p all that it does not change.
func elideStatus(p *v1.Pod) v1.PodStatus {
	st, values := p.Status, envValues(p)
	logged := map[string]bool{} // containers whose last words may be the end of their log
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		logged[c.Name] = c.TerminationMessagePolicy == v1.TerminationMessageFallbackToLogsOnError
	}
	st.Message = hide(st.Message, values)
	st.Conditions = slices.Clone(st.Conditions)
	for k := range st.Conditions {
		st.Conditions[k].Message = hide(st.Conditions[k].Message, values)
	}
	for _, all := range []*[]v1.ContainerStatus{&st.InitContainerStatuses, &st.ContainerStatuses} {
		*all = slices.Clone(*all)
		for k := range *all {
			c := &(*all)[k]
			c.State = elideState(c.State, values, logged[c.Name])
			c.LastTerminationState = elideState(c.LastTerminationState, values, logged[c.Name])
		}
	}
	return st
}

func elideState(s v1.ContainerState, values []string, logged bool) v1.ContainerState {
	if w := s.Waiting; w != nil {
		s.Waiting = &v1.ContainerStateWaiting{Reason: w.Reason, Message: hide(w.Message, values)}
	}
	if s.Terminated != nil && s.Terminated.Message != "" {
		t := *s.Terminated
		if t.Message = hide(t.Message, values); logged {
			t.Message = elided
		}
		s.Terminated = &t
	}
	return s
}
