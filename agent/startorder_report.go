package agent

import (
	"maps"

	"monopod/agent/admission"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// orderProblems returns what is wrong with the orders themselves, and which new
// versions wait while their former ones run, by file.
func (l *syncLoop) orderProblems(rulings map[manifests.Key]admission.Decision) map[string][]status.Problem {
	found := map[string][]status.Problem{}
	at := map[string]decode.Position{}
	for _, f := range l.last.Files {
		for pod, place := range f.Orders {
			at[f.Path+"\n"+pod] = place
		}
	}
	for _, p := range l.last.Pods {
		v, key := rulings[p.Key()], p.Key().String()
		text := v.Problem
		if h := l.order.held[p.Key()]; h != nil && l.desiredOf(p.Key()) != nil {
			text = h.said
		}
		if text == "" {
			continue
		}
		place := at[p.File+"\n"+key]
		found[p.File] = append(found[p.File], status.Problem{File: p.File, Line: place.Line, Column: place.Column, Pod: key,
			Field: decode.StartAfterField, Message: text, Warning: !v.Held})
	}
	return found
}

// heldVersion reports whether a former version runs while a new one is held.
func (l *syncLoop) heldVersion(file string) bool {
	for h := range maps.Values(l.order.held) {
		if h.pod.File == file && l.desiredOf(h.pod.Key()) != nil {
			return true
		}
	}
	return false
}
