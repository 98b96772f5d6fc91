package update

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// The values of the setting: what counts for pods whose annotation says nothing.
const (
	Prepare   = "Prepare"   // the version that runs stops once the next has all that it needs
	StopFirst = "StopFirst" // it stops at once, as with a kubelet
)

// The values of the setting that says what a changed pod keeps, for pods whose annotation says
// nothing of it.
const (
	PolicyInPlace = "InPlace" // it changes as little as it can
	PolicyReplace = "Replace" // nothing: any change makes another pod of it, as with a kubelet
)

// Fetched returns of the next version of a pod what must be fetched before the running
// version gives way: in place that is what its containers need that restart.
func Fetched(runs, next *v1.Pod) *v1.Pod {
	if runs == nil || runs.UID != next.UID {
		return next
	}
	v := Compare(runs, next)
	if v.Kind == Replace {
		return next
	}
	restart, out := v.Named(Restart), *next
	out.Spec.InitContainers = nil
	out.Spec.Containers = slices.DeleteFunc(slices.Clone(next.Spec.Containers), func(c v1.Container) bool { return !slices.Contains(restart, c.Name) })
	return &out
}

// StopsFirst reports whether the version before p is stopped before anything of p is
// fetched: as p's annotation says, else as the setting.
func StopsFirst(p *v1.Pod, setting string) bool {
	switch word, _ := annotations.UpdateOf(p); word {
	case annotations.UpdateStopFirst:
		return true
	case annotations.UpdatePrepare:
		return false
	}
	return setting == StopFirst
}
