package agent

import (
	"maps"

	"monopod/agent/admission"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// orderProblems returns, by file, the problems of the start order itself and the new
// versions that are held while their previous versions run.
func (l *syncLoop) orderProblems(decisions map[manifests.Key]admission.Decision) map[string][]status.Problem {
	found := map[string][]status.Problem{}
	at := map[string]decode.Position{}
	for _, f := range l.last.Files {
		for pod, position := range f.Orders {
			at[f.Path+"\n"+pod] = position
		}
	}
	for _, p := range l.last.Pods {
		v, key := decisions[p.Key()], p.Key().String()
		text := v.Problem
		if h := l.order.held[p.Key()]; h != nil && l.desiredOf(p.Key()) != nil {
			text = h.said
		}
		if text == "" {
			continue
		}
		position := at[p.File+"\n"+key]
		found[p.File] = append(found[p.File], status.Problem{File: p.File, Line: position.Line, Column: position.Column, Pod: key,
			Field: decode.StartAfterField, Message: text, Warning: !v.Held})
	}
	return found
}

// heldVersion reports whether a new version in the file is held while the previous
// one runs.
func (l *syncLoop) heldVersion(file string) bool {
	for h := range maps.Values(l.order.held) {
		if h.pod.File == file && l.desiredOf(h.pod.Key()) != nil {
			return true
		}
	}
	return false
}
