package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/objects"
	"monopod/agent/prepare"
	"monopod/agent/rollout"
	"monopod/agent/worker"
	"monopod/manifests"
)

// podRecord is all that the loop has of one pod name: the record of which decisions are made,
// and the worker that has them.
type podRecord struct {
	rollout.Record
	worker *worker.Worker // nil: there is none
	sent   worker.Update  // what it was given last
	task   *prepare.Task  // makes its next version ready; nil: there is none
	told   bool           // that the next version waits
	file   string         // the manifest that gave its last pod; "": it never had one here
	stop   context.CancelFunc
	tells  bool   // the loop reports the pod itself, and that is to be looked at again
	dirty  bool   // it is to be decided on
	timed  bool   // its decision names a time for the next look
	round  uint64 // the last offer that had it
	past   *past  // while it waits for its turn: what is asked for of previous agents; nil: nothing

	looking bool      // a look for its lock runs
	looks   time.Time // when the next one may be

	needs   objects.Needs // of its versions, as counted last
	touched bool          // they are to be counted again

	unsaved bool // its trial is not as it is on disk
	saving  bool // its record is being written

	remembered string           // the digest of the version that was ready last, as it is on disk; "": not known
	proves     bool             // it is to be seen whether what runs stays ready
	asked      *rollbackRequest // is answered once its trial is saved; nil: there is none
}

// records are the records of all pod names. The sync loop's goroutine owns them.
type records struct {
	all     map[manifests.Key]*podRecord
	offered int             // how many have an offered version
	round   uint64          // counts the offers
	unsure  []manifests.Key // names whose records may have nothing any more
	told    []*podRecord    // those whose reports are to be looked at again
	agenda  agenda          // those that are to be decided on
	touched []*podRecord    // those whose versions may be others
	over    []manifests.Key // names of pods that are gone, as is proven
	order   startOrder      // who starts after whom
}

// of returns the record of a name, a new one if there is none.
func (s *records) of(key manifests.Key) *podRecord {
	if s.all == nil {
		s.all = map[manifests.Key]*podRecord{}
	}
	r := s.all[key]
	if r == nil {
		r = &podRecord{Record: rollout.Record{Key: key}}
		s.all[key] = r
		s.unsure = append(s.unsure, key)
	}
	return r
}

// see returns what is known of a name; of one that is not known, an empty record that is
// nobody's.
func (s *records) see(key manifests.Key) *podRecord {
	if r := s.all[key]; r != nil {
		return r
	}
	return &podRecord{Record: rollout.Record{Key: key}}
}

// tidy drops the records of which nothing is left.
func (s *records) tidy() {
	for _, key := range s.unsure {
		if r := s.all[key]; r != nil && !r.HasAnything() && r.Now.Again.IsZero() && r.needs.IsEmpty() && !r.unsaved && !r.saving {
			delete(s.agenda.denied, r)
			if r.Gone {
				s.over = append(s.over, key)
			}
			delete(s.all, key)
		}
	}
	s.unsure = s.unsure[:0]
}

// touch makes the loop count again which objects the versions of a name need.
func (s *records) touch(key manifests.Key) {
	if r := s.all[key]; r != nil && !r.touched {
		r.touched = true
		s.touched = append(s.touched, r)
	}
}

// takeTouched returns the records whose versions are to be counted again.
func (s *records) takeTouched() []*podRecord {
	all := s.touched
	s.touched = nil
	for _, r := range all {
		r.touched = false
	}
	return all
}

// tell makes the loop look again at what it reports of a name.
func (s *records) tell(r *podRecord) {
	if !r.tells {
		r.tells = true
		s.told = append(s.told, r)
	}
}

// takeTold returns the records of which the loop is to look at what it reports.
func (s *records) takeTold() []*podRecord {
	all := s.told
	s.told = nil
	for _, r := range all {
		r.tells = false
	}
	return all
}

// drop makes tidy look at a record, of which something is gone.
func (s *records) drop(key manifests.Key) { s.unsure = append(s.unsure, key) }

