package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

// RejectedPod is a pod that waits, or has failed if the rejection is final.
type RejectedPod struct {
	Pod   *manifests.Pod
	Since metav1.Time
	Rejection
}

// rejected is a RejectedPod with what is computed once for its version.
type rejected struct {
	RejectedPod
	arrival
	claims *claims // nil: they cannot be computed
	early  bool    // it is not to start yet
}

// Rejected returns why a pod is not admitted, and since when.
func (s *Table) Rejected(key manifests.Key) (RejectedPod, bool) {
	if r := s.rejected[key]; r != nil {
		return r.RejectedPod, true
	}
	return RejectedPod{}, false
}

// Refuse lets a pod wait. Its time is that of the first refusal of this version. early: it is
// not to start yet either way.
func (s *Table) Refuse(p *manifests.Pod, r Rejection, early bool, now metav1.Time) {
	key := p.Key()
	was, claims := s.rejected[key], s.takeAsked(p)
	if was != nil && manifests.Same(was.Pod, p) {
		now = was.Since
	}
	if was == nil || was.Pod != p {
		was = &rejected{arrival: arrivalOf(p), early: early}
		s.rejected[key] = was
	}
	s.moved = s.moved || was.Reason != r.Reason || was.early != early
	s.uidWaits = s.uidWaits || r.Reason == ReasonUIDInUse
	was.RejectedPod, was.claims, was.early = RejectedPod{p, now, r}, claims, early
}

// Withdraw forgets a waiting version that is no longer desired.
func (s *Table) Withdraw(key manifests.Key) { delete(s.rejected, key) }

// Retry returns the refused pods that may be admitted now, in order of arrival: none
// unless something was freed or the node has changed since the last call.
func (s *Table) Retry() []*manifests.Pod {
	if !s.freed {
		return nil
	}
	s.freed, s.moved, s.uidWaits = false, true, false
	var waiting []*rejected
	for _, r := range s.rejected {
		if !r.Final() {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, func(a, b *rejected) int { return a.compare(b.arrival) })
	pods := make([]*manifests.Pod, len(waiting))
	for k := range waiting {
		pods[k] = waiting[k].Pod
	}
	return pods
}

// Waiting reports whether a pod waits that may be admitted later.
func (s *Table) Waiting() bool {
	for _, r := range s.rejected {
		if !r.Final() {
			return true
		}
	}
	return false
}

// AllRejected returns all refused pods, in order of arrival.
func (s *Table) AllRejected() []RejectedPod {
	var all []RejectedPod
	for _, r := range slices.SortedFunc(maps.Values(s.rejected), func(a, b *rejected) int { return a.compare(b.arrival) }) {
		all = append(all, r.RejectedPod)
	}
	return all
}

// arrival orders pods in the order of their admission.
type arrival struct {
	seen time.Time // when the manifest was first read; zero: not known
	name string
}

// annSeen is the annotation with the time when the manifest was first read.
const annSeen = "kubernetes.io/config.seen"

func arrivalOf(p *manifests.Pod) arrival {
	seen, _ := time.Parse(time.RFC3339Nano, p.Annotations[annSeen])
	return arrival{seen, p.Key().String()}
}

func (a arrival) compare(b arrival) int {
	return cmp.Or(a.seen.Compare(b.seen), cmp.Compare(a.name, b.name))
}

// ByArrival sorts pods in the order of their admission.
func ByArrival(pods []*manifests.Pod) {
	at := make(map[*manifests.Pod]arrival, len(pods))
	for _, p := range pods {
		at[p] = arrivalOf(p)
	}
	slices.SortFunc(pods, func(a, b *manifests.Pod) int { return at[a].compare(at[b]) })
}
