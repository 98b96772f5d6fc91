package admission

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

func named(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name} }

func after(names ...string) turn {
	var t turn
	for _, name := range names {
		t.After = append(t.After, named(name))
	}
	return t
}

func TestAPodIsLetStartOnceTheLastIsReady(t *testing.T) {
	w := newWorld("")
	w.set(named("a"), after("b", "c"))
	w.set(named("b"), turn{})
	w.set(named("c"), turn{Ready: true})
	for _, step := range []struct {
		what  string
		ready bool
		want  string
	}{{"b", false, ""}, {"c", false, ""}, {"b", true, ""}, {"c", true, "a"}, {"c", false, ""}, {"c", true, ""}} {
		w.ready(named(step.what), step.ready)
		if got := w.next(); got != step.want {
			t.Errorf("%s ready: %v: %q starts, want %q", step.what, step.ready, got, step.want)
		}
	}
}

// The previous version of one that is let start is ready still, and is not meant.
func TestPodsOfARowAreNotLetStartTogether(t *testing.T) {
	w := newWorld("")
	for name, turn := range map[string]turn{"a": after("b"), "b": after("c"), "c": {}} {
		turn.Ready = true
		w.set(named(name), turn)
	}
	w.ready(named("c"), false)
	if got := w.next(); got != "" {
		t.Fatalf("%s starts", got)
	}
	w.ready(named("c"), true)
	if got := w.next(); got != "b" {
		t.Fatalf("%q starts", got)
	}
	w.ready(named("b"), false) // as its new version is
	if got := w.next(); got != "" {
		t.Errorf("%s starts with it", got)
	}
}

func TestAShortNameMeansThePodOfThisNode(t *testing.T) {
	w := newWorld("-n")
	w.set(named("a-n"), after("b"))
	w.set(named("b"), turn{Ready: true})
	if got := w.next(); got != "a-n" {
		t.Errorf("%q starts after the only pod of that name", got)
	}
	w.set(named("c-n"), after("b"))
	w.set(named("b-n"), turn{})
	if got := w.next(); got != "" {
		t.Errorf("%q starts after another pod", got)
	}
	delete(w.pods, named("b-n"))
	w.Forget(named("b-n"))
	if got := w.next(); got != "c-n" {
		t.Errorf("%q starts once that one is gone", got)
	}
}

func TestAHeldPodIsLetStartWhenItsTimeoutPasses(t *testing.T) {
	w := newWorld("")
	late := after("x")
	late.Until = dawn.Add(time.Minute)
	w.set(named("a"), late)
	w.set(named("b"), after("x"))
	if got := w.next(); got != "" {
		t.Fatalf("%s starts", got)
	}
	w.TimeoutsPassed(dawn)
	if got := w.Next(dawn); len(got) > 0 {
		t.Fatalf("%v starts early", got)
	}
	w.TimeoutsPassed(late.Until)
	if got := w.Next(late.Until); len(got) != 1 || got[0].Pod.Name != "a" || len(got[0].Unready) != 1 {
		t.Errorf("%+v starts", got)
	}
}

func TestAWaitGoesOnWhereAPreviousAgentLeftIt(t *testing.T) {
	w := newWorld("")
	long := after("x")
	long.Until = dawn.Add(time.Minute)
	w.set(named("a"), long)
	d := w.Held(named("a"))
	former := &Held{} // of another wait
	if w.Continue(d, former, dawn.Add(-2*time.Hour), nil); former.Known {
		t.Error("another wait goes on")
	}
	if got := w.next(); got != "" {
		t.Fatalf("%s starts", got)
	}
	last := &v1.PodStatus{}
	w.Continue(d, d.Held, d.Held.Since.Add(time.Hour), last)
	if got := w.next(); got != "" || d.Held.Last != last || !d.Held.Known {
		t.Fatalf("%q starts, wait %+v", got, d.Held)
	}
	w.Continue(d, d.Held, dawn.Add(-2*time.Hour), last)
	if got := w.next(); got != "a" {
		t.Errorf("%q starts", got)
	}
}

func TestAForgottenPodLeavesNothing(t *testing.T) {
	w := newWorld("-n")
	w.set(named("a"), after("b", "c"))
	w.set(named("b"), after("a"))
	w.Started(&manifests.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: named("b").Namespace, Name: named("b").Name}}})
	w.next()
	d := w.Held(named("a"))
	for _, name := range []string{"a", "b"} {
		delete(w.pods, named(name))
		w.Forget(named(name))
	}
	w.Continue(d, d.Held, dawn, nil)
	w.next()
	w.News()
	if w.Len()+len(w.changed)+len(w.news) > 0 {
		t.Errorf("left: %+v", w.StartOrder)
	}
}

// row is n pods of which each tenth starts after the one before.
func row(n int) *world {
	w := newWorld("")
	for k := range n {
		var t turn
		if k > 0 && k%10 == 0 {
			t = after(fmt.Sprint("p", k-1))
		}
		w.set(named(fmt.Sprint("p", k)), t)
	}
	w.Next(dawn)
	w.News()
	return w
}

// What happens to one pod is decided for those that start after it.
func TestOneChangeDecidesOnItsDependentsAlone(t *testing.T) {
	cost := map[int]float64{}
	for _, n := range []int{100, 1000} {
		w := row(n)
		before := w.decisions
		w.ready(named("p5"), true) // after which none starts
		w.Next(dawn)
		if w.decisions != before {
			t.Errorf("of %d pods %d are decided on for one that none starts after", n, w.decisions-before)
		}
		w.ready(named("p9"), false)
		w.Next(dawn)
		if w.decisions != before+1 {
			t.Errorf("of %d pods %d are decided on for one that one starts after", n, w.decisions-before)
		}
		cost[n] = testing.AllocsPerRun(100, func() { w.ready(named("p9"), false); w.Next(dawn); w.News() })
	}
	if cost[1000] > 1.3*cost[100] {
		t.Errorf("a change costs %v allocations", cost)
	}
}

// Without pods that start after others nothing is kept and nothing decided.
func TestWithoutAnOrderNothingIsDecided(t *testing.T) {
	w := newWorld("")
	for k := range 100 {
		w.set(named(fmt.Sprint("p", k)), turn{})
	}
	w.ready(named("p5"), true)
	w.Next(dawn)
	if w.decisions > 0 || w.Len() > 0 {
		t.Errorf("%d decisions, %d pods", w.decisions, w.Len())
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := row(n)
			b.ReportAllocs()
			for b.Loop() {
				w.ready(named("p9"), false)
				w.Next(dawn)
				w.News()
			}
		})
	}
}
