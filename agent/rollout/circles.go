package rollout

import (
	"slices"

	"monopod/manifests"
)

// Circles returns, for each pod that directly or indirectly starts after itself, the shortest such
// circle, with the pod at both ends. after maps each pod to those that it starts after.
func Circles(after map[manifests.Key][]manifests.Key) map[manifests.Key][]manifests.Key {
	circles := map[manifests.Key][]manifests.Key{}
	for key := range circling(after) {
		circle := circleOf(key, after)
		if circle != nil {
			circles[key] = circle
		}
	}
	return circles
}

// circling returns the pods that may be on a circle: those that remain after repeatedly removing
// each pod that starts after no remaining pod.
func circling(after map[manifests.Key][]manifests.Key) map[manifests.Key]bool {
	waits := make(map[manifests.Key]int, len(after)) // the number of remaining pods that it starts after
	of := map[manifests.Key][]manifests.Key{}
	var free []manifests.Key
	for key, others := range after {
		for _, other := range others {
			if after[other] != nil {
				waits[key]++
				of[other] = append(of[other], key)
			}
		}
		if waits[key] == 0 {
			free = append(free, key)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, key := range of[free[0]] {
			waits[key]--
			if waits[key] == 0 {
				free = append(free, key)
			}
		}
	}
	left := map[manifests.Key]bool{}
	for key, n := range waits {
		if n > 0 {
			left[key] = true
		}
	}
	return left
}

// circleOf returns the shortest circle on which a pod starts after itself; nil: there is none.
func circleOf(key manifests.Key, after map[manifests.Key][]manifests.Key) []manifests.Key {
	from := map[manifests.Key]manifests.Key{} // the pod from which each was first reached
	for next := []manifests.Key{key}; len(next) > 0; next = next[1:] {
		for _, other := range after[next[0]] {
			_, seen := from[other]
			if !seen {
				from[other] = next[0]
				next = append(next, other)
			}
		}
	}
	at, there := from[key]
	if !there {
		return nil
	}
	circle := []manifests.Key{key, at}
	for ; at != key; circle = append(circle, at) {
		at = from[at]
	}
	slices.Reverse(circle)
	return circle
}
