package podstatus

import (
	"maps"
	"slices"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/status"
)

// Pulls returns for which images the pod's containers wait.
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

// Problems returns what is wrong with the pod that its status has no place for, a line
// each: what its probes said last, while they fail; what keeps a former instance from
// going; that another version waits for it; what edits of its objects mean to it.
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
		for _, text := range s.Probes[n.ID].Failing {
			if text != "" {
				out = append(out, message.Of("container %s: %s", message.Name(c.Name), message.Private(text)))
			}
		}
	}
	return out
}
