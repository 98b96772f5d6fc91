package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/manifests"
)

// dawn is when all orders are looked at.
var dawn = time.Date(2026, 1, 2, 6, 0, 0, 0, time.UTC)

func TestOrder(t *testing.T) {
	after := func(names ...string) Turn {
		var t Turn
		for _, n := range names {
			t.After = append(t.After, manifests.Key{Namespace: "d", Name: n})
		}
		return t
	}
	ready, unready := Turn{Ready: true}, Turn{}
	started := func(t Turn) Turn { t.Started = true; return t }
	until := func(t Turn, d time.Duration) Turn { t.Until = dawn.Add(d); return t }
	rows := []struct {
		name string
		pods map[string]Turn
		want string // "name: [free|held] unready... (problem)", by name, separated by ";"
	}{
		{"a pod without an order is not judged", map[string]Turn{"a": unready}, ""},
		{"it waits for one that is not ready", map[string]Turn{"a": after("b"), "b": unready}, "a: held b"},
		{"it starts once that is ready", map[string]Turn{"a": after("b"), "b": ready}, "a: free"},
		{"it waits for all", map[string]Turn{"a": after("b", "c"), "b": ready, "c": unready}, "a: held c"},
		{"one after the other", map[string]Turn{"a": after("b"), "b": after("c"), "c": unready}, "a: held b;b: held c"},
		{"a pod that has started is not held again", map[string]Turn{"a": started(after("b")), "b": unready}, "a: free b"},
		{"before its time is up it waits", map[string]Turn{"a": until(after("b"), time.Second), "b": unready}, "a: held b"},
		{"once its time is up it starts", map[string]Turn{"a": until(after("b"), 0), "b": unready}, "a: free b"},
		{"an unknown name is a problem", map[string]Turn{"a": after("x", "b"), "b": ready}, "a: held x (there is no pod d/x)"},
		{"two such names are one problem", map[string]Turn{"a": after("x", "y")}, "a: held x y (there is no pod d/x, d/y)"},
		{"it does not keep one that has started", map[string]Turn{"a": started(after("x"))}, "a: free x (there is no pod d/x)"},
		{"with a time limit such a pod starts", map[string]Turn{"a": until(after("x"), 0)}, "a: free x (there is no pod d/x)"},
		{"itself", map[string]Turn{"a": after("a")}, "a: held a (a circle: d/a starts after d/a)"},
		{"each other", map[string]Turn{"a": after("b"), "b": after("a")},
			"a: held b (a circle: d/a starts after d/b starts after d/a);b: held a (a circle: d/b starts after d/a starts after d/b)"},
		{"who waits for a circle is not in it", map[string]Turn{"a": after("b"), "b": after("c"), "c": after("b")},
			"a: held b;b: held c (a circle: d/b starts after d/c starts after d/b);c: held b (a circle: d/c starts after d/b starts after d/c)"},
		{"the shortest of two circles", map[string]Turn{"a": after("b", "c"), "b": after("c"), "c": after("a")},
			"a: held b c (a circle: d/a starts after d/c starts after d/a);b: held c (a circle: d/b starts after d/c starts after d/a starts after d/b);c: held a (a circle: d/c starts after d/a starts after d/c)"},
		{"two ways to one pod are no circle", map[string]Turn{"a": after("b", "c"), "b": after("d"), "c": after("d"), "d": ready}, "a: held b c;b: free;c: free"},
		{"a circle of which one is ready lets the others start", map[string]Turn{"a": started(Turn{Ready: true, After: after("b").After}), "b": after("a")},
			"a: free b (a circle: d/a starts after d/b starts after d/a);b: free (a circle: d/b starts after d/a starts after d/b)"},
		{"a circle and a name that nobody has", map[string]Turn{"a": after("a", "x")}, "a: held a x (there is no pod d/x; a circle: d/a starts after d/a)"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			pods := map[manifests.Key]Turn{}
			for name, turn := range r.pods {
				pods[manifests.Key{Namespace: "d", Name: name}] = turn
			}
			rulings := Order(pods, dawn, manifests.Key.String)
			var got []string
			for _, key := range slices.SortedFunc(maps.Keys(rulings), func(a, b manifests.Key) int { return strings.Compare(a.Name, b.Name) }) {
				v := rulings[key]
				line := key.Name + ": free"
				if v.Held {
					line = key.Name + ": held"
				}
				for _, u := range v.Unready {
					line += " " + u.Name
				}
				if v.Problem != "" {
					line += fmt.Sprintf(" (%s)", v.Problem)
				}
				got = append(got, line)
			}
			if text := strings.Join(got, ";"); text != r.want {
				t.Errorf("got  %s\nwant %s", text, r.want)
			}
		})
	}
}
