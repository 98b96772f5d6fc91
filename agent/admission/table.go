package admission

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/devices"
	"monopod/agent/node"
	"monopod/agent/panics"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// Table holds the allocations of the admitted pods. The sync loop's goroutine owns it, so that no
// two pods can take the last port. The cost of an operation on one pod depends on the claims of
// that pod, not on the number of pods.
type Table struct {
	Uids *UidHolders

	facts    node.Facts
	entries  map[manifests.Key]*entry
	totals   totals                     // of all entries
	fault    func(p *v1.Pod, err error) // called for a panic over a pod's claims
	freed    bool                       // something that pods may wait for was freed since the last TakeFreed
	uidWaits bool                       // since then a refusal named the pod that has the wanted uid
	checks   int                        // the number of checks for Room so far
	asked    question
	cpus     *pinning.Keeper // nil: pods share all CPUs
	devices  *devices.Keeper // nil: no resource is made of devices
}

// entry is the allocation of one pod name.
type entry struct {
	pod     *manifests.Pod // the admitted version; nil: none, or it is in removal
	claims  claims         // of that version
	over    bool           // that version has ended and takes nothing
	leaving []claims       // of previous versions that may still run
	former  *manifests.Pod // a version that may be restored; nil: no room is kept for one
	back    claims         // of that version
	spared  claims         // what older agents let the pod have of resources that the node does not provide
	counted claims         // the sum of these, as in the totals
	holder  ownHolder
}

// NewTable returns the allocations as previous agents left them: an admitted pod keeps its
// allocation until its manifest changes. fault is called for each pod whose claims cannot be
// computed: it counts as taking nothing, as the fault of one pod must not prevent all others from
// starting.
func NewTable(facts node.Facts, checkpoints []*checkpoint.Checkpoint, fault func(p *v1.Pod, err error)) *Table {
	s := &Table{facts: facts, fault: fault, Uids: newUIDHolders(checkpoints),
		entries: map[manifests.Key]*entry{}, totals: newTotals()}
	accepted := checkpoint.Accepted(checkpoints)
	for _, p := range checkpoint.LastGood(checkpoints) {
		s.entries[p.Key()] = &entry{pod: p, claims: s.count(p.Pod), spared: s.count(p.Pod)}
	}
	for _, c := range checkpoints {
		at := s.entry(c.Key())
		switch {
		case accepted[c.Key()] == c:
			at.over = c.Ended() != ""
		case c.Ended() == "":
			at.leaving = append(at.leaving, s.count(c.Pod))
		}
	}
	for key, at := range s.entries {
		s.recount(key, at)
	}
	return s
}

// count returns the claims of a pod of a previous agent.
func (s *Table) count(p *v1.Pod) (c claims) {
	if err := panics.Contain(func() { c = claimsOf(p) }); err != nil {
		s.fault(p, err)
	}
	return c
}

// entry returns the entry of a pod name, and creates it if there is none.
func (s *Table) entry(key manifests.Key) *entry {
	if s.entries[key] == nil {
		s.entries[key] = &entry{}
	}
	return s.entries[key]
}

// recount updates the totals for a changed entry.
func (s *Table) recount(key manifests.Key, at *entry) {
	var now claims
	if at.pod != nil && !at.over {
		now = at.claims
	}
	for _, c := range at.leaving {
		now = now.beside(c)
	}
	now = now.beside(at.back)
	s.totals.replace(key, &at.counted, &now)
	s.freed = s.freed || now.isLess(&at.counted)
	at.counted = now
}

// Admitted returns the admitted version of a pod name; nil: none, or it is in removal.
func (s *Table) Admitted(key manifests.Key) *manifests.Pod {
	if at := s.entries[key]; at != nil {
		return at.pod
	}
	return nil
}

// Runs returns the admitted version of a pod name, unless it has ended; nil: there is none.
func (s *Table) Runs(key manifests.Key) *manifests.Pod {
	if at := s.entries[key]; at != nil && !at.over {
		return at.pod
	}
	return nil
}

// Len returns the number of pod names that have an allocation, or were checked.
func (s *Table) Len() int { return len(s.entries) }

// Facts returns the facts of the node.
func (s *Table) Facts() node.Facts { return s.facts }

// SetFacts sets the facts of the node. If they change, something may be free.
func (s *Table) SetFacts(f node.Facts) {
	if !f.Same(&s.facts) {
		s.facts, s.freed = f, true
	}
}

// Room returns why the node has no room for a version beside all other pods; nil: it has. It
// allocates nothing.
func (s *Table) Room(p *manifests.Pod) *Rejection {
	s.asked = question{pod: p, claims: claimsOf(p.Pod)}
	s.checks++
	return s.fits(p, &s.asked.claims)
}

// Fits is Room for a version that may never be taken: no claims are cached for Take.
func (s *Table) Fits(p *manifests.Pod) *Rejection {
	c := claimsOf(p.Pod)
	return s.fits(p, &c)
}

