package node

import (
	"maps"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/cgroups"
)

// seenCgroup is the cgroup of a pod that was there when it was looked for.
type seenCgroup struct {
	class cgroups.Class
	gone  bool // at the last look of NewlyVanished
}

// Vanished reports whether the cgroup of a pod, which may run, is gone. Only one that
// this agent saw can be: pods may run under another driver or without cgroups since
// before the settings changed. One that cannot be looked at is not gone.
func (g *PodCgroups) Vanished(p *v1.Pod) bool {
	if g.None() || !g.isReady() {
		return false
	}
	uid, class := string(p.UID), podspec.CgroupClass(p)
	gone, err := g.Manager.Gone(class, uid)
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, seen := g.seen[uid]; seen || gone {
		return seen && gone
	}
	if g.seen == nil {
		g.seen = map[string]seenCgroup{}
	}
	g.seen[uid] = seenCgroup{class: class}
	return false
}

// NewlyVanished reports whether the cgroup of any pod is gone that was there at the last
// call, as seen by Vanished at first.
func (g *PodCgroups) NewlyVanished() bool {
	if g.None() {
		return false
	}
	g.mu.Lock()
	all := maps.Clone(g.seen)
	g.mu.Unlock()
	newly := false
	for uid, c := range all {
		gone, err := g.Manager.Gone(c.class, uid)
		if err != nil || gone == c.gone {
			continue
		}
		newly = newly || gone
		g.mu.Lock()
		if _, still := g.seen[uid]; still {
			g.seen[uid] = seenCgroup{c.class, gone}
		}
		g.mu.Unlock()
	}
	return newly
}

// unsee forgets the cgroup of a pod, which is about to be removed.
func (g *PodCgroups) unsee(uid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.seen, uid)
}
