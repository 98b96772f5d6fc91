package agent

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
	"monopod/manifests"
)

// reasonHeld is why a pod waits that starts after others.
const reasonHeld = "WaitingForPods"

// status is what is reported of a held pod: one that is still to come. It has
// no start time: waiting is not running.
func (h *heldPod) status(text string) v1.PodStatus {
	w := waiting{reasonHeld, text}
	s := &situation{Now: time.Now(), Pod: h.pod, Observed: &observed{}, Unseen: true, Failures: map[string]failure{sandboxFailure: {waiting: w}}}
	p := &planned{}
	for _, c := range allContainers(h.pod.Pod) {
		p.wait(c.Name, w)
	}
	st := podStatus(s, p, &node{}, h.last)
	if h.last == nil || h.last.StartTime == nil {
		st.StartTime = nil
	}
	for k := range st.Conditions {
		if c := &st.Conditions[k]; c.Reason == reasonHeld {
			c.LastTransitionTime = metav1.Time{Time: h.since.Truncate(time.Second)}
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

// orderProblems returns what is wrong with the orders themselves, and which new
// versions wait while their former ones run, by file.
func (l *syncLoop) orderProblems(rulings map[manifests.Key]ruling) map[string][]status.Problem {
	found := map[string][]status.Problem{}
	at := map[string]manifests.Position{}
	for _, f := range l.last.Files {
		for pod, place := range f.Orders {
			at[f.Path+"\n"+pod] = place
		}
	}
	for _, p := range l.last.Pods {
		v, key := rulings[p.Key()], p.Key().String()
		text := v.Problem
		if h := l.orders.held[p.Key()]; h != nil && l.told(p.Key()) != nil {
			text = h.said
		}
		if text == "" {
			continue
		}
		place := at[p.File+"\n"+key]
		found[p.File] = append(found[p.File], status.Problem{File: p.File, Line: place.Line, Column: place.Column, Pod: key,
			Field: manifests.StartAfterField, Message: text, Warning: !v.Held})
	}
	return found
}

// heldVersion reports whether a former version runs while a new one is held.
func (l *syncLoop) heldVersion(file string) bool {
	for h := range maps.Values(l.orders.held) {
		if h.pod.File == file && l.told(h.pod.Key()) != nil {
			return true
		}
	}
	return false
}
