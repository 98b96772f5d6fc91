package stats

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
)

const (
	// TrendPoints are the points of a trend, PointEvery apart: an hour.
	TrendPoints = 60
	PointEvery  = time.Minute
	// presentFor is how long a reading of the present use is valid: readers soon after each other
	// share one.
	presentFor = 2 * time.Second
)

// Trends keeps the trend of each pod that has a cgroup. Any goroutine may use it.
type Trends struct {
	config Config

	mu      sync.Mutex // guards what follows
	pods    map[string]*trend
	pointAt time.Time // when the last points were added
	readAt  time.Time // when the present use was last read
}

// trend is what is kept of one pod, in less than a kilobyte.
type trend struct {
	points  [TrendPoints]status.Point
	n, next uint8   // how many points there are; where the next one goes
	former  reading // at the last point, of which the next one is computed; zero: none
	last    reading // the latest
	cpu     *uint64 // the present rate
	memory  *uint64
}

// NewTrends returns trends without a point. Of c it uses Host, Pods and Cgroup.
func NewTrends(c Config) *Trends {
	c.Host = c.Host.complete()
	return &Trends{config: c, pods: map[string]*trend{}}
}

// Sample adds a point to each trend if the last ones are a minute old. It is for those who wake for
// another reason: nothing is lost but a point if nobody calls it.
func (t *Trends) Sample() {
	const early = time.Second // for a caller whose ticks are not exact
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.pointAt.IsZero() && now.Sub(t.pointAt) < PointEvery-early {
		return
	}
	t.pointAt = now
	t.read(now)
	for _, one := range t.pods {
		one.add()
	}
}

// Of returns the trends by uid.
func (t *Trends) Of() map[string]status.Trend {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.readAt) >= presentFor {
		t.read(now)
	}
	all := make(map[string]status.Trend, len(t.pods))
	for uid, one := range t.pods {
		all[uid] = status.Trend{UID: uid, CPU: one.cpu, Memory: one.memory, Points: one.list()}
	}
	return all
}

// read reads the present use of all pods, and drops the trends of those that are gone. t.mu is held.
func (t *Trends) read(now time.Time) {
	t.readAt = now
	h := t.config.Host.hierarchy()
	former := t.pods
	t.pods = make(map[string]*trend, len(former))
	for _, pod := range t.config.Pods() {
		if one := t.readPod(h, pod, former[string(pod.UID)]); one != nil {
			t.pods[string(pod.UID)] = one
		}
	}
}

// readPod reads the use of a pod into its trend, nil if it has no cgroup.
func (t *Trends) readPod(h hierarchy, pod *v1.Pod, one *trend) *trend {
	path := t.config.Cgroup(pod)
	if path == "" {
		return nil
	}
	cpu, memory := h.glance(path)
	if cpu == nil {
		return nil
	}
	if one == nil {
		one = &trend{}
	}
	at := reading{time.Now(), *cpu}
	if rate := rateOf(one.last, at); rate != nil {
		one.cpu = rate
	}
	one.last, one.memory = at, memory
	return one
}

// rateOf returns the rate between two readings in billionths of a core, nil if there are none.
func rateOf(from, to reading) *uint64 {
	passed := to.at.Sub(from.at)
	if from.at.IsZero() || passed < rateMin || to.cpu < from.cpu {
		return nil
	}
	return known(uint64(float64(to.cpu-from.cpu) / passed.Seconds()))
}

// add adds a point, if there is a rate since the one before.
func (o *trend) add() {
	rate := rateOf(o.former, o.last)
	o.former = o.last
	if rate == nil || o.memory == nil {
		return
	}
	o.points[o.next] = status.Point{CPU: uint32(*rate / 1e6), Memory: uint32(*o.memory >> 10)}
	o.next = (o.next + 1) % TrendPoints
	o.n = min(o.n+1, TrendPoints)
}

// list returns the points, the oldest first.
func (o *trend) list() []status.Point {
	all := make([]status.Point, 0, o.n)
	for k := range o.n {
		all = append(all, o.points[(o.next+TrendPoints-o.n+k)%TrendPoints])
	}
	return all
}