func (s *Table) fits(p *manifests.Pod, c *claims) *Rejection {
	if r := s.uidInUse(p); r != nil {
		return r
	}
	at := s.entries[p.Key()]
	if at == nil {
		at = &entry{}
	}
	return check(p, c, &at.counted, &at.spared, &s.totals, &s.facts, owned{s.admitOwn, s.devices.Has})
}

// question is the version that Room last checked, with its claims.
type question struct {
	pod    *manifests.Pod
	claims claims
}

// takeAsked returns, once, the claims of a version that Room has just checked; nil: it has not.
func (s *Table) takeAsked(p *manifests.Pod) *claims {
	was := s.asked
	s.asked = question{}
	if was.pod != p {
		return nil
	}
	return &was.claims
}

// Take allocates what a version needs and for which there is room, and releases the allocation of
// the previous one. It returns why it cannot: another pod took the uid meanwhile.
func (s *Table) Take(p *manifests.Pod) *Rejection {
	key := p.Key()
	at := s.entry(key)
	if manifests.Same(at.pod, p) {
		s.freed = s.freed || s.uidWaits && at.pod.File != p.File
		at.pod = p
		return nil
	}
	if r := s.takeUID(p); r != nil {
		return r
	}
	if r := s.takeOwn(p); r != nil {
		return r
	}
	c := s.takeAsked(p)
	if c == nil {
		of := claimsOf(p.Pod)
		c = &of
	}
	s.release(at)
	at.pod, at.claims = p, *c
	s.recount(key, at)
	return nil
}

// TakeFreed reports, once, whether pods that are refused may be admitted now: something was freed,
// or the node has changed.
func (s *Table) TakeFreed() bool {
	freed := s.freed
	if freed {
		s.freed, s.uidWaits = false, false
	}
	return freed
}

// DevicesChanged records that devices have come or gone: pods may wait for them.
func (s *Table) DevicesChanged() { s.freed = true }

// Spare lets a version that an older agent accepted, and that may be restored, have what it had
// then of resources that the node does not provide.
func (s *Table) Spare(p *manifests.Pod) {
	at := s.entry(p.Key())
	at.spared = at.spared.beside(s.count(p.Pod))
}

// Reserve keeps the room of a version that may be restored, in addition to that of its successor,
// until Unreserve, or until the pod is stopped or makes room for others.
func (s *Table) Reserve(p *manifests.Pod) {
	at := s.entry(p.Key())
	at.former, at.back = p, s.count(p.Pod)
	s.reserveOwn(at)
	s.recount(p.Key(), at)
}

// Unreserve frees that room.
func (s *Table) Unreserve(key manifests.Key) {
	if at := s.entries[key]; at != nil {
		s.unreserve(key, at)
		s.recount(key, at)
	}
}

// TakeOver makes p, which has the same claims, the admitted version of its name.
func (s *Table) TakeOver(p *manifests.Pod) {
	s.entry(p.Key()).pod = p
	s.takeOwn(p) // the same, for the same containers
}

// Free releases the admitted version of a pod name. It may still run: its allocation becomes free
// once it is gone.
func (s *Table) Free(key manifests.Key) {
	if at := s.entries[key]; at != nil {
		s.release(at)
		s.unreserve(key, at)
		s.recount(key, at)
	}
}

// unreserve frees the room of the version that may be restored. The caller must recount afterwards.
func (s *Table) unreserve(key manifests.Key, at *entry) {
	at.former, at.back = nil, claims{}
	s.unreserveOwn(key, at)
}

// release makes the admitted version a previous one. The caller must recount afterwards.
func (s *Table) release(at *entry) {
	s.freed = s.freed || s.uidWaits && at.pod != nil
	if at.pod != nil && !at.over {
		at.leaving = append(at.leaving, at.claims)
	}
	at.pod, at.claims, at.over = nil, claims{}, false
}

// Update records the state of the version that a worker was last sent. cleared: nothing of previous
// versions is left; ended: the version has ended.
func (s *Table) Update(key manifests.Key, cleared, ended bool) {
	at := s.entries[key]
	if at == nil {
		return
	}
	if cleared && at.pod != nil && s.Uids.keep(key, at.pod.UID) {
		s.freed = true
	}
	over := at.pod != nil && ended
	runsAgain := at.over && !over && at.pod != nil
	if over == at.over && (!cleared || len(at.leaving) == 0) {
		return
	}
	if cleared {
		at.leaving = nil
	}
	at.over = over
	s.recount(key, at)
	if runsAgain {
		at.holder = at.holder.with(string(at.pod.UID)) // what it gets later is its own, too
		s.takeOwn(at.pod)                              // if others have them by now, it runs without
	}
	if cleared || over {
		s.clearOwn(key, at)
	}
}

// Remove records that nothing of a pod is left.
func (s *Table) Remove(key manifests.Key) {
	if at := s.entries[key]; at != nil {
		s.totals.replace(key, &at.counted, &claims{})
		s.freed = s.freed || (&claims{}).isLess(&at.counted)
		delete(s.entries, key)
		s.freeOwn(key, nil, at.holder)
	}
	if s.Uids.keep(key) {
		s.freed = true
	}
}
