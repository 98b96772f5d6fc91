package node

import (
	"maps"
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
	was, seen := g.seen[uid]
	if !gone && (!seen || was.gone) {
		g.see(uid, class)
	}
	return seen && gone
}

// see records that a cgroup is there. g.mu is held.
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

// lookAtAll is how often every cgroup is looked for although none is missed.
const lookAtAll = time.Minute

// NewlyVanished reports whether the cgroup of any pod is gone that was there at the last
// call, as seen by Vanished at first. Each is looked for if there are fewer than at the last
// call with those that were seen since and without those that this agent has removed, else
// every lookAtAll only. One goroutine calls it.
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

// countRemoved takes note of which of the cgroups that this agent removes are gone by now.
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

// misses reports whether there are fewer cgroups than are known of, in any place that has some,
// and takes these counts for what is known from now on.
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
