package rollout

import (
	"time"

	"monopod/manifests"
)

// Proof is what is known of a version that runs: whether it works. Only one that was seen to
// work is one to go back to.
type Proof struct {
	of    *manifests.Pod
	since time.Time // it is ready; zero: it is not
	isIn  bool      // it was ready for long enough at a stretch
}

// Saw takes over whether a version is ready. stable is for how long it must be.
func (p Proof) Saw(v *manifests.Pod, isReady bool, now time.Time, stable time.Duration) Proof {
	if p.of == nil || v == nil || p.of.Digest != v.Digest {
		p = Proof{of: v}
	}
	p.isIn = p.Holds(v, now, stable)
	switch {
	case !isReady:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now
	}
	return p
}

// Holds reports whether a version was ready for so long.
func (p Proof) Holds(v *manifests.Pod, now time.Time, stable time.Duration) bool {
	if p.of == nil || v == nil || p.of.Digest != v.Digest {
		return false
	}
	return p.isIn || !p.since.IsZero() && now.Sub(p.since) >= stable
}
