package rollout

import (
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/update"
	"monopod/manifests"
)

// Identity returns the version whose uid and volumes the pod has, and whether it has ended: the
// accepted version, or for a stopped pod the version that was stopped, which has freed its room;
// nil: there is none.
func (r *Record) Identity() (p *manifests.Pod, over bool) {
	if r.Accepted == nil && r.Stop != nil {
		return r.Stop.Version, r.Stop.Over
	}
	return r.Accepted, r.Over
}

// Present returns that version, unless it has ended; nil: there is none.
func (r *Record) Present() *manifests.Pod {
	p, over := r.Identity()
	if over {
		return nil
	}
	return p
}

// Identify returns the version that a manifest gives, with the uid that it has as the pod's
// version: the uid of the pod if it replaces the running version in place, else its own. A version
// that was already identified keeps its uid: it may have been accepted since.
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

// Becomes returns what kind of update turns the present version of the pod into p. If that version
// has ended, any change replaces it.
func (r *Record) Becomes(p *manifests.Pod, policy string) update.Kind {
	of, over := r.Identity()
	kind := update.Planned(of, p, policy).Kind
	if kind > update.Nothing && over {
		return update.Replace
	}
	return kind
}

// WithUID returns a pod with another uid. Its annotations stay: they describe its content.
func WithUID(p *manifests.Pod, uid types.UID) *manifests.Pod {
	pod := *p.Pod
	pod.UID = uid
	next := *p
	next.Pod = &pod
	return &next
}
