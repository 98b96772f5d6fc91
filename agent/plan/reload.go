package plan

import (
	"time"

	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// Reloading is a container that is being told of its changed config, was told, or was not: it failed.
type Reloading struct {
	Words string       // of what, see objects.Set.EnvOf
	Told  bool         // it was told
	Retry time.Time    // when it is tried again; zero: it did not fail
	Text  message.Text // why it failed; empty: it did not
}

// planReloads tells the running containers whose volumes show the changed objects, and for which the
// pod requests that they are told.
func (s *Facts) planReloads(p *Plan, i *pleg.Instance) {
	if !s.Restarts || !s.Refresh.IsZero() {
		return
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if n == nil || !n.Running() || n.Kill != nil || !annotations.ReactionOf(s.Pod.Pod, c.Name).Reloads() {
			continue
		}
		changed := s.outdated(c, n)
		last, begun := s.Reloading[n.ID]
		switch {
		case changed == "":
		case begun && !last.Told && last.Retry.IsZero(): // it is being told
		case last.Words == s.Env[c.Name] && s.Now.Before(last.Retry):
			p.wakeAt(last.Retry)
		default:
			p.then(Action{Do: DoReload, UID: i.UID, ID: n.ID, Name: c.Name, Beside: true, Text: s.Env[c.Name], Reason: changed + " has changed"})
		}
	}
}

// told returns of what a container was told last; "": of nothing.
func (s *Facts) told(id string) string {
	if last := s.Reloading[id]; last.Told { // the disk may not have taken it
		return last.Words
	}
	return s.Checkpoint().Reloaded[id]
}
