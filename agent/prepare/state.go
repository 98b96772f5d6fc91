package prepare

import (
	"time"

	"monopod/agent/fetch"
	"monopod/manifests"
)

// State is how far the preparation of a version is. The zero value: nothing is known of it.
type State struct {
	Of      *manifests.Pod // the version
	Ready   bool           // it has what it needs, beside its room
	Final   bool           // and the last look, which was asked for, found all of that; what is its own is made
	Images  fetch.Ready    // what was fetched for it, once it is ready
	Lacks   []Lack
	Lasting bool // it lacks more than the end of its first pulls
}

// Lack is what a version lacks.
type Lack struct {
	Text string    // in words
	Next time.Time // of an image: when it is tried again, or was; zero: it was not tried yet, or is no image
}

// Is reports whether it is the state of this version.
func (s *State) Is(p *manifests.Pod) bool { return s.Of != nil && manifests.Same(s.Of, p) }
