package plan

import (
	"fmt"
	"maps"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
)

// RequestRestart answers a restart request for a container, or for the pod if
// name is "": with the action that records it, no action if there is nothing to
// replace, or a refusal.
func (s *Facts) RequestRestart(name string) (Action, RestartAnswer) {
	if s.Pod == nil || len(s.Leaving()) > 0 {
		return Action{}, Declined("the pod is being removed or replaced already")
	}
	pod, uid, known := s.Pod.Pod, string(s.Pod.UID), s.Checkpoint()
	key := s.Pod.Key().String()
	if phase := known.Ended(); phase != "" || known.Result != nil {
		if known.Result != nil {
			phase = known.Result.Phase
		}
		return Action{}, Declined("pod %s has ended (%s) and does not run again until its manifest changes", key, phase)
	}
	i := s.Instance()
	replaces := map[string]string{}
	for _, c := range podspec.AllContainers(pod) {
		if podspec.Restartable(c) || !podspec.IsInit(pod, c) {
			replaces[c.Name] = ""
			if n := i.Newest(c.Name); n != nil {
				replaces[c.Name] = n.ID
			}
		}
	}
	answer := RestartAnswer{Restart: &status.Restart{Pod: key, UID: uid, Replaces: replaces}}
	b, accepted := i.Sandbox(), s.Known[uid] != nil
	if name == "" {
		if b == nil || !accepted || s.sandboxReplaced() {
			return Action{}, answer
		}
		return Action{Do: DoReplaceSandbox, UID: uid, ID: b.ID, Excused: s.excusedAll(i), Reason: checkpoint.RestartRequested}, answer
	}
	if _, ok := replaces[name]; !ok {
		return Action{}, s.runsOnce(key, name)
	}
	maps.DeleteFunc(replaces, func(other, _ string) bool { return other != name })
	n := i.Newest(name)
	if n == nil || b == nil || !accepted || n.Sandbox != b.ID || !n.Running() && !n.Exited() {
		return Action{}, answer
	}
	a := Action{Do: DoMarkKill, UID: uid, ID: n.ID, Name: name, Grace: n.Grace, Cause: checkpoint.CauseRequest, Excused: s.excused(i, name), Reason: checkpoint.RestartRequested, Asked: true}
	if n.Running() {
		a.Text = checkpoint.RestartRequested // for the termination message
	}
	return a, answer
}

// runsOnce returns why a container that runs only once cannot be restarted.
func (s *Facts) runsOnce(key, name string) RestartAnswer {
	for _, c := range s.Pod.Spec.InitContainers {
		if c.Name == name {
			return Declined("%s is an init container of pod %s: these run again when the whole pod is restarted", name, key)
		}
	}
	return Unknown("pod %s has no container %q", key, name)
}

// sandboxReplaced reports whether a restart request replaces the whole pod: its checkpoint has the
// id of the current sandbox.
func (s *Facts) sandboxReplaced() bool {
	b := s.Instance().Sandbox()
	return b != nil && b.ID == s.Checkpoint().ReplaceSandbox
}

// askedToStart reports whether a container starts again because of a restart request.
func askedToStart(n *pleg.Container) bool { return n.Kill != nil && n.Kill.Requested }

// RestartAnswer is the answer to a restart request.
type RestartAnswer struct {
	Restart *status.Restart
	Err     error // a *status.Refusal, or why the request was not recorded
}

func Declined(format string, args ...any) RestartAnswer {
	return RestartAnswer{Err: &status.Refusal{Why: fmt.Sprintf(format, args...)}}
}

func Unknown(format string, args ...any) RestartAnswer {
	return RestartAnswer{Err: &status.Refusal{Unknown: true, Why: fmt.Sprintf(format, args...)}}
}
