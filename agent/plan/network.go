package plan

import "monopod/agent/podspec"

// NetworkNotReady is why a pod waits for the runtime's network (kubelet: the same).
const NetworkNotReady = "NetworkNotReady"

// NetworkWait returns why the pod's sandbox waits for the runtime's network; ok is false
// if it does not. Only a pod with a network of its own that needs a new sandbox waits.
func (s *Facts) NetworkWait() (w Waiting, ok bool) {
	if s.NoNetwork == "" || s.Pod.Spec.HostNetwork || s.newSandbox(s.Instance()) == "" {
		return w, false
	}
	return Waiting{NetworkNotReady, "network is not ready: " + s.NoNetwork}, true
}

// waitForNetwork lets the containers of a pod wait for the runtime's network. It reports
// whether they do. What still runs of the pod runs on meanwhile.
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
