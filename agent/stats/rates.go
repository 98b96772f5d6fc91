package stats

import (
	"context"
	"time"
)

const (
	// rateMin is the shortest time between two readings for a rate.
	rateMin = 400 * time.Millisecond
	// rateMax is the longest: a rate describes the present.
	rateMax = time.Minute
)

// rates are the last readings of the cpu time, by the keys of rated.
type rates map[string]reading

type reading struct {
	at  time.Time
	cpu uint64 // ns
}

// apply sets the rate of a use, and reports whether it has one now or cannot have one. In both
// cases the next rate is computed from this reading, unless it is too soon after the last.
func (r rates) apply(key string, u *use) bool {
	if u == nil || u.CPU == nil || key == "" {
		return true
	}
	last, ok := r[key]
	passed := u.Time.Sub(last.at)
	if ok && passed < rateMin && u.Nano != nil {
		return true
	}
	r[key] = reading{u.Time, *u.CPU}
	if !ok || passed < rateMin || passed > rateMax || *u.CPU < last.cpu {
		return u.Nano != nil
	}
	u.Nano = known(uint64(float64(*u.CPU-last.cpu) / passed.Seconds()))
	return true
}

// rated is a use that needs a rate, and the key of its readings.
type rated struct {
	key, path string // path of a cgroup that can be read again, "" if it cannot
	use       *use
}

func (s *sample) rated() []rated {
	all := []rated{{"node", "/", s.Node}}
	for _, n := range s.System {
		all = append(all, rated{n.Path, n.Path, n.use})
	}
	for _, p := range s.Pods {
		all = append(all, rated{"pod " + string(p.UID), p.Path, p.Use})
		for _, k := range p.Containers {
			all = append(all, rated{k.ID, k.Path, k.Use})
		}
	}
	return all
}

// rate sets the rates of a sample. What was not read within the last minute is read a second time.
func (c *Collector) rate(ctx context.Context, s *sample) error {
	h := c.config.Host.hierarchy()
	all := s.rated()
	old := c.rates
	c.rates = rates{} // drop the rates of missing cgroups
	var again []rated
	for _, u := range all {
		if last, ok := old[u.key]; ok {
			c.rates[u.key] = last
		}
		if !c.rates.apply(u.key, u.use) && u.path != "" {
			again = append(again, u)
		}
	}
	s.Rated = true
	if len(again) == 0 {
		return nil
	}
	select {
	case <-time.After(rateMin + 100*time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, u := range again {
		if u.key == "node" {
			now := c.config.Host.use()
			u.use.CPU, u.use.Time = now.CPU, now.Time
		} else {
			h.readCPU(u.path, u.use)
		}
		c.rates.apply(u.key, u.use)
	}
	return nil
}
