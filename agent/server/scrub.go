package server

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// secretMin is how long a value is at least to be worth hiding, in bytes: what
// is shorter is in many words.
const secretMin = 4

// messageLong is a length up to which no message was cut, in bytes.
const messageLong = 1000

// scrubber hides the values of pods' env in the messages of events: a probe's
// command may have them, and so may what it, or the runtime, says.
type scrubber map[string][]string // by pod, "namespace/name": the values, the longest first

func newScrubber(pods []*v1.Pod) scrubber {
	s := scrubber{}
	for _, p := range pods {
		s[p.Namespace+"/"+p.Name] = envValues(p)
	}
	return s
}

// envValues returns what is worth hiding of a pod's env, the longest first.
func envValues(p *v1.Pod) []string {
	values := []string{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, v := range c.Env {
			if len(v.Value) >= secretMin {
				values = append(values, v.Value)
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return values
}

// scrub changes the event. Of a pod that is gone nobody knows the values any
// more: what went wrong with it is not told in words.
func (s scrubber) scrub(e *v1.Event) {
	if e.InvolvedObject.Kind != "Pod" {
		return
	}
	values, known := s[e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name]
	if !known && e.Type == v1.EventTypeWarning {
		e.Message = elided
		return
	}
	e.Message = hide(e.Message, values)
}

// hide hides the values in a message.
func hide(message string, values []string) string {
	for _, v := range values {
		message = strings.ReplaceAll(message, v, elided)
	}
	return hideEnd(message, values)
}

// hideEnd hides a value of which only the beginning is left, because the
// message was too long.
func hideEnd(message string, values []string) string {
	if len(message) < messageLong {
		return message
	}
	text, cut := strings.CutSuffix(message, "...")
	for _, v := range values {
		for n := min(len(v)-1, len(text)); n >= secretMin; n-- {
			if strings.HasSuffix(text, v[:n]) {
				text = text[:len(text)-n] + elided
				break
			}
		}
	}
	if cut {
		text += "..."
	}
	return text
}
