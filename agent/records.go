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

// podRecord is all that the loop has of one pod name: the record that decisions are made of, and
// the worker that carries them out.
type podRecord struct {
	rollout.Record
	worker *worker.Worker // nil: there is none
	sent   worker.Update  // what the worker was sent last
	task   *prepare.Task  // prepares its next version; nil: none
	told   bool           // it was reported that the next version waits
	file   string         // the manifest that gave its last pod; "": this agent had none
	stop   context.CancelFunc
	tells  bool   // the loop reports the pod itself, and must check that report
	dirty  bool   // the name is marked for a decision
	timed  bool   // its decision has a time for the next one
	round  uint64 // the last offer that contained it
	past   *past  // while it waits for its turn: what previous agents reported; nil: not requested

	exchanges bool // it stops so that other pods get what it has, and it gets what they have

	looking bool      // a check of its lock is running
	looks   time.Time // when the next one may start

	needs   objects.Needs // the needs of its versions, as last counted
	touched bool          // the needs must be counted again

	back *rollout.Trial // the rollback of which is to be told once its record is written; nil: none

	unsaved bool // its trial differs from the one on disk
	saving  bool // its record is being written

	tags *tags // the tags that it follows; nil: none

	remembered string           // the digest of the version that was ready last, as it is on disk; "": not known
	proves     bool             // whether what runs stays ready is being observed
	asked      *rollbackRequest // a rollback request, answered once its trial is saved; nil: none
}

// records are the records of all pod names. The sync loop's goroutine owns them.
type records struct {
	all     map[manifests.Key]*podRecord
	offered int             // the number of records with an offered version
	round   uint64          // counts the offers
	unsure  []manifests.Key // names whose records may be empty
	told    []*podRecord    // the records whose reports must be checked
	agenda  agenda          // the records marked for a decision
	touched []*podRecord    // the records whose versions may have changed
	over    []manifests.Key // names of pods that are certainly gone
	order   startOrder      // which pods start after which
}

// of returns the record of a name, and creates it if there is none.
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

// see returns the record of a name, or an empty one that is not kept.
func (s *records) see(key manifests.Key) *podRecord {
	if r := s.all[key]; r != nil {
		return r
	}
	return &podRecord{Record: rollout.Record{Key: key}}
}

// tidy drops the empty records.
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

// touch marks a name so that the objects that its versions need are counted again.
func (s *records) touch(key manifests.Key) {
	if r := s.all[key]; r != nil && !r.touched {
		r.touched = true
		s.touched = append(s.touched, r)
	}
}

// takeTouched returns the records whose needs must be counted again.
func (s *records) takeTouched() []*podRecord {
	all := s.touched
	s.touched = nil
	for _, r := range all {
		r.touched = false
	}
	return all
}

// tell marks a name so that the loop checks its report of it.
func (s *records) tell(r *podRecord) {
	if !r.tells {
		r.tells = true
		s.told = append(s.told, r)
	}
}

// takeTold returns the records whose reports must be checked.
func (s *records) takeTold() []*podRecord {
	all := s.told
	s.told = nil
	for _, r := range all {
		r.tells = false
	}
	return all
}

// drop makes tidy check a record that may be empty now.
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

// sorted returns the wanted records in the order of their names.
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

// inherit records the checkpoints of previous agents.
func (s *records) inherit(checkpoints []*checkpoint.Checkpoint) {
	for _, c := range checkpoints {
		r := s.of(c.Key())
		if r.Left == nil {
			r.Left = map[string]*checkpoint.Checkpoint{}
		}
		if was := r.Left[c.Uid()]; was == nil || was.Next { // else the previous instance has the uid, and is removed
			r.Left[c.Uid()] = c
		}
		r.Between = r.Between || c.IsRemoving()
		if c.Next {
			r.Coming = rollout.Version{UID: c.Pod.UID, Digest: c.Digest}
		}
		s.touch(r.Key)
	}
}

// offer records the pods of a snapshot. It returns the pods that are new or not the same objects as
// in the previous snapshot, the names that had no pod, and the names that have none any more.
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

// offerOne records the offered version of a pod. It reports whether that is another object than
// before.
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

// withdraw removes the offered versions of the names that the present offer lacks, and returns
// these names.
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

// about returns the pod that an event or log line about the name refers to.
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

// forsaken marks and returns the names of which something is left and that no manifest gives: from
// now on this is certain.
func (s *records) forsaken() (all []manifests.Key) {
	for key, r := range s.all {
		if r.Offered == nil && (r.Left != nil || r.worker != nil) {
			r.Gone = true
			all = append(all, key)
		}
	}
	return all
}

// isEmpty reports whether workers and previous agents have nothing left of any pod.
func (s *records) isEmpty() bool {
	for _, r := range s.all {
		if r.worker != nil || r.Left != nil {
			return false
		}
	}
	return true
}
