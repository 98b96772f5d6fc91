package plan

import (
	"time"

	"monopod/agent/message"
	"monopod/agent/podspec"
)

// NetworkNotReady is why a pod waits for the runtime's network (kubelet: the same).
const NetworkNotReady = "NetworkNotReady"

// NetworkWait returns why the pod's sandbox waits for the runtime's network; ok is false
// if it does not. Only a pod with a network of its own that needs a new sandbox waits.
func (s *Facts) NetworkWait() (w Waiting, ok bool) {
	if s.NoNetwork == "" || s.Pod.Spec.HostNetwork || s.newSandbox(s.Instance()) == "" {
		return w, false
	}
	return Waiting{NetworkNotReady, message.Of("the runtime has no network for pods yet: %s", message.Private(s.NoNetwork))}, true
}

// NetworkUnknown is the reason of a condition and an event: the runtime does not report the network
// of a pod.
const NetworkUnknown = "NetworkUnknown"

// unsaidLimit is how long a runtime may fail to report a sandbox's network before that is reported.
const unsaidLimit = 30 * time.Second

// UnknownNetwork returns the report of a sandbox whose network the runtime does not report; ok is
// false if there is nothing to report yet.
func (s *Facts) UnknownNetwork() (w Waiting, ok bool) {
	if s.Unsaid.IsZero() || s.Now.Before(s.Unsaid.Add(unsaidLimit)) {
		return w, false
	}
	return Waiting{NetworkUnknown, message.Fixed("the runtime does not say what network the pod's sandbox has: the pod is left as it is")}, true
}

// awaitNetwork plans again when an unknown network must be reported.
func (s *Facts) awaitNetwork(p *Plan) {
	if limit := s.Unsaid.Add(unsaidLimit); !s.Unsaid.IsZero() && s.Now.Before(limit) {
		p.wakeAt(limit)
	}
}

// waitForNetwork makes the containers of a pod wait for the runtime's network. It reports whether
// they wait. Containers that still run go on meanwhile.
func (s *Facts) waitForNetwork(p *Plan) bool {
	w, waits := s.NetworkWait()
	if waits {
		for _, c := range podspec.AllContainers(s.Pod.Pod) {
			p.Wait(c.Name, w)
		}
	}
	return waits
}

// NetworkWait returns why the pod waits for the runtime's network; ok is false if it
// does not.
func (p *Plan) NetworkWait() (w Waiting, ok bool) {
	for _, w := range p.Waiting {
		if w.Reason == NetworkNotReady {
			return w, true
		}
	}
	return w, false
}
