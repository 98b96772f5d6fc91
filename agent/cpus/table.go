package cpus

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
)

// Table is which containers have CPUs of their own. It must not be used by two goroutines at once.
type Table struct {
	policy *Policy
	shared Set
	own    map[string]map[string]Set // by the uid of the pod and the name of the container
	reuse  Set                       // what later containers of the pod reuseOf take first
	of     string
}

// NewTable returns the table of a machine without pods.
func NewTable(p *Policy) *Table {
	t := &Table{policy: p, own: map[string]map[string]Set{}}
	if p.isStatic {
		t.shared = p.usable()
	}
	return t
}

// usable returns all CPUs that containers may use, shared or not.
func (p *Policy) usable() Set {
	if p.o.strict {
		return p.m.All().Minus(p.reserved)
	}
	return p.m.All()
}

// Request is what a container requests.
type Request struct {
	Container string
	CPUs      int  // of its own; 0: none
	Init      bool // it ends before the containers after it start
}

// Requests returns what the containers of a pod request, in the order in which they get it.
func Requests(p *v1.Pod) []Request {
	var all []Request
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		r := Request{Container: c.Name, CPUs: podspec.OwnCPUs(p, &c), Init: podspec.IsInitName(p, c.Name) && !podspec.Restartable(&c)}
		all = append(all, r)
	}
	return all
}

// The reasons of a Refusal.
const (
	ReasonAlignment = "SMTAlignmentError"
	ReasonShortage  = "UnexpectedAdmissionError"
)

// Refusal is why a pod cannot have the CPUs that it requests, in the kubelet's words.
type Refusal struct {
	Reason, Message string
}

// Clone returns a copy of the table, which changes for itself.
func (t *Table) Clone() *Table {
	c := *t
	c.own = map[string]map[string]Set{}
	for uid, all := range t.own {
		c.own[uid] = maps.Clone(all)
	}
	return &c
}

// Admit assigns CPUs to the containers of a pod. What a container already has stays, if it is as
// much as it requests. The pod may have what the pods with the uids in former have, too: they end
// before it starts. If the pod is refused, what its first containers got stays until Keep is told
// that the pod is not active.
func (t *Table) Admit(uid string, all []Request, former ...string) *Refusal {
	if !t.policy.isStatic {
		return nil
	}
	for _, r := range all {
		if own, has := t.own[uid][r.Container]; has && len(own) != r.CPUs {
			t.free(uid, r.Container)
		}
	}
	lent := t.lent(uid, former)
	for _, r := range all {
		if r.CPUs == 0 {
			continue
		}
		if refusal := t.assign(uid, r, lent); refusal != nil {
			return refusal
		}
		lent = lent.Minus(t.own[uid][r.Container])
	}
	return nil
}

// lent returns what the former pods have that the pod does not have yet.
func (t *Table) lent(uid string, former []string) Set {
	var all Set
	for _, other := range former {
		for _, own := range t.own[other] {
			all = all.Or(own)
		}
	}
	for _, own := range t.own[uid] {
		all = all.Minus(own)
	}
	return all
}

// assign gives one container its CPUs.
func (t *Table) assign(uid string, r Request, lent Set) *Refusal {
	if t.of != uid {
		t.of, t.reuse = uid, nil
	}
	own, has := t.own[uid][r.Container]
	if refusal := t.checkCores(r.CPUs, lent, has); refusal != nil {
		return refusal
	}
	if !has {
		var err error
		own, err = t.choose(r.CPUs, lent)
		if err != nil {
			return &Refusal{ReasonShortage, fmt.Sprintf("Allocate failed due to %v, which is unexpected", err)}
		}
		t.set(uid, r.Container, own)
	}
	if r.Init {
		t.reuse = t.reuse.Or(own)
	} else {
		t.reuse = t.reuse.Minus(own)
	}
	return nil
}

// choose chooses the CPUs of a container: first from those that are lent, so that both pods together
// have no more than the larger of the two, then from the others.
func (t *Table) choose(n int, lent Set) (Set, error) {
	all := t.shared.Minus(t.policy.reserved).Or(t.reuse).Or(lent)
	if n > len(all) {
		return nil, shortage{n, len(all)}
	}
	first := t.whole(lent)
	own, err := take(t.policy.m, t.policy.o, first, min(n, len(first)))
	if err != nil {
		return nil, err
	}
	rest, err := take(t.policy.m, t.policy.o, all.Minus(own), n-len(own))
	return own.Or(rest), err
}

// whole returns the CPUs of a set, with full-pcpus-only those of cores that are all in the set.
func (t *Table) whole(s Set) Set {
	if !t.policy.o.fullCores {
		return s
	}
	m := t.policy.m
	return s.Minus(m.cores(m.All().Minus(s)))
}

func (t *Table) set(uid, container string, own Set) {
	if t.own[uid] == nil {
		t.own[uid] = map[string]Set{}
	}
	t.own[uid][container] = own
	t.shared = t.shared.Minus(own)
}

// checkCores refuses a request that would share a core, with full-pcpus-only. As in a kubelet it
// does not count what an init container of the same pod has.
func (t *Table) checkCores(n int, lent Set, has bool) *Refusal {
	per, free := t.policy.m.per(core), len(t.shared.Or(lent).Minus(t.policy.whole))
	switch {
	case !t.policy.o.fullCores:
		return nil
	case n%per != 0:
		return &Refusal{ReasonAlignment, fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, per)}
	case !has && n > free:
		return &Refusal{ReasonAlignment, fmt.Sprintf(
			"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d", free, n, per)}
	}
	return nil
}

// Keep frees what containers have that are not of an active pod.
func (t *Table) Keep(isActive func(uid, container string) bool) {
	for _, uid := range slices.Sorted(maps.Keys(t.own)) {
		for _, container := range slices.Sorted(maps.Keys(t.own[uid])) {
			if !isActive(uid, container) {
				t.free(uid, container)
			}
		}
	}
}

// free frees what a container has, but for what others have, too: siblings that reuse it, or a pod
// that it was lent to.
func (t *Table) free(uid, container string) {
	own := t.own[uid][container]
	delete(t.own[uid], container)
	if len(t.own[uid]) == 0 {
		delete(t.own, uid)
	}
	for _, all := range t.own {
		for _, other := range all {
			own = own.Minus(other)
		}
	}
	t.shared = t.shared.Or(own)
}

// On returns the CPUs on which a container must run; an empty set is no restriction. With
// strict-cpu-reservation no CPU may be left to share: then these are the reserved ones. A kubelet does
// not restrict such a container, which so runs on those that others have for themselves.
func (t *Table) On(uid, container string) Set {
	set, isOwn := t.Of(uid, container)
	if !isOwn && len(set) == 0 {
		return t.policy.reserved
	}
	return set
}

// Of returns the CPUs that a container has, and whether they are its own or those that are shared.
func (t *Table) Of(uid, container string) (_ Set, isOwn bool) {
	if own, has := t.own[uid][container]; has {
		return own, true
	}
	return t.shared, false
}

// Pools returns how many CPUs containers share, without those that are reserved, and how many are
// their own.
func (t *Table) Pools() (shared, own int) {
	return len(t.shared.Minus(t.policy.reserved)), len(t.policy.usable().Minus(t.shared))
}
