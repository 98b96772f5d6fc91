package cpus

import (
	"math"
	"slices"
)

// spread is one run of the choice with distribute-cpus-across-numa: the same number of CPUs of as
// few NUMA nodes as can have them, so that all nodes are left as evenly used as possible.
type spread struct {
	m     *Machine
	o     options
	free  Set
	n     int
	group int         // CPUs are taken in groups of this size
	order []int       // the NUMA nodes with free CPUs
	count map[int]int // their free CPUs
}

// choice is a distribution over NUMA nodes.
type choice struct {
	nodes []int
	each  int   // CPUs of each node
	more  []int // the nodes that give the remainder, group by group
	score float64
}

// newSpread returns nil if the request is not for whole groups.
func newSpread(m *Machine, o options, free Set, n int) *spread {
	s := &spread{m: m, o: options{fullCores: o.fullCores}, free: free, n: n, group: 1, count: map[int]int{}}
	if o.fullCores {
		s.group = max(m.per(core), 1)
	}
	if n%s.group != 0 {
		return nil
	}
	p := &picker{m: m}
	for _, c := range m.cpus {
		if free.Has(c.ID) {
			p.free = append(p.free, c)
			s.count[c.NUMA]++
		}
	}
	s.order = p.order(numa)
	return s
}

// take returns false if no distribution is possible.
func (s *spread) take() (Set, bool) {
	groups := up(len(s.m.cpus), s.group)
	perNode := up(groups, len(s.m.units(numa)))
	for k := up(up(s.n, s.group), perNode); k <= min(up(s.n, s.group), len(s.order)); k++ {
		if best := s.best(k); best != nil {
			return s.carryOut(best), true
		}
	}
	return nil, false
}

// best returns the best distribution over k nodes; nil: there is none.
func (s *spread) best(k int) *choice {
	var best *choice
	combinations(s.order, k, func(nodes []int) bool {
		if c := s.consider(nodes); c != nil && (best == nil || c.score < best.score) {
			best = c
		}
		return best == nil || best.score > 0
	})
	return best
}

// consider returns the distribution over these nodes; nil: they do not have enough.
func (s *spread) consider(nodes []int) *choice {
	c := &choice{nodes: slices.Clone(nodes), each: s.n / len(nodes) / s.group * s.group}
	whole := 0
	for _, id := range nodes {
		if s.count[id] < c.each {
			return nil
		}
		whole += s.count[id] / s.group * s.group
	}
	if whole < s.n {
		return nil
	}
	after := map[int]int{}
	for _, id := range s.order {
		after[id] = s.count[id]
	}
	for _, id := range nodes {
		after[id] -= c.each
	}
	rest := s.n - c.each*len(nodes)
	if rest == 0 {
		c.score = s.deviation(after)
		return c
	}
	return s.withRest(c, after, rest)
}

// withRest chooses the nodes that give the remainder.
func (s *spread) withRest(c *choice, after map[int]int, rest int) *choice {
	able := slices.DeleteFunc(slices.Clone(c.nodes), func(id int) bool { return after[id] < s.group })
	c.score = math.Inf(1)
	for size := len(able); size > 0; size-- {
		combinations(able, size, func(nodes []int) bool {
			if left, ok := s.handOut(after, nodes, rest); ok {
				if score := s.deviation(left); score < c.score {
					c.score, c.more = score, slices.Clone(nodes)
				}
			}
			return true
		})
	}
	if c.more == nil {
		return nil
	}
	return c
}

// handOut returns what is left after the nodes gave the remainder; false: they do not have it.
func (s *spread) handOut(after map[int]int, nodes []int, rest int) (map[int]int, bool) {
	left := map[int]int{}
	for id, count := range after {
		left[id] = count
	}
	ok := s.inTurn(nodes, rest, func(id int) bool {
		if left[id] < s.group {
			return false
		}
		left[id] -= s.group
		return true
	})
	return left, ok
}

// inTurn asks the nodes in turn for a group each, until the remainder is given. It returns false if
// no node gives any more.
func (s *spread) inTurn(nodes []int, rest int, give func(id int) bool) bool {
	for rest > 0 {
		before := rest
		for _, id := range nodes {
			if rest > 0 && give(id) {
				rest -= s.group
			}
		}
		if rest == before {
			return false
		}
	}
	return true
}

// carryOut takes the CPUs of a distribution.
func (s *spread) carryOut(c *choice) Set {
	free, got := s.free, Set(nil)
	takeFrom := func(id, n int) bool {
		own := free.And(s.m.in(numa, id))
		if len(own) < n {
			return false
		}
		taken := pack(s.m, s.o, own, n)
		free, got = free.Minus(taken), got.Or(taken)
		return true
	}
	for _, id := range c.nodes {
		takeFrom(id, c.each)
	}
	s.inTurn(c.more, s.n-len(got), func(id int) bool { return takeFrom(id, s.group) })
	return got
}

// deviation returns the standard deviation of the counts, rounded as by a kubelet.
func (s *spread) deviation(counts map[int]int) float64 {
	sum := 0.0
	for _, id := range s.order {
		sum += float64(counts[id])
	}
	mean := round(sum / float64(len(s.order)))
	squares := 0.0
	for _, id := range s.order {
		squares += (float64(counts[id]) - mean) * (float64(counts[id]) - mean)
	}
	return round(math.Sqrt(squares / float64(len(s.order))))
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

// up divides and rounds up.
func up(a, b int) int { return (a + b - 1) / b }

// combinations calls use with each choice of k of the list, in lexicographic order, until use
// returns false. The slice is only lent.
func combinations(list []int, k int, use func([]int) bool) {
	var extend func(chosen []int, from int) bool
	extend = func(chosen []int, from int) bool {
		if len(chosen) == k {
			return use(chosen)
		}
		for i := from; i <= len(list)-(k-len(chosen)); i++ {
			if !extend(append(chosen, list[i]), i+1) {
				return false
			}
		}
		return true
	}
	extend(make([]int, 0, k), 0)
}
