package shutdown

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// Critical is the priority from which on pods are critical (Kubernetes:
// SystemCriticalPriority), and the one of the class system-cluster-critical.
const Critical = 2_000_000_000

// Period is how long pods with this priority, or one above it that is below the next period's, may
// take to end. They also have what the periods before did not use: critical pods, whose period is
// empty unless it is set, would else be killed at once though there is time (as a kubelet does).
type Period struct {
	Priority int32
	Lasts    time.Duration
}

// Total is how long all periods last together.
func Total(all []Period) (sum time.Duration) {
	for _, p := range all {
		sum += p.Lasts
	}
	return sum
}

// TwoPeriods returns the periods of the pods that are not critical, and of the critical ones,
// which is a part of all.
func TwoPeriods(all, critical time.Duration) []Period {
	return []Period{{0, all - critical}, {Critical, critical}}
}

// PriorityOf returns the priority by which a pod stops. The kubelet uses only the number, which it
// does not derive from the class of a static pod: a pod that is critical only by its class would
// stop among the first.
func PriorityOf(p *v1.Pod) int32 {
	switch {
	case p.Spec.Priority != nil:
		return *p.Spec.Priority
	case p.Spec.PriorityClassName == "system-node-critical":
		return Critical + 1000
	case p.Spec.PriorityClassName == "system-cluster-critical":
		return Critical
	}
	return 0
}

// Pod is a pod that is to stop.
type Pod struct {
	Key      manifests.Key
	Priority int32
	After    []manifests.Key // the pods that it starts after
}

// Waves returns the pods in the order in which they stop if nothing limits their time: critical
// pods last, and of each kind those that start after others first.
func Waves(pods []Pod) (all [][]manifests.Key) {
	for _, g := range groupsOf(pods, Default()) {
		all = append(all, g.waves...)
	}
	return all
}

// group is the pods of one period.
type group struct {
	until time.Duration     // since the shutdown began: the end of the period, if each one before took all of its time
	waves [][]manifests.Key // one after the other
}

// groupsOf returns the groups of pods in the order in which they stop: lower priorities first. A
// pod belongs to the last period of at most its priority, or to the first one (kubelet:
// groupByPriority). There are no empty groups: the next one has their time.
func groupsOf(pods []Pod, periods []Period) []group {
	periods = slices.SortedFunc(slices.Values(periods), func(a, b Period) int { return cmp.Compare(a.Priority, b.Priority) })
	members := make([][]Pod, len(periods))
	for _, p := range pods {
		at, exact := slices.BinarySearchFunc(periods, p.Priority, func(a Period, priority int32) int { return cmp.Compare(a.Priority, priority) })
		if !exact {
			at = max(at-1, 0)
		}
		members[at] = append(members[at], p)
	}
	var out []group
	var until time.Duration
	for k, all := range members {
		until += periods[k].Lasts
		if len(all) > 0 {
			out = append(out, group{until, wavesOf(all)})
		}
	}
	return out
}

// wavesOf returns the pods of one group in the order in which they stop: a pod once all that start
// after it have stopped. Pods that start after each other in a circle stop together, as the last
// ones.
func wavesOf(pods []Pod) (waves [][]manifests.Key) {
	left := map[manifests.Key]Pod{}
	for _, p := range pods {
		left[p.Key] = p
	}
	for len(left) > 0 {
		needed := map[manifests.Key]bool{}
		for _, p := range left {
			for _, other := range p.After {
				needed[other] = true
			}
		}
		var wave []manifests.Key
		for key := range left {
			if !needed[key] {
				wave = append(wave, key)
			}
		}
		if len(wave) == 0 { // a circle, and what it starts after
			for key := range left {
				wave = append(wave, key)
			}
		}
		for _, key := range wave {
			delete(left, key)
		}
		slices.SortFunc(wave, func(a, b manifests.Key) int { return cmp.Compare(a.String(), b.String()) })
		waves = append(waves, wave)
	}
	return waves
}
