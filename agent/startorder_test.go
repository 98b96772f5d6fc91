package agent

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// orderly is records of pods of the namespace d, on a node that adds "-n" to their names.
type orderly struct {
	records
	pods map[string]*manifests.Pod
}

func newOrderly() *orderly {
	o := &orderly{pods: map[string]*manifests.Pod{}}
	o.agenda = newAgenda()
	o.order = startOrder{names: rollout.Names{Suffix: "-n", Has: o.offers}, after: map[manifests.Key]map[*podRecord]bool{}}
	return o
}

func inD(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name} }

// set offers a version of a pod that starts after others, or after none.
func (o *orderly) set(name, after, version string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, Annotations: map[string]string{}}}
	if after != "" {
		p.Annotations[annotations.StartAfter] = after
	}
	o.pods[name] = &manifests.Pod{Pod: p, Digest: version}
	o.offerAll()
}

func (o *orderly) remove(name string) {
	delete(o.pods, name)
	o.offerAll()
}

// offerAll does what the loop does with a snapshot.
func (o *orderly) offerAll() {
	var all []*manifests.Pod
	for _, p := range o.pods {
		all = append(all, p)
	}
	changed, arrived, gone := o.offer(all)
	for _, p := range changed {
		o.enter(o.of(p.Key()), "", time.Now())
	}
	for _, key := range append(arrived, gone...) {
		o.renamed(key)
	}
	for _, key := range gone {
		o.forget(o.of(key))
	}
	o.findCircles()
}

func TestAWaitBelongsToOneVersion(t *testing.T) {
	o := newOrderly()
	o.set("db-n", "", "1")
	o.set("web-n", "db", "1")
	web := o.of(inD("web-n"))
	if !web.AwaitsTurn() {
		t.Fatal("a new pod does not wait")
	}
	web.Order.Since = time.Time{} // it had its turn
	o.set("web-n", "db", "1")
	if web.AwaitsTurn() {
		t.Error("the same version waits again")
	}
	o.set("web-n", "db", "2")
	if !web.AwaitsTurn() {
		t.Error("another version does not wait")
	}
	web.Order.Since, web.Started = time.Time{}, rollout.VersionOf(web.Offered)
	o.set("web-n", "db,cache", "3")
	o.set("web-n", "db", "2")
	if web.AwaitsTurn() {
		t.Error("the version that was started last waits again")
	}
	o.forget(web)
	o.set("web-n", "db", "2")
	if !web.AwaitsTurn() {
		t.Error("it does not wait after a stop")
	}
}

func TestTheMeaningOfAShortNameChangesWithThePods(t *testing.T) {
	o := newOrderly()
	o.set("web-n", "db", "1")
	o.set("web-n", "db", "1")
	means := func(want string) {
		t.Helper()
		if got := o.of(inD("web-n")).Order.After[0]; got != inD(want) {
			t.Errorf("it starts after %s, not %s", got, want)
		}
	}
	means("db-n")
	o.set("db", "", "1")
	means("db")
	if got := taken(&o.records); got != "web-n" {
		t.Errorf("to be decided on: %q", got)
	}
	o.set("db-n", "", "1")
	means("db-n")
	o.remove("db-n")
	means("db")
}

func TestACircleIsFoundWhenItCloses(t *testing.T) {
	o := newOrderly()
	o.set("a-n", "b", "1")
	o.set("b-n", "c", "1")
	taken(&o.records)
	o.set("c-n", "a", "1")
	if got := taken(&o.records); got != "a-n b-n c-n" {
		t.Errorf("to be decided on: %q", got)
	}
	if got := fmt.Sprint(o.of(inD("b-n")).Order.Circle); got != "[d/b-n d/c-n d/a-n d/b-n]" {
		t.Errorf("circle %s", got)
	}
	o.set("c-n", "", "2")
	if got := o.of(inD("b-n")).Order.Circle; got != nil {
		t.Errorf("circle %v", got)
	}
}

func TestAForgottenPodLeavesNothing(t *testing.T) {
	o := newOrderly()
	o.set("a-n", "b,c", "1")
	o.set("b-n", "a", "1")
	o.remove("a-n")
	o.remove("b-n")
	taken(&o.records)
	o.tidy()
	if len(o.all)+len(o.order.after)+len(o.dependents()) > 0 {
		t.Errorf("left: %v %v", o.all, o.order.after)
	}
}

// row is n pods of which each tenth starts after the one before.
func row(n int) *orderly {
	o := newOrderly()
	for k := range n {
		name, after := fmt.Sprint("p", k), ""
		if k > 0 && k%10 == 0 {
			after = fmt.Sprint("p", k-1)
		}
		o.pods[name] = &manifests.Pod{Digest: "1", Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}}}
		if after != "" {
			o.pods[name].Annotations = map[string]string{annotations.StartAfter: after}
		}
	}
	o.offerAll()
	taken(&o.records)
	return o
}

// What happens to one pod is decided for those that wait for it.
func TestOneChangeConcernsThoseThatWaitForItAlone(t *testing.T) {
	cost := map[int]float64{}
	for _, n := range []int{100, 1000} {
		o := row(n)
		o.markWaiting(inD("p5"))
		if got := taken(&o.records); got != "" {
			t.Errorf("of %d pods %s are decided on for one that none starts after", n, got)
		}
		o.markWaiting(inD("p9"))
		if got := taken(&o.records); got != "p10" {
			t.Errorf("of %d pods %s are decided on for one that one starts after", n, got)
		}
		cost[n] = testing.AllocsPerRun(100, func() { o.markWaiting(inD("p9")); o.findCircles(); taken(&o.records) })
		o.of(inD("p10")).Order.Since = time.Time{}
		o.markWaiting(inD("p9"))
		if got := taken(&o.records); got != "" {
			t.Errorf("of %d pods %s are decided on though they had their turn", n, got)
		}
	}
	if cost[1000] > 1.3*cost[100] {
		t.Errorf("a change costs %v allocations", cost)
	}
}

// What a previous agent reported counts for the wait for which it was asked.
func TestAWaitIsNotContinuedByAnother(t *testing.T) {
	live(t, func(r *rig) {
		r.after(time.Hour)
		r.want(after("web", "db", "img:1", limited))
		r.stop()
		r.stop = func() {}
		web := r.sync.pods.see(manifests.Key{Namespace: "default", Name: "web-n"})
		since := web.Order.Since
		last := *web.Offered.Pod
		last.Status, _ = podstatus.WaitingForPods(web.Offered, since.Add(-time.Minute), message.Fixed("waits"), nil)
		read := pastRead{key: web.Key, pod: web.Offered, wait: &past{}, last: &last}
		r.sync.continueWaits([]pastRead{read})
		if !web.Order.Since.Equal(since) {
			t.Error("another wait goes on")
		}
		read.wait = web.past
		r.sync.continueWaits([]pastRead{read})
		if got := since.Sub(web.Order.Since); got != time.Minute {
			t.Errorf("its own goes on by %s", got)
		}
	})
}
