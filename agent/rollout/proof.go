package rollout

import (
	"time"

	"monopod/agent/update"
	"monopod/manifests"
)

// Proof is what this agent observed of whether a running version works. Only a version that was
// observed to work can be rolled back to.
type Proof struct {
	of        *manifests.Pod
	since     time.Time // since when it is ready; zero: it is not
	isIn      bool      // it was ready for long enough without interruption
	isClean   bool      // it never crashed
	restarts  int32     // of its containers so far
	isExcused bool      // the next restart is not caused by the version
	last      time.Time // when it was ready last, before since; zero: never
	former    time.Time // when the version before it was ready last; zero: never observed
}

// Saw records the health of a version. stable is how long it must be ready.
func (p Proof) Saw(v *manifests.Pod, h update.Health, now time.Time, stable time.Duration) Proof {
	isFirst := p.of == nil
	if !p.is(v) {
		p = Proof{of: v, isClean: h.Restarts == 0 || !isFirst, restarts: h.Restarts, former: p.lastReady(now)}
	}
	p.isIn = p.isIn || p.isReadyFor(now, stable)
	p.isClean = p.isClean && (h.Restarts <= p.restarts || p.isExcused || h.Excused)
	p.restarts, p.isExcused = h.Restarts, h.Excused
	switch {
	case !h.Ready:
		p.last, p.since = p.lastReady(now), time.Time{}
	case p.since.IsZero():
		p.since = now
	}
	return p
}

// Holds reports whether a version works: it is ready and never crashed, or was ready for the
// duration stable.
func (p Proof) Holds(v *manifests.Pod, now time.Time, stable time.Duration) bool {
	return p.IsStable(v, now, stable) || p.is(v) && p.isClean && !p.since.IsZero()
}

// IsStable reports whether a version was ready for the duration stable.
func (p Proof) IsStable(v *manifests.Pod, now time.Time, stable time.Duration) bool {
	return p.is(v) && (p.isIn || p.isReadyFor(now, stable))
}

// Knows reports whether this version was observed last, when nothing of former versions was left.
func (p Proof) Knows(v *manifests.Pod) bool { return p.is(v) }

// LastReady returns whether a version is ready now, or when it was ready last; zero: not known.
func (p Proof) LastReady(v *manifests.Pod) (isReady bool, last time.Time) {
	if !p.is(v) {
		return false, last
	}
	return !p.since.IsZero(), p.last
}

// Since returns since when the version is ready, and when the version before it was ready last.
func (p Proof) Since() (since, former time.Time) { return p.since, p.former }

func (p Proof) lastReady(now time.Time) time.Time {
	if p.since.IsZero() {
		return p.last
	}
	return now
}

func (p Proof) is(v *manifests.Pod) bool { return p.of != nil && v != nil && p.of.Digest == v.Digest }

func (p Proof) isReadyFor(now time.Time, stable time.Duration) bool {
	return !p.since.IsZero() && now.Sub(p.since) >= stable
}
