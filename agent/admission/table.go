package admission

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/agent/panics"
	"monopod/manifests"
)

// Table holds the allocations of the admitted pods, and the pods that wait. The sync
// loop's goroutine owns it, so that no two pods can take the last port.
type Table struct {
	Facts    node.Facts
	Uids     *UidHolders
	Entries  map[manifests.Key]*Entry
	Rejected map[manifests.Key]RejectedPod
	Fault    func(p *v1.Pod, err error) // told of a panic over an admitted pod; nil: none
}

// Entry is the allocation of one pod name.
type Entry struct {
	Pod     *manifests.Pod // the admitted version; nil: none, or it is to go
	over    bool           // that version has ended and takes nothing
	leaving []*v1.Pod      // previous versions that may still run
}

// RejectedPod is a pod that waits, or has failed if the rejection is final.
type RejectedPod struct {
	Pod   *manifests.Pod
	Since metav1.Time
	Rejection
}

// NewTable returns the allocations as previous agents left them: an admitted pod keeps
// its allocation until its manifest changes.
func NewTable(facts node.Facts, checkpoints []*checkpoint.Checkpoint) *Table {
	s := &Table{Facts: facts, Uids: newUIDHolders(checkpoints), Entries: map[manifests.Key]*Entry{}, Rejected: map[manifests.Key]RejectedPod{}}
	current := map[string]bool{}
	for _, p := range checkpoint.LastGood(checkpoints) {
		s.Entries[p.Key()] = &Entry{Pod: p}
		current[string(p.UID)] = true
	}
	for _, c := range checkpoints {
		at := s.Entry(c.Key())
		switch {
		case current[c.Uid()]:
			at.over = c.Ended() != ""
		case c.Ended() == "":
			at.leaving = append(at.leaving, c.Pod)
		}
	}
	return s
}

// Entry returns the entry of a pod name, a new one if there is none.
func (s *Table) Entry(key manifests.Key) *Entry {
	if s.Entries[key] == nil {
		s.Entries[key] = &Entry{}
	}
	return s.Entries[key]
}

// Admit allocates what the pod needs, unless the same version is admitted already; it
// releases the allocation of the previous version. It returns the version that is to
// run: if the pod is refused, the previous one, nil if there is none.
func (s *Table) Admit(p *manifests.Pod, now metav1.Time) *manifests.Pod {
	key := p.Key()
	at := s.Entry(key)
	if at.Pod != nil && manifests.Same(at.Pod, p) {
		at.Pod = p
		delete(s.Rejected, key)
		return p
	}
	r := s.uidInUse(p)
	if r == nil {
		r = s.Check(p)
	}
	if r == nil {
		r = s.takeUID(p)
	}
	if r != nil {
		s.Refuse(p, *r, now)
		return at.Pod
	}
	s.Free(at)
	at.Pod = p
	delete(s.Rejected, key)
	return p
}

// Check is Admit together with the admitted pods. It leaves out an admitted pod over
// which it panics: the fault of one pod must not keep all others from starting. A
// panic over p itself is the caller's to handle.
func (s *Table) Check(p *manifests.Pod) (r *Rejection) {
	others := s.Others(p.Key())
	if panics.Contain(func() { r = Admit(p.Pod, others, &s.Facts) }) == nil {
		return r
	}
	_ = Admit(p.Pod, nil, &s.Facts)
	others = slices.DeleteFunc(others, func(of Allocation) bool {
		err := panics.Contain(func() { Admit(p.Pod, []Allocation{of}, &s.Facts) })
		if err != nil && s.Fault != nil {
			s.Fault(of[0], err)
		}
		return err != nil
	})
	return Admit(p.Pod, others, &s.Facts)
}

// Refuse lets a pod wait. Its time is that of the first refusal of this version.
func (s *Table) Refuse(p *manifests.Pod, r Rejection, now metav1.Time) {
	if was, ok := s.Rejected[p.Key()]; ok && manifests.Same(was.Pod, p) {
		now = was.Since
	}
	s.Rejected[p.Key()] = RejectedPod{p, now, r}
}

// Release records that a pod is to go. Its allocation is free once it is gone.
func (s *Table) Release(key manifests.Key) {
	delete(s.Rejected, key)
	if at := s.Entries[key]; at != nil {
		s.Free(at)
	}
}

// Free releases the admitted version of an entry, which may still run.
func (s *Table) Free(at *Entry) {
	if at.Pod != nil && !at.over {
		at.leaving = append(at.leaving, at.Pod.Pod)
	}
	at.Pod, at.over = nil, false
}

// Update records the state of the version that a worker was last given. cleared:
// nothing of previous versions is left; ended: the version has ended.
func (s *Table) Update(key manifests.Key, cleared, ended bool) {
	at := s.Entries[key]
	if at == nil {
		return
	}
	if cleared {
		at.leaving = nil
	}
	if cleared && at.Pod != nil {
		s.Uids.keep(key, at.Pod.UID)
	}
	at.over = at.Pod != nil && ended
}

// Remove records that nothing of a pod is left.
func (s *Table) Remove(key manifests.Key) {
	delete(s.Entries, key)
	s.Uids.keep(key)
}

// Others returns the allocations of all pods but key's.
func (s *Table) Others(key manifests.Key) []Allocation {
	var out []Allocation
	for k, at := range s.Entries {
		if of := at.allocation(); k != key && len(of) > 0 {
			out = append(out, of)
		}
	}
	return out
}

func (at *Entry) allocation() Allocation {
	of := Allocation(slices.Clip(at.leaving))
	if at.Pod != nil && !at.over {
		of = append(of, at.Pod.Pod)
	}
	return of
}

// Waiting returns the refused pods that may be admitted later, in order of arrival.
func (s *Table) Waiting() []*manifests.Pod {
	return slices.DeleteFunc(s.All(), func(p *manifests.Pod) bool { return s.Rejected[p.Key()].Final() })
}

// All returns the refused pods, in order of arrival.
func (s *Table) All() []*manifests.Pod {
	var out []*manifests.Pod
	for _, r := range s.Rejected {
		out = append(out, r.Pod)
	}
	slices.SortFunc(out, ByArrival)
	return out
}

// annSeen is the annotation with the time when the manifest was first read.
const annSeen = "kubernetes.io/config.seen"

// seenAt returns that time, the zero time if it is not known.
func seenAt(p *manifests.Pod) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, p.Annotations[annSeen])
	return t
}

// ByArrival orders pods in the order of their admission.
func ByArrival(a, b *manifests.Pod) int {
	return cmp.Or(seenAt(a).Compare(seenAt(b)), cmp.Compare(a.Key().String(), b.Key().String()))
}
