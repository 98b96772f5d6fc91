package admission

import (
	"slices"
	"strings"
	"time"

	"monopod/manifests"
)

// Turn is a pod as the orders between pods see it.
type Turn struct {
	After []manifests.Key // what it starts after; who is not among the pods does not exist
	Begun bool            // it was let start before: nothing holds it any more
	Ready bool
	Until time.Time // then it starts all the same; zero: never
}

// Decision is what the orders say of a pod that has one.
type Decision struct {
	Held    bool
	Unready []manifests.Key // what it starts after and is not ready
	Problem string          // why it may wait for ever, for a person; "": no reason
}

// Order decides which pods are held until others are ready. It is a pure
// function; only pods that start after others are in the result. name says a
// pod's name for a person.
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
		v.Held = !t.Begun && len(v.Unready) > 0 && (t.Until.IsZero() || now.Before(t.Until))
		var problems []string
		if len(unknown) > 0 {
			problems = append(problems, "there is no pod "+strings.Join(unknown, ", "))
		}
		if circle := cycleOf(pods, key); circle != nil {
			problems = append(problems, "a circle: "+JoinNames(circle, " starts after ", name))
		}
		v.Problem = strings.Join(problems, "; ")
		out[key] = v
	}
	return out
}

// cycleOf returns the shortest way on which a pod starts after itself, which
// begins and ends with it; nil if there is none.
func cycleOf(pods map[manifests.Key]Turn, key manifests.Key) []manifests.Key {
	from := map[manifests.Key]manifests.Key{} // the pod by which each was reached first
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
	way := []manifests.Key{key, at}
	for ; at != key; way = append(way, at) {
		at = from[at]
	}
	slices.Reverse(way)
	return way
}

func JoinNames(keys []manifests.Key, by string, name func(manifests.Key) string) string {
	names := make([]string, len(keys))
	for k, key := range keys {
		names[k] = name(key)
	}
	return strings.Join(names, by)
}
