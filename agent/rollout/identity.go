package rollout

import (
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/update"
	"monopod/manifests"
)

// Identity returns the version whose uid and volumes the pod has, and whether that has ended:
// the accepted one, and of a pod that is stopped the one that was stopped, which gave back its
// room; nil: there is none.
func (r *Record) Identity() (p *manifests.Pod, over bool) {
	if r.Accepted == nil && r.Stop != nil {
		return r.Stop.Version, r.Stop.Over
	}
	return r.Accepted, r.Over
}

// Identify returns a version that a manifest gives as the pod has it: with the uid of the pod
// if it takes that pod's place in place, else with its own. What was said of a version stays
// so: it may have been accepted since.
func Identify(r *Record, p *manifests.Pod, policy string) *manifests.Pod {
	was, isKept := r.Kept, r.Kept.Pod != nil
	switch of, _ := r.Identity(); {
	case isKept && was.Offered == p:
		return was.Pod
	case isKept && manifests.Same(was.Offered, p):
		return WithUID(p, was.Pod.UID)
	case !isKept && manifests.Same(r.Offered, p):
	case of != nil && of.UID != p.UID && r.Becomes(p, policy) < update.Replace:
		return WithUID(p, of.UID)
	}
	return p
}

// Becomes returns how the version that the pod has becomes p. One that has ended runs again.
func (r *Record) Becomes(p *manifests.Pod, policy string) update.Kind {
	of, over := r.Identity()
	kind := update.Planned(of, p, policy).Kind
	if kind > update.Nothing && over {
		return update.Replace
	}
	return kind
}

// WithUID returns a pod with another uid. What its annotations say stays that of its content.
func WithUID(p *manifests.Pod, uid types.UID) *manifests.Pod {
	pod := *p.Pod
	pod.UID = uid
	next := *p
	next.Pod = &pod
	return &next
}
