package cpus

import (
	"cmp"
	"slices"
)

// CPU is a logical CPU that is online, with the units that it is part of.
type CPU struct {
	ID     int
	Core   int // the lowest number of the core's online CPUs
	Socket int
	NUMA   int
	Uncore int // the cache that some cores share; the socket if there is none
}

// level is a kind of unit.
type level int

const (
	core level = iota
	uncore
	numa
	socket
)

// unit returns the unit of this level that the CPU is part of.
func (c CPU) unit(l level) int {
	switch l {
	case core:
		return c.Core
	case uncore:
		return c.Uncore
	case numa:
		return c.NUMA
	default:
		return c.Socket
	}
}

// Machine is the topology of the CPUs that are online.
type Machine struct {
	cpus    []CPU // ascending
	sockets int
}

// NewMachine returns the machine of these CPUs. sockets is the number of its sockets; 0: those of
// the CPUs.
func NewMachine(all []CPU, sockets int) *Machine {
	m := &Machine{cpus: slices.Clone(all), sockets: sockets}
	slices.SortFunc(m.cpus, func(a, b CPU) int { return cmp.Compare(a.ID, b.ID) })
	if sockets == 0 {
		m.sockets = len(m.units(socket))
	}
	return m
}

// All returns the CPUs that are online.
func (m *Machine) All() Set {
	var all Set
	for _, c := range m.cpus {
		all = append(all, c.ID)
	}
	return all
}

// in returns the CPUs of a unit.
func (m *Machine) in(l level, id int) Set {
	var all Set
	for _, c := range m.cpus {
		if c.unit(l) == id {
			all = append(all, c.ID)
		}
	}
	return all
}

// units returns all units of a level.
func (m *Machine) units(l level) Set {
	var all []int
	for _, c := range m.cpus {
		all = append(all, c.unit(l))
	}
	return NewSet(all...)
}

// per returns how many CPUs a unit of this level has. Where units differ it is rounded down, as in
// a kubelet.
func (m *Machine) per(l level) int {
	count := len(m.units(l))
	if l == socket {
		count = m.sockets
	}
	if count == 0 {
		return 0
	}
	return len(m.cpus) / count
}

// numaFirst reports whether NUMA nodes are at least as large as sockets.
func (m *Machine) numaFirst() bool { return m.sockets >= len(m.units(numa)) }

// cores returns all CPUs of the cores of which the set has a CPU.
func (m *Machine) cores(s Set) Set {
	touched := map[int]bool{}
	for _, c := range m.cpus {
		if s.Has(c.ID) {
			touched[c.Core] = true
		}
	}
	var all Set
	for _, c := range m.cpus {
		if touched[c.Core] {
			all = append(all, c.ID)
		}
	}
	return all
}
