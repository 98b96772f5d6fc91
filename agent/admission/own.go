package admission

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cpus"
	"monopod/agent/devices"
	"monopod/agent/message"
	"monopod/agent/pinning"
	"monopod/manifests"
)

// ownHolder is the part of an entry that is about CPUs and devices: the uids of the versions of the
// name that may have some of their own, and the name itself, under which those of a version are kept
// that may be restored.
type ownHolder []string

// beside returns all but one.
func (h ownHolder) beside(one string) ownHolder {
	return slices.DeleteFunc(slices.Clone(h), func(uid string) bool { return uid == one })
}

// with returns all and one.
func (h ownHolder) with(one string) ownHolder { return append(h.beside(one), one) }

// Assign makes the keepers assign CPUs and devices to pods. The pods that previous agents accepted
// keep theirs, and get what they do not have yet; told is called for those that cannot have it, and
// run without.
func (s *Table) Assign(c *pinning.Keeper, d *devices.Keeper, checkpoints []*checkpoint.Checkpoint, told func(*manifests.Pod, *Rejection)) {
	if c == nil && !d.Counts() {
		return
	}
	s.cpus, s.devices = c, d
	s.hold(checkpoints)
	var all []*manifests.Pod
	for _, at := range s.entries {
		if at.pod != nil && !at.over {
			all = append(all, at.pod)
		}
	}
	slices.SortFunc(all, func(a, b *manifests.Pod) int { return arrivalOf(a).compare(arrivalOf(b)) })
	for _, p := range all {
		r := s.takeOwn(p)
		if r != nil {
			told(p, r)
		}
	}
	for _, p := range all {
		s.reserveOwn(s.entries[p.Key()])
	}
	leaving := d.Leaving()
	for key, at := range s.entries {
		if leaving[key.String()] {
			at.leaving = append(at.leaving, claims{}) // until Update tells that it is gone
		}
	}
}

// hold records which versions may have CPUs and devices of their own, and frees those of all others.
func (s *Table) hold(checkpoints []*checkpoint.Checkpoint) {
	known, byPod := map[string]bool{}, map[string][]string{}
	for _, c := range checkpoints {
		at := s.entry(c.Key())
		at.holder = at.holder.with(string(c.Pod.UID))
	}
	for key, at := range s.entries {
		if at.former != nil {
			at.holder = at.holder.with(key.String())
		}
		for _, version := range at.holder {
			known[version] = true
		}
		byPod[key.String()] = at.holder
	}
	s.cpus.Keep(known)
	s.devices.KeepAll(byPod)
}

// reserveOwn keeps the CPUs and devices of a version that may be restored. If there are too few, that
// version waits for them once it is restored.
func (s *Table) reserveOwn(at *entry) {
	if at.former == nil {
		return
	}
	name := at.former.Key().String()
	hasDevices := s.devices.Take(at.former.Pod, name) == nil
	if s.cpus.Reserve(name, at.former.Pod, at.holder.beside(name)) || hasDevices && s.devices.Counts() {
		at.holder = at.holder.with(name)
	}
}

// unreserveOwn frees them.
func (s *Table) unreserveOwn(key manifests.Key, at *entry) {
	at.holder = at.holder.beside(key.String())
	s.freeOwn(key, at.holder, []string{key.String()})
}

// freeOwn frees what the versions of a name have that are gone, and those do not that stay.
func (s *Table) freeOwn(key manifests.Key, stay, gone ownHolder) {
	freedCPUs, freedDevices := s.cpus.Free(gone), s.devices.Keep(key.String(), stay)
	s.freed = freedCPUs || freedDevices || s.freed
}

// admitOwn refuses a pod that cannot have the CPUs, or the devices, that it requests for itself.
func (s *Table) admitOwn(p *manifests.Pod) *Rejection {
	refused := refusedCPUs(s.cpus.Room(p.Pod, s.holderOf(p.Key()).beside(string(p.UID))))
	if refused != nil {
		return refused
	}
	return refusedDevices(s.devices.Room(p.Pod))
}

// admitMoved refuses one of several pods that cannot have its CPUs and devices after all of them have
// given up those that they have, and the others have theirs.
func (s *Table) admitMoved(p *manifests.Pod, moving []*mover) *Rejection {
	if s.cpus == nil && !s.devices.Counts() {
		return nil
	}
	var all []*v1.Pod
	var former, names []string
	for _, m := range moving {
		former, names = append(former, s.holderOf(m.key)...), append(names, m.key.String())
		if m.pod != p {
			all = append(all, m.pod.Pod)
		}
	}
	refused := refusedCPUs(s.cpus.RoomTogether(append(all, p.Pod), former))
	if refused != nil {
		return refused
	}
	return refusedDevices(s.devices.RoomTogether(append(all, p.Pod), names))
}

// takeOwn assigns the pod its CPUs and its devices.
func (s *Table) takeOwn(p *manifests.Pod) *Rejection {
	if s.cpus == nil && !s.devices.Counts() {
		return nil
	}
	at := s.entry(p.Key())
	refused := refusedDevices(s.devices.Take(p.Pod, string(p.UID)))
	if refused != nil {
		return refused
	}
	refused = refusedCPUs(s.cpus.Take(p.Pod, at.holder.beside(string(p.UID))))
	if refused != nil {
		s.devices.Keep(p.Key().String(), at.holder)
		return refused
	}
	at.holder = at.holder.with(string(p.UID))
	return nil
}

func (s *Table) holderOf(key manifests.Key) ownHolder {
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

func refusedDevices(r *devices.Refusal) *Rejection {
	if r == nil {
		return nil
	}
	return &Rejection{r.Reason, r.Message}
}

// clearOwn frees the CPUs and devices of all versions of a name but the admitted one, unless that
// has ended, and but those that are reserved.
func (s *Table) clearOwn(key manifests.Key, at *entry) {
	var stays ownHolder
	gone := at.holder
	if at.pod != nil && !at.over {
		stays, gone = stays.with(string(at.pod.UID)), gone.beside(string(at.pod.UID))
	}
	if at.former != nil {
		stays, gone = stays.with(key.String()), gone.beside(key.String())
	}
	at.holder = stays
	s.freeOwn(key, stays, gone)
	s.freed = s.devices.Clear(key.String()) || s.freed
}
