package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/update"
	"monopod/manifests"
)

// kept is a version that takes a pod's place in place: as its manifest gives it, and with
// the uid of the pod.
type kept struct{ offered, pod *manifests.Pod }

// keepUIDs gives the versions that running pods become in place the uids of these. All
// others have those that follow from their manifests.
func (l *syncLoop) keepUIDs(pods []*manifests.Pod) []*manifests.Pod {
	out, now := make([]*manifests.Pod, len(pods)), map[manifests.Key]kept{}
	for k, p := range pods {
		if out[k] = l.keepUID(p); out[k] != p {
			now[p.Key()] = kept{p, out[k]}
		}
	}
	l.kept = now
	return out
}

func (l *syncLoop) keepUID(p *manifests.Pod) *manifests.Pod {
	key := p.Key()
	was, isKept := l.kept[key]
	a := l.desired.Of(key)
	switch runs := l.table.Admitted(key); {
	case isKept && was.offered == p:
		return was.pod
	case isKept && manifests.Same(was.offered, p):
		return withUID(p, was.pod.UID)
	case !isKept && a != nil && manifests.Same(a.Pod, p):
	case runs != nil && runs.UID != p.UID && l.becomes(runs, p) < update.Replace:
		return withUID(p, runs.UID)
	}
	return p
}

// withUID returns a pod with another uid. What its annotations say stays that of its
// content.
func withUID(p *manifests.Pod, uid types.UID) *manifests.Pod {
	pod := *p.Pod
	pod.UID = uid
	return &manifests.Pod{Pod: &pod, File: p.File, Digest: p.Digest}
}

// becomes returns how the admitted version of a pod becomes p. One that has ended runs
// again.
func (l *syncLoop) becomes(admitted, p *manifests.Pod) update.Kind {
	kind := update.Planned(admitted, p, l.shared.Settings().UpdatePolicy).Kind
	if kind > update.Nothing && l.table.Runs(p.Key()) == nil {
		return update.Replace
	}
	return kind
}

// takeOver lets a version that asks for nothing new take the place of the admitted one at
// once. It reports whether p is one.
func (l *syncLoop) takeOver(ctx context.Context, p *manifests.Pod) bool {
	admitted := l.table.Admitted(p.Key())
	if admitted == nil || admitted.UID != p.UID || manifests.Same(admitted, p) ||
		admission.AdmitOS(p.Pod) != nil || l.becomes(admitted, p) > update.Live {
		return false
	}
	if _, open := l.gateOf(ctx, p.Key()); !open && l.becomes(admitted, p) > update.Nothing {
		return false
	}
	l.table.TakeOver(p)
	l.setVersions(ctx, p, p, false, "")
	return true
}

// startsNothing reports whether p becomes of the version that was let start last, and
// starts nothing.
func (l *syncLoop) startsNothing(p *manifests.Pod) bool {
	admitted := l.table.Admitted(p.Key())
	return admitted != nil && admitted.UID == p.UID && l.order.WasStarted(admitted) && l.becomes(admitted, p) < update.Restart
}
