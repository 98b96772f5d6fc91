package admission

import (
	"slices"
	"strings"
	"time"

	"monopod/manifests"
)

// Turn is what the start order needs to know of a pod.
type Turn struct {
	After   []manifests.Key // the pods that it starts after; one that is not in the map does not exist
	Started bool            // it was let start before and is never held again
	Ready   bool
	Until   time.Time // then it starts although others are not ready; zero: never
}

// Decision is the result of Order for one pod.
type Decision struct {
	Held    bool
	Unready []manifests.Key // of the pods that it starts after
	Problem string          // why it may wait forever, in words; "": no reason
}

// Order decides which pods are held until others are ready. It is a pure function;
// only pods that start after others are in the result. name returns a pod's name as
// messages show it.
func Order(pods map[manifests.Key]Turn, now time.Time, name func(manifests.Key) string) map[manifests.Key]Decision {
	out := map[manifests.Key]Decision{}
	for key, t := range pods {
		if len(t.After) == 0 {
			continue
		}
		var v Decision
		var unknown []string
		for _, other := range t.After {
			if o, there := pods[other]; !there {
				unknown = append(unknown, name(other))
			} else if o.Ready {
				continue
			}
			v.Unready = append(v.Unready, other)
		}
		v.Held = !t.Started && len(v.Unready) > 0 && (t.Until.IsZero() || now.Before(t.Until))
		var problems []string
		if len(unknown) > 0 {
			problems = append(problems, "there is no pod "+strings.Join(unknown, ", "))
		}
		if cycle := cycleOf(pods, key); cycle != nil {
			problems = append(problems, "a circle: "+JoinNames(cycle, " starts after ", name))
		}
		v.Problem = strings.Join(problems, "; ")
		out[key] = v
	}
	return out
}

// cycleOf returns the shortest cycle on which a pod starts after itself, with the pod
// at both ends; nil if there is none.
func cycleOf(pods map[manifests.Key]Turn, key manifests.Key) []manifests.Key {
	from := map[manifests.Key]manifests.Key{} // the pod from which each was first reached
	for next := []manifests.Key{key}; len(next) > 0; next = next[1:] {
		for _, other := range pods[next[0]].After {
			if _, seen := from[other]; !seen {
				from[other] = next[0]
				next = append(next, other)
			}
		}
	}
	at, there := from[key]
	if !there {
		return nil
	}
	cycle := []manifests.Key{key, at}
	for ; at != key; cycle = append(cycle, at) {
		at = from[at]
	}
	slices.Reverse(cycle)
	return cycle
}

// JoinNames joins the names of the pods by a separator.
func JoinNames(keys []manifests.Key, by string, name func(manifests.Key) string) string {
	names := make([]string, len(keys))
	for k, key := range keys {
		names[k] = name(key)
	}
	return strings.Join(names, by)
}
