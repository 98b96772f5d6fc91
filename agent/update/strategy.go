package update

import (
	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

// The values of the setting: what counts for pods whose annotation says nothing.
const (
	Prepare   = "Prepare"   // the version that runs stops once the next has all that it needs
	StopFirst = "StopFirst" // it stops at once, as with a kubelet
)

// StopsFirst reports whether the version before p is stopped before anything of p is
// fetched: as p's annotation says, else as the setting.
func StopsFirst(p *v1.Pod, setting string) bool {
	switch p.Annotations[decode.AnnotationUpdate] {
	case decode.UpdateStopFirst:
		return true
	case decode.UpdatePrepare:
		return false
	}
	return setting == StopFirst
}
