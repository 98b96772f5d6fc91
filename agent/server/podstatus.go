package server

import (
	"encoding/json"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/status"
)

// elided replaces what only the socket shows.
const elided = message.Mark

// shownToAll removes from a pod what only root may read: the values of variables and headers, and
// all messages but those in public. Commands stay, as with the kubelet: all users of the machine
// see them among its processes. It changes nothing that the pod shares with others.
func shownToAll(p *v1.Pod, public message.Book) {
	status.HideValues(p)
	p.Status = shownStatus(p.Status, public)
	p.Annotations = shownAnnotations(p, public)
}

// shownAnnotations returns the annotations without the problems that are not public.
func shownAnnotations(p *v1.Pod, public message.Book) map[string]string {
	all := maps.Clone(p.Annotations)
	if _, ill := all[status.AnnProblems]; ill {
		all[status.AnnProblems] = elided
		lines := status.ProblemsOf(p)
		for k := range lines {
			lines[k] = public.Public(lines[k])
		}
		if text, err := json.Marshal(lines); err == nil && lines != nil {
			all[status.AnnProblems] = string(text)
		}
	}
	if _, pulls := all[status.AnnPulls]; pulls {
		all[status.AnnPulls] = elided
	}
	return all
}

// shownStatus returns the status with only its public messages.
func shownStatus(st v1.PodStatus, public message.Book) v1.PodStatus {
	st.Message = public.Public(st.Message)
	st.Conditions = slices.Clone(st.Conditions)
	for k := range st.Conditions {
		st.Conditions[k].Message = public.Public(st.Conditions[k].Message)
	}
	for _, all := range []*[]v1.ContainerStatus{&st.InitContainerStatuses, &st.ContainerStatuses} {
		*all = slices.Clone(*all)
		for k := range *all {
			c := &(*all)[k]
			c.State = shownState(c.State, public)
			c.LastTerminationState = shownState(c.LastTerminationState, public)
		}
	}
	return st
}

func shownState(s v1.ContainerState, public message.Book) v1.ContainerState {
	if w := s.Waiting; w != nil {
		s.Waiting = &v1.ContainerStateWaiting{Reason: w.Reason, Message: public.Public(w.Message)}
	}
	if s.Terminated != nil {
		t := *s.Terminated
		t.Message = public.Public(t.Message)
		s.Terminated = &t
	}
	return s
}
