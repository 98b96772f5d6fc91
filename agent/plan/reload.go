package plan

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/objects"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// Reloading is a container that is being told of its changed config, or was not told: it failed.
type Reloading struct {
	Words string       // of what, see objects.Set.EnvOf
	By    string       // how, see annotations.Reaction.String
	Retry time.Time    // when it is tried again; zero: it is being told
	Text  message.Text // why it failed; empty: it is being told
}

// signalsAfter is how long after its start a container may be sent signals: before, its process may be
// what starts the program, or a program that has not said yet which it handles, and would end by it.
const signalsAfter = 2 * time.Second

// planReloads tells the running containers whose volumes show the changed objects, and for which the
// pod requests that they are told.
func (s *Facts) planReloads(p *Plan, i *pleg.Instance) {
	if !s.Restarts {
		return
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		n := i.Newest(c.Name)
		if n == nil || !s.isToReload(c, n) || s.showsFormer(c) {
			continue
		}
		last, begun := s.Reloading[n.ID]
		reaction := annotations.ReactionOf(s.Pod.Pod, c.Name)
		isSame := last.Words == s.Env[c.Name] && last.By == reaction.String()
		switch {
		case begun && last.Retry.IsZero(): // it is being told
		case isSame && s.Now.Before(last.Retry):
			p.wakeAt(last.Retry)
		case reaction.Signal != "" && s.isYoung(n):
			p.wakeAt(n.Started.Add(signalsAfter))
		default:
			p.then(Action{Do: DoReload, UID: i.UID, ID: n.ID, Name: c.Name, Beside: true, Text: s.Env[c.Name], Reason: s.outdated(c, n) + " has changed"})
		}
	}
}

// isYoung reports whether a container may not be sent signals yet. One that starts later than now, as the
// clock was set back, is old: how old is not known, and it must not wait until that time comes again.
func (s *Facts) isYoung(n *pleg.Container) bool {
	ran := s.Now.Sub(n.Started)
	return ran >= 0 && ran < signalsAfter
}

// isToReload reports whether a container must be told of a change.
func (s *Facts) isToReload(c *v1.Container, n *pleg.Container) bool {
	return n.Running() && n.Kill == nil && annotations.ReactionOf(s.Pod.Pod, c.Name).Reloads() && s.outdated(c, n) != ""
}

// showsFormer reports whether a container mounts a volume that could not be updated.
func (s *Facts) showsFormer(c *v1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return slices.Contains(s.Former, m.Name) })
}

// ReloadTrouble returns why a container is not told of a change, and when that is tried again; empty:
// it is told, or need not or may not be now.
func (s *Facts) ReloadTrouble(c *v1.Container, n *pleg.Container) message.Text {
	if !s.Restarts || !s.isToReload(c, n) {
		return message.Text{}
	}
	return s.Reloading[n.ID].Text
}

// changed returns the name of an object that has changed since the container was made, for a
// restart, or was told, for a reload; "": none. now is what it would be made of. What it may have
// read when telling it failed counts, too.
func (s *Facts) changed(n *pleg.Container, by annotations.Reaction, now string) string {
	told := s.Checkpoint().Told[n.ID]
	had := append([]string{n.EnvObjects, told.Words}, told.MayHave...)
	if by.Reloads() && told.Words != "" {
		had = had[1:]
	}
	for _, was := range had {
		if was == "" {
			continue
		}
		if name := objects.Changed(was, now); name != "" {
			return name
		}
	}
	return ""
}
