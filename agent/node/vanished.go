package node

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/cgroups"
)

// seenCgroup is the cgroup of a pod that was seen.
type seenCgroup struct {
	class cgroups.Class
	gone  bool // at the last pass of NewlyVanished
}

// Vanished reports whether the cgroup of a pod, which may run, is gone. It is false for a cgroup
// that this agent has not seen: pods may run under another driver or without cgroups since before
// the settings changed. It is also false if the cgroup cannot be checked.
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
	was, seen := g.seen[uid]
	if !gone && (!seen || was.gone) {
		g.see(uid, class)
	}
	return seen && gone
}

// see records that a cgroup exists. The caller holds g.mu.
func (g *PodCgroups) see(uid string, class cgroups.Class) {
	if g.seen == nil {
		g.seen = map[string]seenCgroup{}
	}
	g.seen[uid] = seenCgroup{class: class}
	if _, stayed := g.leaving[uid]; stayed {
		delete(g.leaving, uid)
		return
	}
	class.AddTo(g.counts, 1)
}

// lookAtAll is how often all cgroups are checked although none is missing from the counts.
const lookAtAll = time.Minute

// NewlyVanished reports whether the cgroup of any pod is gone that existed at the last call;
// Vanished records it first. It checks each cgroup only if the counts are lower than expected:
// those of the last call, plus the cgroups seen since, minus those that this agent has removed.
// Otherwise it checks them every lookAtAll. One goroutine calls it.
func (g *PodCgroups) NewlyVanished() bool {
	if g.None() || !g.isReady() {
		return false
	}
	counts, ok := g.Manager.Counts()
	g.countRemoved()
	if ok && !g.misses(counts) && time.Since(g.looked) < lookAtAll {
		return false
	}
	g.looked = time.Now()
	return g.newlyVanished()
}

// countRemoved subtracts the cgroups that this agent has removed, once they are gone.
func (g *PodCgroups) countRemoved() {
	g.mu.Lock()
	all := maps.Clone(g.leaving)
	g.mu.Unlock()
	for uid, class := range all {
		if gone, err := g.Manager.Gone(class, uid); err != nil || !gone {
			continue
		}
		g.mu.Lock()
		if _, still := g.leaving[uid]; still {
			delete(g.leaving, uid)
			class.AddTo(g.counts, -1)
		}
		g.mu.Unlock()
	}
}

// misses reports whether any count of cgroups is lower than expected, and stores these counts as
// the expected ones.
func (g *PodCgroups) misses(counts []uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.counts
	g.counts = counts
	if len(known) != len(counts) {
		return true
	}
	for k := range counts {
		if counts[k] < known[k] {
			return true
		}
	}
	return false
}

func (g *PodCgroups) newlyVanished() bool {
	g.mu.Lock()
	seen := make(map[string]cgroups.Class, len(g.seen))
	for uid, c := range g.seen {
		seen[uid] = c.class
	}
	g.mu.Unlock()
	missing, err := g.Manager.Missing(seen)
	if err != nil {
		return false // it is not known
	}
	newly := false
	g.mu.Lock()
	defer g.mu.Unlock()
	for uid, class := range seen {
		c, still := g.seen[uid]
		if !still || c.gone == missing[uid] {
			continue
		}
		newly = newly || missing[uid]
		g.seen[uid] = seenCgroup{class, missing[uid]}
	}
	return newly
}

// unsee records that the cgroup of a pod is about to be removed.
func (g *PodCgroups) unsee(uid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, seen := g.seen[uid]
	delete(g.seen, uid)
	if !seen || c.gone {
		return
	}
	if g.leaving == nil {
		g.leaving = map[string]cgroups.Class{}
	}
	g.leaving[uid] = c.class
}
