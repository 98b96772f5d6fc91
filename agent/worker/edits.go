package worker

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/objects"
	"monopod/agent/plan"
	"monopod/agent/podspec"
)

// reasonEdited is the reason of events about objects that have changed.
const reasonEdited = "ObjectChanged"

// edits is what has changed of the ConfigMaps and Secrets of a pod since its containers started. It
// belongs to the worker's goroutine, and knows nothing of what changed before there was a worker.
type edits struct {
	pod    *v1.Pod                 // the version that was compared last; nil: none
	seen   *objects.Set            // what it referred to then
	all    *objects.Set            // of which seen is a part
	former map[string]fixed        // by container name: those with former values
	lacks  map[string]message.Text // by container name: what its next start would not find
}

// fixed is what an attempt of a container has of objects since it started.
type fixed struct{ id, was string }

// missed reports whether an object has changed of which the worker was not told, as it had no pod
// then, or another version.
func (e *edits) missed(now *objects.Set) bool {
	if e.pod == nil || e.all == now {
		return false
	}
	e.all = now
	return !e.seen.SameFor(e.pod, now)
}

// follow compares the objects of the pod with the former ones, if they or the pod changed. It
// returns the edits; changed reports that there may be any.
func (e *edits) follow(s *plan.Facts, now *objects.Set, changed bool) (all []objects.Edit) {
	pod := s.Pod.Pod
	if !changed && e.pod == pod {
		return nil
	}
	if was := e.pod; changed && was != nil {
		all = objects.Edits(was, e.seen, now, func(name string) bool { return e.startedBefore(name, attemptOf(s, name)) })
		for _, edit := range all {
			for _, name := range edit.Former {
				e.keep(name, attemptOf(s, name), e.seen.Fixed(was, name))
			}
		}
	}
	e.pod, e.seen, e.all, e.lacks = pod, now.Of(pod), now, nil
	for _, c := range podspec.AllContainers(pod) {
		if text := now.MissingFor(pod, c.Name); text != "" {
			if e.lacks == nil {
				e.lacks = map[string]message.Text{}
			}
			e.lacks[c.Name] = message.Of("container %s: its next start would fail: %s", message.Name(c.Name), message.Private(text))
		}
	}
	return all
}

// startedBefore reports whether an attempt of a container runs with what was seen last. One that
// could not have started with that, as something was missing, has started since: its pod may start
// while the worker makes something else for it.
func (e *edits) startedBefore(container, id string) bool {
	isKnown := e.former[container].id == id
	return id != "" && (isKnown || e.seen.MissingFor(e.pod, container) == "")
}

// keep records what an attempt has, unless it is known from an edit before.
func (e *edits) keep(container, id, was string) {
	if e.former == nil {
		e.former = map[string]fixed{}
	}
	if e.former[container].id != id {
		e.former[container] = fixed{id, was}
	}
}

// notes returns which containers that run have former values, and which could not start again.
func (e *edits) notes(s *plan.Facts, now *objects.Set) (all []message.Text) {
	if len(e.former)+len(e.lacks) == 0 {
		return nil
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		id := attemptOf(s, c.Name)
		if id == "" {
			delete(e.former, c.Name)
			continue
		}
		if was, is := e.former[c.Name]; is && was.id == id {
			if object := objects.Changed(was.was, now.Fixed(s.Pod.Pod, c.Name)); object != "" {
				all = append(all, message.Of("container %s has former values of %s until it restarts", message.Name(c.Name), message.Private(object)))
			}
		}
		if text, is := e.lacks[c.Name]; is {
			all = append(all, text)
		}
	}
	return all
}

// attemptOf returns the id of a container that runs; "": it does not.
func attemptOf(s *plan.Facts, container string) string {
	if n := s.Instance().Newest(container); n != nil && n.Running() {
		return n.ID
	}
	return ""
}

// followEdits records events for edits of objects, and what they mean to the pod.
func (w *Worker) followEdits(s *plan.Facts, now *objects.Set, changed bool) {
	for _, edit := range w.edits.follow(s, now, changed) {
		kind := v1.EventTypeNormal
		if edit.Lacks != "" {
			kind = v1.EventTypeWarning
		}
		w.pod.shared.Events.Record(events.About(s.Pod.Pod), kind, reasonEdited, message.Private("changed: "+edit.String()))
	}
	s.Edits = w.edits.notes(s, now)
}
