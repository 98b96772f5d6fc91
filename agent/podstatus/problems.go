package podstatus

import (
	"maps"
	"slices"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/status"
)

// Pulls returns the images that the pod's containers wait for.
func Pulls(s *plan.Facts) (all []status.Pull) {
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		failed := s.Failures[c.Name]
		pull, runs := s.Fetching[c.Name]
		switch {
		case failed.Image != "":
			all = append(all, status.Pull{Container: c.Name, Text: failed.Image, Next: failed.Retry.UTC()})
		case runs:
			all = append(all, status.Pull{Container: c.Name, Text: pull.Words(s.Now), Since: pull.Since.UTC()})
		}
	}
	return all
}

// Problems returns the problems of the pod for which its status has no field, one in each line: the
// last messages of failing probes; what prevents the removal of a former instance; that another
// version waits for that removal; the effects of edits of its objects.
func Problems(s *plan.Facts) []message.Text {
	var out []message.Text
	if leaving := s.Leaving(); s.Pod != nil && len(leaving) > 0 { // the first one is reported
		if c := s.Known[leaving[0]]; c != nil && c.Ended() == "" {
			out = append(out, message.Fixed("a new version waits until this one has stopped"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Failures)) {
		if f := s.Failures[key]; f.Reason != "" && (s.Pod == nil || !plan.OfDesired(key, s.Pod)) {
			out = append(out, message.Of("%s: %s", message.Name(f.Reason), f.Message))
		}
	}
	out = append(out, s.Edits...)
	if s.Pod == nil {
		return out
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := s.Instance().Newest(c.Name)
		if n == nil || !n.Running() {
			continue
		}
		if text := s.ReloadTrouble(c, n); text.String() != "" {
			out = append(out, text)
		}
		for _, text := range s.Probes[n.ID].Failing {
			if text != "" {
				out = append(out, message.Of("container %s: %s", message.Name(c.Name), message.Private(text)))
			}
		}
	}
	return out
}
