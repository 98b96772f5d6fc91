package admission

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cpus"
	"monopod/agent/message"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// cpuHolder is the part of an entry that is about CPUs: the uids of the versions of the name that
// may have CPUs of their own, and the name itself, under which those of a version are kept that may
// be restored.
type cpuHolder []string

// beside returns all but one.
func (h cpuHolder) beside(one string) cpuHolder {
	return slices.DeleteFunc(slices.Clone(h), func(uid string) bool { return uid == one })
}

// with returns all and one.
func (h cpuHolder) with(one string) cpuHolder { return append(h.beside(one), one) }

// AssignCPUs makes k assign CPUs to pods. The pods that previous agents accepted keep theirs, and
// get what they do not have yet; told is called for those that cannot have it, and share CPUs.
func (s *Table) AssignCPUs(k *pinning.Keeper, checkpoints []*checkpoint.Checkpoint, told func(*manifests.Pod, *Rejection)) {
	s.cpus = k
	known := map[string]bool{}
	for _, c := range checkpoints {
		at := s.entry(c.Key())
		at.holder = at.holder.with(string(c.Pod.UID))
		known[string(c.Pod.UID)] = true
	}
	for key, at := range s.entries {
		if at.former != nil {
			at.holder = at.holder.with(key.String())
			known[key.String()] = true
		}
	}
	k.Keep(known)
	var all []*manifests.Pod
	for _, at := range s.entries {
		if at.pod != nil && !at.over {
			all = append(all, at.pod)
		}
	}
	slices.SortFunc(all, func(a, b *manifests.Pod) int { return arrivalOf(a).compare(arrivalOf(b)) })
	for _, p := range all {
		r := s.takeCPUs(p)
		if r != nil {
			told(p, r)
		}
	}
	for _, p := range all {
		s.reserveCPUs(s.entries[p.Key()])
	}
}

// reserveCPUs keeps the CPUs of a version that may be restored. If there are too few, that version
// waits for them once it is restored.
func (s *Table) reserveCPUs(at *entry) {
	if at.former == nil {
		return
	}
	name := at.former.Key().String()
	if s.cpus.Reserve(name, at.former.Pod, at.holder.beside(name)) {
		at.holder = at.holder.with(name)
	}
}

// unreserveCPUs frees them.
func (s *Table) unreserveCPUs(key manifests.Key, at *entry) {
	at.holder = at.holder.beside(key.String())
	s.freeCPUs([]string{key.String()})
}

func (s *Table) freeCPUs(uids []string) { s.freed = s.cpus.Free(uids) || s.freed }

// admitCPUs refuses a pod that cannot have the CPUs that it requests for itself.
func (s *Table) admitCPUs(p *manifests.Pod) *Rejection {
	return refusedCPUs(s.cpus.Room(p.Pod, s.holderOf(p.Key()).beside(string(p.UID))))
}

// admitMoved refuses one of several pods that cannot have its CPUs after all of them have given up
// those that they have, and the others have theirs.
func (s *Table) admitMoved(p *manifests.Pod, moving []*mover) *Rejection {
	if s.cpus == nil {
		return nil
	}
	var all []*v1.Pod
	var former []string
	for _, m := range moving {
		former = append(former, s.holderOf(m.key)...)
		if m.pod != p {
			all = append(all, m.pod.Pod)
		}
	}
	return refusedCPUs(s.cpus.RoomTogether(append(all, p.Pod), former))
}

// takeCPUs assigns the pod its CPUs.
func (s *Table) takeCPUs(p *manifests.Pod) *Rejection {
	if s.cpus == nil {
		return nil
	}
	at := s.entry(p.Key())
	refused := refusedCPUs(s.cpus.Take(p.Pod, at.holder.beside(string(p.UID))))
	if refused == nil {
		at.holder = at.holder.with(string(p.UID))
	}
	return refused
}

func (s *Table) holderOf(key manifests.Key) cpuHolder {
	if at := s.entries[key]; at != nil {
		return at.holder
	}
	return nil
}

// LacksCPUs reports whether the pod cannot have the CPUs that it requests for itself.
func (r Rejection) LacksCPUs() bool {
	return r.Reason == cpus.ReasonShortage || r.Reason == cpus.ReasonAlignment
}

func refusedCPUs(r *cpus.Refusal) *Rejection {
	if r == nil {
		return nil
	}
	return &Rejection{r.Reason, message.Name(r.Message).Text()} // numbers and fixed words
}

// clearCPUs frees the CPUs of all versions of a name but the admitted one, unless that has ended, and
// but those that are reserved.
func (s *Table) clearCPUs(key manifests.Key, at *entry) {
	var stays cpuHolder
	gone := at.holder
	if at.pod != nil && !at.over {
		stays, gone = stays.with(string(at.pod.UID)), gone.beside(string(at.pod.UID))
	}
	if at.former != nil {
		stays, gone = stays.with(key.String()), gone.beside(key.String())
	}
	at.holder = stays
	s.freeCPUs(gone)
}