// working returns the records of all names with a worker.
func (s *records) working() func(func(manifests.Key, *podRecord) bool) {
	return func(yield func(manifests.Key, *podRecord) bool) {
		for key, r := range s.all {
			if r.worker != nil && !yield(key, r) {
				return
			}
		}
	}
}

// onTrial returns the records of all names whose versions are watched.
func (s *records) onTrial() func(func(*podRecord) bool) {
	return func(yield func(*podRecord) bool) {
		for _, r := range s.all {
			if r.Trial.IsOn() && !yield(r) {
				return
			}
		}
	}
}

// sorted returns some of the records in the order of their names.
func (s *records) sorted(isWanted func(*podRecord) bool) (some []*podRecord) {
	for _, r := range s.all {
		if isWanted(r) {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, func(a, b *podRecord) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return some
}

// inherit takes over what previous agents left.
func (s *records) inherit(checkpoints []*checkpoint.Checkpoint) {
	for _, c := range checkpoints {
		r := s.of(c.Key())
		if r.Left == nil {
			r.Left = map[string]*checkpoint.Checkpoint{}
		}
		if was := r.Left[c.Uid()]; was == nil || was.Next { // else the instance before it has the uid, and is to go
			r.Left[c.Uid()] = c
		}
		s.touch(r.Key)
	}
}

// offer records the pods of a snapshot. It returns those that are new or not the same objects
// as in the snapshot before, those names that no pod had, and those that have none any more.
func (s *records) offer(pods []*manifests.Pod) (changed []*manifests.Pod, arrived, gone []manifests.Key) {
	s.round++
	now := 0
	for _, p := range pods {
		r := s.of(p.Key())
		if r.round != s.round {
			r.round = s.round
			now++
		}
		if r.Offered == nil {
			arrived = append(arrived, r.Key)
		}
		isAnother := s.offerOne(r, p)
		if isAnother {
			changed = append(changed, p)
		}
	}
	if s.offered+len(arrived) > now {
		gone = s.withdraw()
	}
	s.offered = now
	return changed, arrived, gone
}

// offerOne records the version that is offered of a pod. It reports whether that is another object
// than before.
func (s *records) offerOne(r *podRecord, p *manifests.Pod) (isAnother bool) {
	if r.Offered == p {
		return false
	}
	if !manifests.Same(r.Offered, p) {
		r.Read = time.Now()
	}
	r.Offered, r.Gone = p, false
	s.touch(r.Key)
	return true
}

// withdraw takes the offered versions of the names that the present offer lacks, which it returns.
func (s *records) withdraw() (gone []manifests.Key) {
	for key, r := range s.all {
		if r.Offered != nil && r.round != s.round {
			r.Given, r.Offered, r.Gone, r.Read, r.Kept = nil, nil, true, time.Time{}, rollout.Kept{}
			gone = append(gone, key)
			s.drop(key)
			s.touch(key)
		}
	}
	return gone
}

// about is the pod for whose sake something is told of a name.
func (r *podRecord) about() *v1.Pod {
	p := cmp.Or(r.Offered, r.sent.Pod, r.Accepted)
	if p != nil {
		return p.Pod
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Key.Namespace, Name: r.Key.Name}}
}

// running returns the version that the worker of a name has; nil: none.
func (s *records) running(key manifests.Key) *manifests.Pod { return s.see(key).sent.Pod }

// offers reports whether a manifest gives the pod.
func (s *records) offers(key manifests.Key) bool { return s.see(key).Offered != nil }

// forsaken returns the names of which something is left and that no manifest gives, which is
// proven from now on.
func (s *records) forsaken() (all []manifests.Key) {
	for key, r := range s.all {
		if r.Offered == nil && (r.Left != nil || r.worker != nil) {
			r.Gone = true
			all = append(all, key)
		}
	}
	return all
}

// isEmpty reports whether nothing is left of any pod, as far as workers and previous agents
// say.
func (s *records) isEmpty() bool {
	for _, r := range s.all {
		if r.worker != nil || r.Left != nil {
			return false
		}
	}
	return true
}
