package cpus

import (
	"cmp"
	"fmt"
	"slices"
)

// shortage is the error of a request for more CPUs than there are.
type shortage struct{ requested, available int }

func (s shortage) Error() string {
	return fmt.Sprintf("not enough cpus available to satisfy request: requested=%d, available=%d", s.requested, s.available)
}

// take chooses n of the available CPUs.
func take(m *Machine, o options, available Set, n int) (Set, error) {
	if n < 1 {
		return nil, nil
	}
	if n > len(available) {
		return nil, shortage{n, len(available)}
	}
	if o.spreadNUMA {
		if s := newSpread(m, o, available, n); s != nil {
			if found, ok := s.take(); ok {
				return found, nil
			}
		}
		o.uncore = false
	}
	return pack(m, o, available, n), nil
}

// pack chooses n of at least n available CPUs, close to each other: whole large units first, the
// fullest that still have room before others, single CPUs last.
func pack(m *Machine, o options, available Set, n int) Set {
	p := &picker{m: m, need: n}
	for _, c := range m.cpus {
		if available.Has(c.ID) {
			p.free = append(p.free, c)
		}
	}
	large := []level{socket, numa}
	if m.numaFirst() {
		large = []level{numa, socket}
	}
	for _, l := range large {
		p.takeWhole(l, p.order(l))
	}
	if o.uncore {
		p.takeUncores()
	}
	if !o.spreadCores {
		p.takeWhole(core, p.order(core))
	}
	p.takeSingles(o.spreadCores)
	return NewSet(p.got...)
}

// picker is one run of pack.
type picker struct {
	m    *Machine
	free []CPU // ascending
	need int
	got  []int
}

// order returns the units of a level of which CPUs are free. Within an outer unit, those with the
// fewest free CPUs come first, then lower numbers; outer units are in their order.
func (p *picker) order(l level) []int {
	outer := l
	switch {
	case l == core && p.m.numaFirst():
		outer = socket
	case l == core, l == uncore, l == socket && p.m.numaFirst():
		outer = numa
	case l == numa && !p.m.numaFirst():
		outer = socket
	}
	if outer == l {
		return p.sorted(l, func(CPU) bool { return true })
	}
	var all []int
	for _, id := range p.order(outer) {
		all = append(all, p.sorted(l, func(c CPU) bool { return c.unit(outer) == id })...)
	}
	return all
}

// sorted returns the units of the free CPUs that are among, those with fewer free CPUs first.
func (p *picker) sorted(l level, among func(CPU) bool) []int {
	count, all := map[int]int{}, []int{}
	for _, c := range p.free {
		count[c.unit(l)]++
		if among(c) {
			all = append(all, c.unit(l))
		}
	}
	all = NewSet(all...)
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(count[a], count[b]) })
	return all
}

// freeIn returns the free CPUs of a unit.
func (p *picker) freeIn(l level, id int) Set {
	var all Set
	for _, c := range p.free {
		if c.unit(l) == id {
			all = append(all, c.ID)
		}
	}
	return all
}

// isWhole reports whether all CPUs of a unit are free. A socket or core counts only if it has as
// many CPUs as the others, as in a kubelet. A kubelet does not look whether all of a larger one are
// free, and so gives CPUs away twice: here it must be all, too.
func (p *picker) isWhole(l level, id int) bool {
	free, all := len(p.freeIn(l, id)), len(p.m.in(l, id))
	if l == socket || l == core {
		return free == all && free == p.m.per(l)
	}
	return free == all
}

// takeWhole takes, in this order, the units that are whole and not larger than what is needed.
func (p *picker) takeWhole(l level, units []int) {
	for _, id := range units {
		if all := p.freeIn(l, id); len(all) <= p.need && p.isWhole(l, id) {
			p.take(all)
		}
	}
}

// takeUncores takes whole shared caches, and then the rest from one cache if one has it.
func (p *picker) takeUncores() {
	for _, id := range p.order(uncore) {
		if p.need >= p.m.per(uncore) {
			p.takeWhole(uncore, p.order(uncore))
		}
		if rest := p.restOf(id); p.need > 0 && len(rest) == p.need {
			p.take(rest)
		}
	}
}

// restOf returns the CPUs of as many cores of a shared cache as are needed.
func (p *picker) restOf(cache int) Set {
	per := max(p.m.per(core), 1)
	cores := map[int]bool{}
	var rest Set
	all := NewSet(p.sorted(core, func(c CPU) bool { return c.Uncore == cache })...)
	for _, id := range all[:min(len(all), (p.need+per-1)/per)] {
		cores[id] = true
	}
	for _, c := range p.free {
		if cores[c.Core] {
			rest = append(rest, c.ID)
		}
	}
	if p.need%2 == 1 && per > 1 && len(rest) > p.need {
		rest = rest[:len(rest)-1]
	}
	return rest
}

// takeSingles takes single CPUs: of the fullest cores, or by their number in each socket.
func (p *picker) takeSingles(spread bool) {
	l := core
	if spread {
		l = socket
	}
	for _, id := range p.order(l) {
		all := p.freeIn(l, id)
		p.take(all[:min(len(all), p.need)])
	}
}

func (p *picker) take(s Set) {
	p.got = append(p.got, s...)
	p.need -= len(s)
	p.free = slices.DeleteFunc(p.free, func(c CPU) bool { return s.Has(c.ID) })
}
