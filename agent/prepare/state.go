package prepare

import (
	"time"

	"monopod/agent/podimages"
	"monopod/manifests"
)

// State is how far the preparation of a version is. The zero value: nothing is known.
type State struct {
	Of      *manifests.Pod  // the version
	Ready   bool            // it has what it needs, beside its room
	Final   bool            // and the last look, which was requested, found all of that; what is the version's own is made
	Images  podimages.Ready // what was fetched for it, once it is ready
	Lacks   []Lack
	Lasting bool // it lacks more than the end of its first pulls
}

// Lack is what a version lacks.
type Lack struct {
	Text string    // in words
	Next time.Time // of an image: time of its next try, or of the one in progress; zero: not tried yet, or no image
}

// Is reports whether it is the state of this version.
func (s *State) Is(p *manifests.Pod) bool { return s.Of != nil && manifests.Same(s.Of, p) }
