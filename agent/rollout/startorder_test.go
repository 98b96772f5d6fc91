package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

// place is a pod in a row of the table.
type place struct {
	after   string // names, separated by spaces
	started bool
	ready   bool
	timeout time.Duration // of the minute for which it waits already
}

// TestTurn has for each pod that starts after others what it waits for, else that its turn has
// come, and why it may never come.
func TestTurn(t *testing.T) {
	ready, unready := place{ready: true}, place{}
	after := func(names string) place { return place{after: names} }
	started := func(names string) place { return place{after: names, started: true} }
	limited := func(names string, timeout time.Duration) place { return place{after: names, timeout: timeout} }
	for _, row := range []struct {
		name string
		pods map[string]place
		want []string
	}{
		{"a pod without an order is not judged", map[string]place{"a": unready}, nil},
		{"it waits for one that is not ready", map[string]place{"a": after("b"), "b": unready}, []string{"a waits for d/b to be ready"}},
		{"it starts once that is ready", map[string]place{"a": after("b"), "b": ready}, []string{"a starts"}},
		{"it waits for all", map[string]place{"a": after("b c"), "b": ready, "c": unready}, []string{"a waits for d/c to be ready"}},
		{"one after the other", map[string]place{"a": after("b"), "b": after("c"), "c": unready},
			[]string{"a waits for d/b to be ready", "b waits for d/c to be ready"}},
		{"one that waits itself is not ready, though a former version of it is",
			map[string]place{"a": after("b"), "b": {after: "c", ready: true}, "c": unready}, []string{"a waits for d/b to be ready", "b waits for d/c to be ready"}},
		{"a pod that was started does not wait again", map[string]place{"a": started("b"), "b": unready}, []string{"a starts"}},
		{"before its time is up it waits", map[string]place{"a": limited("b", 61*time.Second), "b": unready}, []string{"a waits for d/b to be ready, at most until 2026-05-01 12:00:01 UTC; until 12:00:01"}},
		{"once its time is up it starts", map[string]place{"a": limited("b", time.Minute), "b": unready}, []string{"a starts"}},
		{"an unknown name is a problem", map[string]place{"a": after("x b"), "b": ready}, []string{"a waits for d/x to be ready: there is no pod d/x"}},
		{"two such names are one problem", map[string]place{"a": after("x y")}, []string{"a waits for d/x, d/y to be ready: there is no pod d/x, d/y"}},
		{"it does not keep one that was started", map[string]place{"a": started("x")}, []string{"a starts (there is no pod d/x)"}},
		{"with a time limit such a pod starts", map[string]place{"a": limited("x", time.Minute)}, []string{"a starts (there is no pod d/x)"}},
		{"itself", map[string]place{"a": after("a")}, []string{"a waits for d/a to be ready: a circle: d/a starts after d/a"}},
		{"each other", map[string]place{"a": after("b"), "b": after("a")}, []string{
			"a waits for d/b to be ready: a circle: d/a starts after d/b starts after d/a",
			"b waits for d/a to be ready: a circle: d/b starts after d/a starts after d/b"}},
		{"who waits for a circle is not on it", map[string]place{"a": after("b"), "b": after("c"), "c": after("b")}, []string{
			"a waits for d/b to be ready",
			"b waits for d/c to be ready: a circle: d/b starts after d/c starts after d/b",
			"c waits for d/b to be ready: a circle: d/c starts after d/b starts after d/c"}},
		{"the shortest of two circles", map[string]place{"a": after("b c"), "b": after("c"), "c": after("a")}, []string{
			"a waits for d/b, d/c to be ready: a circle: d/a starts after d/c starts after d/a",
			"b waits for d/c to be ready: a circle: d/b starts after d/c starts after d/a starts after d/b",
			"c waits for d/a to be ready: a circle: d/c starts after d/a starts after d/c"}},
		{"a circle of which one also waits for another pod", map[string]place{"a": after("b c"), "b": after("a"), "c": after("e"), "e": ready}, []string{
			"a waits for d/b, d/c to be ready: a circle: d/a starts after d/b starts after d/a",
			"b waits for d/a to be ready: a circle: d/b starts after d/a starts after d/b",
			"c starts"}},
		{"two ways to one pod are no circle", map[string]place{"a": after("b c"), "b": after("e"), "c": after("e"), "e": ready}, []string{
			"a waits for d/b, d/c to be ready", "b starts", "c starts"}},
		{"a circle of which one is ready lets the others start", map[string]place{"a": {after: "b", started: true, ready: true}, "b": after("a")}, []string{
			"a starts (a circle: d/a starts after d/b starts after d/a)", "b starts (a circle: d/b starts after d/a starts after d/b)"}},
		{"a circle and a name that nobody has", map[string]place{"a": after("a x")}, []string{
			"a waits for d/a, d/x to be ready: there is no pod d/x; a circle: d/a starts after d/a"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := turnsOf(row.pods); !slices.Equal(got, row.want) {
				t.Errorf("\n got  %s\n want %s", strings.Join(got, "\n      "), strings.Join(row.want, "\n      "))
			}
		})
	}
}

