package admission

import (
	"slices"

	"monopod/agent/checkpoint"
	"monopod/agent/cpus"
	"monopod/agent/message"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// cpuHolder is the part of an entry that is about CPUs: the uids of the versions of the name that
// may have CPUs of their own.
type cpuHolder []string

// beside returns the uids that are not of p.
func (h cpuHolder) beside(p *manifests.Pod) []string {
	return slices.DeleteFunc(slices.Clone(h), func(uid string) bool { return uid == string(p.UID) })
}

// with returns the uids and that of p.
func (h cpuHolder) with(p *manifests.Pod) cpuHolder { return append(h.beside(p), string(p.UID)) }

// AssignCPUs makes k assign CPUs to pods. The pods that previous agents accepted keep theirs, and
// get what they do not have yet; told is called for those that cannot have it, and share CPUs.
func (s *Table) AssignCPUs(k *pinning.Keeper, checkpoints []*checkpoint.Checkpoint, told func(*manifests.Pod, *Rejection)) {
	s.cpus = k
	known := map[string]bool{}
	for _, c := range checkpoints {
		at := s.entry(c.Key())
		at.holder = at.holder.with(c.Version())
		known[string(c.Pod.UID)] = true
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
}

// admitCPUs refuses a pod that cannot have the CPUs that it requests for itself.
func (s *Table) admitCPUs(p *manifests.Pod) *Rejection {
	return refusedCPUs(s.cpus.Room(p.Pod, s.holderOf(p).beside(p)))
}

// takeCPUs assigns the pod its CPUs.
func (s *Table) takeCPUs(p *manifests.Pod) *Rejection {
	if s.cpus == nil {
		return nil
	}
	at := s.entry(p.Key())
	refused := refusedCPUs(s.cpus.Take(p.Pod, at.holder.beside(p)))
	if refused == nil {
		at.holder = at.holder.with(p)
	}
	return refused
}

func (s *Table) holderOf(p *manifests.Pod) cpuHolder {
	if at := s.entries[p.Key()]; at != nil {
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

// clearCPUs frees the CPUs of all versions of a name but the admitted one, unless that has ended.
func (s *Table) clearCPUs(at *entry) {
	var stays cpuHolder
	gone := at.holder
	if at.pod != nil && !at.over {
		stays, gone = cpuHolder{string(at.pod.UID)}, at.holder.beside(at.pod)
	}
	at.holder = stays
	s.cpus.Free(gone)
}
