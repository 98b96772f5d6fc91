package agent

import (
	"maps"

	"monopod/agent/status"
)

// renewal decides what a renewal comes to: an action that writes it down, none
// where there is nothing to be replaced, or a refusal.
func (s *situation) renewal(name string) (action, renewed) {
	if s.Pod == nil || len(s.leaving()) > 0 {
		return action{}, declined("the pod is being removed or replaced already")
	}
	pod, uid, known := s.Pod.Pod, string(s.Pod.UID), s.known()
	key := s.Pod.Key().String()
	if phase := known.ended(); phase != "" || known.Verdict != nil {
		if known.Verdict != nil {
			phase = known.Verdict.Phase
		}
		return action{}, declined("pod %s has ended (%s) and does not run again until its manifest changes", key, phase)
	}
	i := s.instance()
	replaces := map[string]string{}
	for _, c := range allContainers(pod) {
		if restarts(c) || !isInit(pod, c) {
			replaces[c.Name] = ""
			if n := i.newest(c.Name); n != nil {
				replaces[c.Name] = n.ID
			}
		}
	}
	answer := renewed{restart: &status.Restart{Pod: key, UID: uid, Replaces: replaces}}
	b, accepted := i.sandbox(), s.Known[uid] != nil
	if name == "" {
		if b == nil || !accepted {
			return action{}, answer
		}
		return action{Do: doRenew, UID: uid, ID: b.ID, Reason: askedFor}, answer
	}
	if _, ok := replaces[name]; !ok {
		return action{}, s.cannotRenew(key, name)
	}
	maps.DeleteFunc(replaces, func(other, _ string) bool { return other != name })
	n := i.newest(name)
	if n == nil || b == nil || !accepted || n.Sandbox != b.ID || !n.running() && !n.exited() {
		return action{}, answer
	}
	a := action{Do: doCondemn, UID: uid, ID: n.ID, Name: name, Grace: max(n.Grace, minGrace), Cause: causeRequest, Reason: askedFor, Asked: true}
	if n.running() {
		a.Text = askedFor // of the end that is to come
	}
	return a, answer
}

// cannotRenew says why a container that runs only once cannot be restarted.
func (s *situation) cannotRenew(key, name string) renewed {
	for _, c := range s.Pod.Spec.InitContainers {
		if c.Name == name {
			return declined("%s is an init container of pod %s: these run again when the whole pod is restarted", name, key)
		}
	}
	return unknown("pod %s has no container %q", key, name)
}

// renewing reports whether the whole pod is being replaced because somebody
// asked for it: its sandbox is the one that is to go.
func (s *situation) renewing() bool {
	b := s.instance().sandbox()
	return b != nil && b.ID == s.known().Renew
}

// renewed returns a copy that says that the pod is to get a new sandbox in
// place of this one.
func (c *checkpoint) renewed(sandbox string) *checkpoint {
	d := *c
	d.Renew = sandbox
	return &d
}

// markRenewed notes which containers go because the whole pod is replaced: all
// of that sandbox. They start again whatever they exit with.
func (i *instance) markRenewed(sandbox string) {
	for k := range i.Containers {
		if n := &i.Containers[k]; sandbox != "" && n.Sandbox == sandbox {
			n.Condemned = &condemned{Cause: causeRequest, Reason: askedFor, Grace: n.Grace, Asked: true}
		}
	}
}

// askedToStart reports whether a container that exited starts again because
// somebody asked for it.
func askedToStart(n *container) bool { return n.Condemned != nil && n.Condemned.Asked }