// turnsOf returns what becomes of the pods that start after others, by name.
func turnsOf(pods map[string]place) (lines []string) {
	key := func(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name + "-n"} }
	records, after := map[manifests.Key]*Record{}, map[manifests.Key][]manifests.Key{}
	for name, p := range pods {
		r := &Record{Key: key(name), Offered: v1st}
		for _, other := range strings.Fields(p.after) {
			r.Order.Of, r.Order.Timeout = v1st, p.timeout
			r.Order.After = append(r.Order.After, key(other))
			after[r.Key] = r.Order.After
		}
		if p.after != "" && !p.started {
			r.Order.Since = noon.Wall.Add(-time.Minute)
		}
		records[r.Key] = r
	}
	circles := Circles(after)
	w := worldOf(func(w *World) {
		w.Names = Names{Suffix: "-n", Has: func(key manifests.Key) bool { return records[key] != nil }}
		w.Ready = func(key manifests.Key) bool {
			r := records[key]
			return r != nil && !r.AwaitsTurn() && pods[strings.TrimSuffix(key.Name, "-n")].ready
		}
	})
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		r := records[key(name)]
		if r.Order.Of == nil {
			continue
		}
		r.Order.Circle = circles[r.Key]
		d := Decide(r, w)
		line := name + " starts"
		if why, waits := d.Wait(ByStartOrder); waits {
			line = name + " " + why.String()
		} else if problem := r.Order.Problem(&w.Names); problem != "" {
			line += fmt.Sprintf(" (%s)", problem)
		}
		if !d.Again.IsZero() {
			line += "; until " + d.Again.Format(time.TimeOnly)
		}
		lines = append(lines, line)
	}
	return lines
}

// comesBack is the first version in place of the second, which runs and does not work.
func comesBack(r *Record) {
	tried(unready, 0)(r)
	r.Trial.Reason, r.Trial.Judged = "it has failed", true
	r.Accepted, r.Started = v2nd, VersionOf(v2nd)
}

// TestMustWait has which new versions wait for their turn at all.
func TestMustWait(t *testing.T) {
	foreign := edited(version("win"))
	foreign.Offered.Labels = map[string]string{"kubernetes.io/os": "windows"}
	restarts := func(p *v1.Pod) { p.UID, p.Spec.RestartPolicy = v1st.UID, v1.RestartPolicyAlways }
	inPlace := running(version("one", restarts))
	inPlace.Offered = version("two", restarts)
	for _, row := range []struct {
		name   string
		is     Record
		policy string
		want   bool
	}{
		{"a new pod", changed(running(v1st), fresh), "", true},
		{"a new version of one that runs", edited(v2nd), "", true},
		{"not one that was started in this boot", running(v1st), "", false},
		{"but one from before the last boot", changed(running(v1st), olderBoot), "", true},
		{"not one that starts nothing", edited(labelled("one")), "", false},
		{"but one that restarts a container in place", inPlace, "", true},
		{"unless it replaces the pod", edited(labelled("one")), "Replace", true},
		{"or the pod was not started in this boot", edited(labelled("one"), olderBoot), "", true},
		{"not one that never runs", foreign, "", false},
		{"not one that comes back", edited(v1st, comesBack), "", false},
		{"unless the pod was not started in this boot", edited(v1st, comesBack, olderBoot), "", true},
	} {
		if got := row.is.MustWait(row.policy); got != row.want {
			t.Errorf("%s: waits %v", row.name, got)
		}
	}
}

func TestAShortNameMeansThePodOfThisNode(t *testing.T) {
	named := func(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name} }
	for _, row := range []struct {
		pods []string
		want string
	}{
		{nil, "db-n"}, {[]string{"db"}, "db"}, {[]string{"db-n"}, "db-n"}, {[]string{"db", "db-n"}, "db-n"},
	} {
		names := Names{Suffix: "-n", Has: func(key manifests.Key) bool { return slices.Contains(row.pods, key.Name) }}
		if got := names.Meant(named("db")); got != named(row.want) {
			t.Errorf("with %v, db means %s", row.pods, got)
		}
	}
}

// Only pods that may be on a circle are searched: those that are left once each that starts after
// none of these is taken away.
func TestWhichPodsAreSearchedForCircles(t *testing.T) {
	named := func(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name} }
	for _, row := range []struct {
		name  string
		after map[string]string
		want  string
	}{
		{"none of a line", map[string]string{"a": "b", "b": "c", "c": "d"}, ""},
		{"none of two ways to one pod", map[string]string{"a": "b c", "b": "e", "c": "e", "e": "f"}, ""},
		{"two that start after each other, and one after these", map[string]string{"a": "b", "b": "a c", "c": "e", "f": "a"}, "a b f"},
	} {
		after := map[manifests.Key][]manifests.Key{}
		for name, others := range row.after {
			for _, other := range strings.Fields(others) {
				after[named(name)] = append(after[named(name)], named(other))
			}
		}
		var got []string
		for key := range circling(after) {
			got = append(got, key.Name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %v, want %s", row.name, got, row.want)
		}
	}
}
