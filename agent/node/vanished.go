package node

import (
	"maps"
	"slices"
	"time"

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

// lookAtAll is how often every cgroup is looked for although their number is the same.
const lookAtAll = time.Minute

// NewlyVanished reports whether the cgroup of any pod is gone that was there at the last
// call, as seen by Vanished at first. While there are as many cgroups as before, each is
// looked for every lookAtAll only. One goroutine calls it.
func (g *PodCgroups) NewlyVanished() bool {
	if g.None() || !g.isReady() {
		return false
	}
	counts, ok := g.Manager.Counts()
	if ok && slices.Equal(counts, g.counts) && time.Since(g.looked) < lookAtAll {
		return false
	}
	g.counts, g.looked = counts, time.Now()
	return g.newlyVanished()
}

func (g *PodCgroups) newlyVanished() bool {
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
