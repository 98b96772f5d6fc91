package update

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// Values of the setting updateStrategy, for pods without the annotation.
const (
	Prepare   = "Prepare"   // the running version stops once the next one has all that it needs
	StopFirst = "StopFirst" // the running version stops at once, as with a kubelet
)

// Values of the setting updatePolicy, for pods without the annotation: what a changed pod keeps.
const (
	PolicyInPlace = "InPlace" // the pod changes as little as possible
	PolicyReplace = "Replace" // nothing: any change makes another pod, as with a kubelet
)

// Fetched returns the part of a pod's next version that must be fetched before the running version
// stops: for an in-place update, what the restarting containers need.
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

// StopsFirst reports whether the version before p is stopped before anything of p is fetched: from
// p's annotation, or otherwise the setting.
func StopsFirst(p *v1.Pod, setting string) bool {
	switch word, _ := annotations.UpdateOf(p); word {
	case annotations.UpdateStopFirst:
		return true
	case annotations.UpdatePrepare:
		return false
	}
	return setting == StopFirst
}
