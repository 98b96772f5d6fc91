package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// dawn is when all orders are looked at.
var dawn = time.Date(2026, 1, 2, 6, 0, 0, 0, time.UTC)

// turn is a pod in a row of the table.
type turn struct {
	After   []manifests.Key
	Started bool
	Ready   bool
	Until   time.Time // then it starts although others are not ready; zero: never
}

// world is the pods of a start order under test.
type world struct {
	*StartOrder
	pods map[manifests.Key]*turn
}

func newWorld(suffix string) *world {
	w := &world{pods: map[manifests.Key]*turn{}}
	w.StartOrder = NewStartOrder(checkpoint.Boot{}, NewTable(node.Facts{}, nil, nil), World{Suffix: suffix,
		Desired: func(key manifests.Key) bool { return w.pods[key] != nil },
		Ready:   func(key manifests.Key) bool { return w.pods[key] != nil && w.pods[key].Ready },
	}, nil)
	return w
}

// set makes a pod desired.
func (w *world) set(key manifests.Key, turn turn) *manifests.Pod {
	if w.pods[key] == nil {
		w.Touch(key)
	}
	w.pods[key] = &turn
	p := &manifests.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"}}, Digest: fmt.Sprint(turn)}
	if len(turn.After) > 0 {
		p.Annotations = map[string]string{decode.StartAfter: joinKeys(turn.After)}
	}
	since := dawn
	if !turn.Until.IsZero() {
		p.Annotations[decode.StartAfterTimeout], since = "1h", turn.Until.Add(-time.Hour)
	}
	w.Update(p, turn.Started, since)
	return p
}

// ready makes a pod ready or not.
func (w *world) ready(key manifests.Key, is bool) {
	w.pods[key].Ready = is
	w.Touch(key)
}

// next returns the names of the pods that start.
func (w *world) next() string {
	var names []string
	for _, d := range w.Next(dawn) {
		names = append(names, d.Pod.Name)
	}
	return strings.Join(names, " ")
}

func joinKeys(keys []manifests.Key) string {
	var names []string
	for _, key := range keys {
		names = append(names, key.String())
	}
	return strings.Join(names, ",")
}

func TestOrder(t *testing.T) {
	after := func(names ...string) turn {
		var t turn
		for _, n := range names {
			t.After = append(t.After, manifests.Key{Namespace: "d", Name: n})
		}
		return t
	}
	ready, unready := turn{Ready: true}, turn{}
	started := func(t turn) turn { t.Started = true; return t }
	until := func(t turn, d time.Duration) turn { t.Until = dawn.Add(d); return t }
	rows := []struct {
		name string
		pods map[string]turn
		want string // "name: [free|held] unready... (problem)", by name, separated by ";"
	}{
		{"a pod without an order is not judged", map[string]turn{"a": unready}, ""},
		{"it waits for one that is not ready", map[string]turn{"a": after("b"), "b": unready}, "a: held b"},
		{"it starts once that is ready", map[string]turn{"a": after("b"), "b": ready}, "a: free"},
		{"it waits for all", map[string]turn{"a": after("b", "c"), "b": ready, "c": unready}, "a: held c"},
		{"one after the other", map[string]turn{"a": after("b"), "b": after("c"), "c": unready}, "a: held b;b: held c"},
		{"a pod that has started is not held again", map[string]turn{"a": started(after("b")), "b": unready}, "a: free b"},
		{"before its time is up it waits", map[string]turn{"a": until(after("b"), time.Second), "b": unready}, "a: held b"},
		{"once its time is up it starts", map[string]turn{"a": until(after("b"), 0), "b": unready}, "a: free b"},
		{"an unknown name is a problem", map[string]turn{"a": after("x", "b"), "b": ready}, "a: held x (there is no pod d/x)"},
		{"two such names are one problem", map[string]turn{"a": after("x", "y")}, "a: held x y (there is no pod d/x, d/y)"},
		{"it does not keep one that has started", map[string]turn{"a": started(after("x"))}, "a: free x (there is no pod d/x)"},
		{"with a time limit such a pod starts", map[string]turn{"a": until(after("x"), 0)}, "a: free x (there is no pod d/x)"},
		{"itself", map[string]turn{"a": after("a")}, "a: held a (a circle: d/a starts after d/a)"},
		{"each other", map[string]turn{"a": after("b"), "b": after("a")},
			"a: held b (a circle: d/a starts after d/b starts after d/a);b: held a (a circle: d/b starts after d/a starts after d/b)"},
		{"who waits for a circle is not in it", map[string]turn{"a": after("b"), "b": after("c"), "c": after("b")},
			"a: held b;b: held c (a circle: d/b starts after d/c starts after d/b);c: held b (a circle: d/c starts after d/b starts after d/c)"},
		{"the shortest of two circles", map[string]turn{"a": after("b", "c"), "b": after("c"), "c": after("a")},
			"a: held b c (a circle: d/a starts after d/c starts after d/a);b: held c (a circle: d/b starts after d/c starts after d/a starts after d/b);c: held a (a circle: d/c starts after d/a starts after d/c)"},
		{"two ways to one pod are no circle", map[string]turn{"a": after("b", "c"), "b": after("d"), "c": after("d"), "d": ready}, "a: held b c;b: free;c: free"},
		{"a circle of which one is ready lets the others start", map[string]turn{"a": started(turn{Ready: true, After: after("b").After}), "b": after("a")},
			"a: free b (a circle: d/a starts after d/b starts after d/a);b: free (a circle: d/b starts after d/a starts after d/b)"},
		{"a circle and a name that nobody has", map[string]turn{"a": after("a", "x")}, "a: held a x (there is no pod d/x; a circle: d/a starts after d/a)"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			w := newWorld("")
			for name, turn := range r.pods {
				w.set(manifests.Key{Namespace: "d", Name: name}, turn)
			}
			w.Next(dawn)
			var got []string
			for _, d := range w.All() {
				line := d.Pod.Name + ": free"
				if d.Decision.Held {
					line = d.Pod.Name + ": held"
				}
				for _, u := range d.Unready {
					line += " " + u.Name
				}
				if d.Problem != "" {
					line += fmt.Sprintf(" (%s)", d.Problem)
				}
				got = append(got, line)
			}
			if text := strings.Join(got, ";"); text != r.want {
				t.Errorf("got  %s\nwant %s", text, r.want)
			}
		})
	}
}
