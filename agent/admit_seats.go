package agent

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/panics"
	"monopod/manifests"
)

// seats says which pods have a place on the node and which wait for one. The
// sync loop's goroutine owns it: so no two pods can take the last port.
type seats struct {
	facts   nodeFacts
	uids    *uidHolders
	taken   map[manifests.Key]*seat
	refused map[manifests.Key]refused
	fault   func(p *v1.Pod, err error) // told of a panic over a pod that has a place; nil: nobody is
}

// seat is what one pod name takes.
type seat struct {
	pod     *manifests.Pod // the version that was admitted; nil: it is to go
	over    bool           // that version has ended, and takes nothing
	leaving []*v1.Pod      // former versions that may still run
}

// refused is a pod that waits, or has failed if the refusal is final.
type refused struct {
	pod   *manifests.Pod
	since metav1.Time
	refusal
}

// newSeats returns the places as former agents left them: what was admitted
// once keeps its place until its manifest changes.
func newSeats(facts nodeFacts, checkpoints []*checkpoint) *seats {
	s := &seats{facts: facts, uids: newUIDHolders(checkpoints), taken: map[manifests.Key]*seat{}, refused: map[manifests.Key]refused{}}
	current := map[string]bool{}
	for _, p := range lastGood(checkpoints) {
		s.taken[p.Key()] = &seat{pod: p}
		current[string(p.UID)] = true
	}
	for _, c := range checkpoints {
		at := s.at(c.key())
		switch {
		case current[c.uid()]:
			at.over = c.ended() != ""
		case c.ended() == "":
			at.leaving = append(at.leaving, c.Pod)
		}
	}
	return s
}

func (s *seats) at(key manifests.Key) *seat {
	if s.taken[key] == nil {
		s.taken[key] = &seat{}
	}
	return s.taken[key]
}

// ask gives the pod a place if it has none and there is one, the place of its
// former version if there is one. It returns the version that shall run: where
// the pod is refused that is the former one, nil if there is none.
func (s *seats) ask(p *manifests.Pod, now metav1.Time) *manifests.Pod {
	key := p.Key()
	at := s.at(key)
	if at.pod != nil && same(at.pod, p) {
		at.pod = p
		delete(s.refused, key)
		return p
	}
	r := s.uidInUse(p)
	if r == nil {
		r = s.admit(p)
	}
	if r == nil {
		r = s.takeUID(p)
	}
	if r != nil {
		s.refuse(p, *r, now)
		return at.pod
	}
	s.vacate(at)
	at.pod = p
	delete(s.refused, key)
	return p
}

// admit is admit beside the pods that have a place. One that it panics over is
// left out: what is wrong with it must not keep all others from starting. What is
// wrong with p itself is the caller's.
func (s *seats) admit(p *manifests.Pod) (r *refusal) {
	others := s.others(p.Key())
	if panics.Contain(func() { r = admit(p.Pod, others, &s.facts) }) == nil {
		return r
	}
	_ = admit(p.Pod, nil, &s.facts)
	others = slices.DeleteFunc(others, func(of place) bool {
		err := panics.Contain(func() { admit(p.Pod, []place{of}, &s.facts) })
		if err != nil && s.fault != nil {
			s.fault(of[0], err)
		}
		return err != nil
	})
	return admit(p.Pod, others, &s.facts)
}

// refuse lets a pod wait, since when it was first refused as it is.
func (s *seats) refuse(p *manifests.Pod, r refusal, now metav1.Time) {
	if was, ok := s.refused[p.Key()]; ok && same(was.pod, p) {
		now = was.since
	}
	s.refused[p.Key()] = refused{p, now, r}
}

// leave takes note that a pod is to go. Its place is free once it is gone.
func (s *seats) leave(key manifests.Key) {
	delete(s.refused, key)
	if at := s.taken[key]; at != nil {
		s.vacate(at)
	}
}

func (s *seats) vacate(at *seat) {
	if at.pod != nil && !at.over {
		at.leaving = append(at.leaving, at.pod.Pod)
	}
	at.pod, at.over = nil, false
}

// stands takes note of what a worker tells about the version it was given last:
// nothing of former versions is left, and the version has ended.
func (s *seats) stands(key manifests.Key, cleared, ended bool) {
	at := s.taken[key]
	if at == nil {
		return
	}
	if cleared {
		at.leaving = nil
	}
	if cleared && at.pod != nil {
		s.uids.keep(key, at.pod.UID)
	}
	at.over = at.pod != nil && ended
}

// gone takes note that nothing of a pod is left.
func (s *seats) gone(key manifests.Key) {
	delete(s.taken, key)
	s.uids.keep(key)
}

// others returns what all pods but key's take.
func (s *seats) others(key manifests.Key) []place {
	var out []place
	for k, at := range s.taken {
		if of := at.place(); k != key && len(of) > 0 {
			out = append(out, of)
		}
	}
	return out
}

func (at *seat) place() place {
	of := place(slices.Clip(at.leaving))
	if at.pod != nil && !at.over {
		of = append(of, at.pod.Pod)
	}
	return of
}

// waiting returns the refused pods that may be admitted later, the one that
// came first first.
func (s *seats) waiting() []*manifests.Pod {
	return slices.DeleteFunc(s.all(), func(p *manifests.Pod) bool { return s.refused[p.Key()].final() })
}

// all returns the refused pods, the one that came first first.
func (s *seats) all() []*manifests.Pod {
	var out []*manifests.Pod
	for _, r := range s.refused {
		out = append(out, r.pod)
	}
	slices.SortFunc(out, byArrival)
	return out
}

// annSeen says when the manifest was first read.
const annSeen = "kubernetes.io/config.seen"

// seenAt returns that time, the zero time if nobody knows it.
func seenAt(p *manifests.Pod) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, p.Annotations[annSeen])
	return t
}

// byArrival orders pods as they are admitted.
func byArrival(a, b *manifests.Pod) int {
	return cmp.Or(seenAt(a).Compare(seenAt(b)), cmp.Compare(a.Key().String(), b.Key().String()))
}
