package admission

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/manifests"
)

// tabled is a table under test, and the versions that were refused.
type tabled struct {
	*testing.T
	*Table
	versions int
	refused  map[manifests.Key]Waiter
}

func tableOn(t *testing.T, f *node.Facts) *tabled {
	return &tabled{T: t, refused: map[manifests.Key]Waiter{}, Table: NewTable(*f, nil, func(p *v1.Pod, err error) { t.Errorf("pod %s: %v", p.Name, err) })}
}

// version makes a pod a version of its own.
func (s *tabled) version(p *v1.Pod) *manifests.Pod {
	s.versions++
	p.UID = types.UID(fmt.Sprint(p.Name, "-", s.versions))
	return &manifests.Pod{Pod: p, Digest: string(p.UID), File: "/m/" + p.Name + ".yaml"}
}

// edited returns another version of a pod under its uid.
func (s *tabled) edited(p *manifests.Pod, extra ...string) *manifests.Pod {
	next := s.version(asked(s.T, p.Name, extra...))
	next.UID = p.UID
	return next
}

// runs admits a pod whether it fits or not, as a checkpoint does.
func (s *tabled) runs(p *v1.Pod) *manifests.Pod {
	m := s.version(p)
	at := s.entry(m.Key())
	s.release(at)
	at.pod, at.claims, at.spared = m, claimsOf(p), claimsOf(p)
	s.recount(m.Key(), at)
	return m
}

// admit lets a version start if there is room for it. It returns the one that is to run then.
func (s *tabled) admit(p *manifests.Pod) *manifests.Pod {
	key := p.Key()
	before := s.Admitted(key)
	var r *Rejection
	if !manifests.Same(before, p) {
		r = s.Room(p)
	}
	if r == nil {
		r = s.Take(p)
	}
	if r != nil {
		s.refused[key] = Waiter{p, *r}
		return before
	}
	delete(s.refused, key)
	return p
}

// remove lets nothing be left of a pod.
func (s *tabled) remove(key manifests.Key) {
	delete(s.refused, key)
	s.Free(key)
	s.Remove(key)
}

// waiting returns those that were refused, in no order.
func (s *tabled) waiting() []Waiter { return slices.Collect(maps.Values(s.refused)) }

// asks returns why the pod is refused.
func (s *tabled) asks(p *v1.Pod) *Rejection {
	m := s.version(p)
	s.admit(m)
	if r, refused := s.refused[m.Key()]; refused {
		return &r.Why
	}
	s.remove(m.Key())
	return nil
}

// retry asks the pods that may be admitted now, and returns their names.
func (s *tabled) retry() string {
	var names []string
	if !s.TakeFreed() {
		return ""
	}
	var all []*manifests.Pod
	for _, w := range s.refused {
		if !w.Why.Final() {
			all = append(all, w.Pod)
		}
	}
	ByArrival(all)
	for _, p := range all {
		names = append(names, p.Name)
		s.admit(p)
	}
	return strings.Join(names, " ")
}

// counted checks the totals against a count of all entries.
func (s *tabled) counted() {
	s.Helper()
	all := newTotals()
	for key, at := range s.entries {
		all.replace(key, &claims{}, &at.counted)
	}
	ports := 0
	for _, at := range s.totals.ports {
		ports += len(at)
	}
	for _, at := range all.ports {
		ports -= len(at)
	}
	same := all.pods == s.totals.pods && ports == 0 && len(all.ports) == len(s.totals.ports) && len(all.requests) == len(s.totals.requests)
	for name, amount := range all.requests {
		same = same && amount.Cmp(s.totals.requests[name]) == 0
	}
	if !same {
		s.Fatalf("totals %+v, counted %+v", s.totals, all)
	}
}

// sized is a node with room for n pods, and a core for each.
func sized(n int) *node.Facts {
	f := someNode()
	f.Allocatable = list("cpu", fmt.Sprint(n), "memory", "1000Gi", "pods", fmt.Sprint(2*n))
	return f
}

func port(n int) string { return ports(fmt.Sprintf("{containerPort: 80, hostPort: %d}", n)) }

func TestWaitingPodsAreAskedOnceSomethingIsFreed(t *testing.T) {
	one := func(p *manifests.Pod) manifests.Key { return p.Key() }
	for name, free := range map[string]func(s *tabled, has *manifests.Pod){
		"a pod is gone":    func(s *tabled, has *manifests.Pod) { s.remove(one(has)) },
		"a pod has ended":  func(s *tabled, has *manifests.Pod) { s.Update(one(has), true, true) },
		"the node changes": func(s *tabled, _ *manifests.Pod) { f := *someNode(); f.Labels = nil; s.SetFacts(f) },
		"a smaller version runs": func(s *tabled, has *manifests.Pod) {
			s.admit(s.edited(has, requests("cpu: 1"), port(80)))
			s.Update(one(has), true, false)
		},
		"a port is given back": func(s *tabled, has *manifests.Pod) {
			s.admit(s.edited(has, requests("cpu: 2")))
			s.Update(one(has), true, false)
		},
		"a uid is given back": func(s *tabled, has *manifests.Pod) {
			s.Uids.Take("another", one(has))
			s.Update(one(has), true, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tableOn(t, someNode())
			has := s.version(asked(t, "has", requests("cpu: 2"), port(80)))
			s.admit(has)
			s.admit(s.version(asked(t, "b", requests("cpu: 1"))))
			s.admit(s.version(asked(t, "a", port(80))))
			s.admit(s.version(asked(t, "windows", "os: {name: windows}")))
			if got := s.retry(); got != "" {
				t.Errorf("asked before: %s", got)
			}
			free(s, has)
			if got := s.retry(); got != "a b" {
				t.Errorf("asked: %q", got)
			}
			if got := s.retry(); got != "" {
				t.Errorf("asked again: %s", got)
			}
			s.counted()
		})
	}
}

// The next version of a pod takes the place that the pod has, also on a node that has no other.
func TestAPodIsCountedOnceOverAnEdit(t *testing.T) {
	s := tableOn(t, someNode())
	var last *manifests.Pod
	for _, name := range []string{"a", "b", "c"} {
		last = s.version(asked(t, name))
		s.admit(last)
	}
	next := s.edited(last, requests("cpu: 1"))
	if got := s.admit(next); got != next {
		t.Errorf("the next version is refused: %+v", s.refused)
	}
	if r := s.asks(asked(t, "d")); r == nil || r.Reason != "OutOfpods" {
		t.Errorf("a fourth pod on a node for three: %+v", r)
	}
	s.runs(asked(t, "d"))
	s.runs(asked(t, "e"))
	if r := s.Room(s.edited(last)); r == nil || !strings.Contains(r.Message.String(), "requested: 1, used: 4, capacity: 3") {
		t.Errorf("the next version of one of five: %+v", r)
	}
	s.counted()
}

func TestWhatFreesNothingAsksNoPod(t *testing.T) {
	s := tableOn(t, someNode())
	has := s.version(asked(t, "has", requests("cpu: 2")))
	s.admit(has)
	s.admit(s.version(asked(t, "b", requests("cpu: 1"))))
	s.Update(has.Key(), true, false)
	s.Update(has.Key(), true, false)
	s.Free(has.Key()) // it still runs
	s.SetFacts(*someNode())
	s.admit(s.version(asked(t, "small")))
	if got := s.retry(); got != "" {
		t.Errorf("asked: %s", got)
	}
}

// A pod that waits for a uid is told which file has it, or that its pod is going.
func TestAPodThatWaitsForAUIDIsToldOfItsHolder(t *testing.T) {
	s := tableOn(t, someNode())
	holder := s.version(asked(t, "holder"))
	s.admit(holder)
	waits := s.version(asked(t, "waits"))
	waits.UID = holder.UID
	s.admit(waits)
	says := func(want string) {
		t.Helper()
		s.retry()
		if r := s.refused[waits.Key()].Why; r.Reason != ReasonUIDInUse || !strings.Contains(r.Message.String(), want) {
			t.Errorf("refused with %+v, want %s", r, want)
		}
	}
	says("in /m/holder.yaml: leave")
	moved := *holder
	moved.File = "/m/moved.yaml"
	s.admit(&moved)
	says("in /m/moved.yaml: leave")
	s.Free(holder.Key())
	says("once nothing of that one is left")
	s.Remove(holder.Key())
	if s.retry(); s.Admitted(waits.Key()) == nil {
		t.Error("it is not admitted once the uid is free")
	}
}

func TestWaitingPodsAreAskedInOrderOfArrival(t *testing.T) {
	s := tableOn(t, someNode())
	s.admit(s.version(asked(t, "has", requests("cpu: 2"))))
	for k, name := range []string{"z", "m", "a"} {
		p := s.version(asked(t, name, requests("cpu: 2")))
		p.Annotations = map[string]string{annSeen: time.Unix(int64(k), 0).Format(time.RFC3339Nano)}
		s.admit(p)
	}
	s.Remove(manifests.Key{Namespace: "default", Name: "has"})
	if got := s.retry(); got != "z m a" {
		t.Errorf("asked: %s", got)
	}
	if p := s.Admitted(manifests.Key{Namespace: "default", Name: "z"}); p == nil {
		t.Error("the first is not admitted")
	}
}

// A version that takes its place counts with its own claims, whether Room was asked for it or not.
func TestAVersionTakesWhatItClaims(t *testing.T) {
	for name, ask := range map[string]func(s *tabled, p, other *manifests.Pod){
		"no version was asked about":       func(*tabled, *manifests.Pod, *manifests.Pod) {},
		"it was asked about":               func(s *tabled, p, _ *manifests.Pod) { s.Room(p) },
		"another was asked about after it": func(s *tabled, p, other *manifests.Pod) { s.Room(p); s.Room(other) },
	} {
		t.Run(name, func(t *testing.T) {
			s := tableOn(t, someNode())
			p := s.version(asked(t, "a", requests("cpu: 2"), port(80)))
			ask(s, p, s.version(asked(t, "b", port(81))))
			if r := s.Take(p); r != nil {
				t.Fatalf("it is refused: %+v", r)
			}
			for extra, want := range map[string]string{requests("cpu: 1"): "OutOfcpu", port(80): "NodePorts", port(81): ""} {
				got := ""
				if r := s.asks(asked(t, "c", extra)); r != nil {
					got = r.Reason
				}
				if got != want {
					t.Errorf("beside it, %s: %q, want %q", extra, got, want)
				}
			}
		})
	}
}

// A version that has ended takes nothing, and is not what runs, also where it is given again.
func TestAVersionThatHasEndedTakesNothing(t *testing.T) {
	s := tableOn(t, someNode())
	p := s.version(asked(t, "a", port(80)))
	s.admit(p)
	if s.Runs(p.Key()) != p {
		t.Error("the version that was admitted does not run")
	}
	s.Update(p.Key(), true, true)
	s.Take(p)
	if s.Runs(p.Key()) != nil || s.Admitted(p.Key()) != p {
		t.Errorf("what has ended runs: %v, is admitted: %v", s.Runs(p.Key()), s.Admitted(p.Key()))
	}
	if r := s.asks(asked(t, "b", port(80))); r != nil {
		t.Errorf("what has ended has its port: %+v", r)
	}
	if s.Runs(manifests.Key{Name: "never seen"}) != nil {
		t.Error("a pod that was never seen runs")
	}
}

// A uid is refused to another pod before that takes any room, until nothing of its holder is left.
func TestAUIDHasOneHolder(t *testing.T) {
	s := tableOn(t, someNode())
	holder := s.version(asked(t, "holder"))
	s.admit(holder)
	s.Uids.Take("former", holder.Key())
	other := s.version(asked(t, "other"))
	for _, uid := range []types.UID{"former", holder.UID} {
		other.UID = uid
		if r := s.Room(other); r == nil || r.Reason != ReasonUIDInUse {
			t.Errorf("room for another pod with the uid %s: %+v", uid, r)
		}
	}
	s.Update(holder.Key(), true, false)
	other.UID = "former"
	if r := s.Room(other); r != nil {
		t.Errorf("a uid that its holder had before: %+v", r)
	}
	s.remove(holder.Key())
	other.UID = holder.UID
	if r := s.Room(other); r != nil {
		t.Errorf("the uid of a pod that is gone: %+v", r)
	}
	if other, taken := (*UidHolders)(nil).Other(holder.UID, other.Key()); taken {
		t.Errorf("without holders, %s has the uid", other)
	}
}

func TestAPodThatCannotBeCountedTakesNothing(t *testing.T) {
	told := 0
	s := NewTable(*someNode(), nil, func(*v1.Pod, error) { told++ })
	if c := s.count(nil); c.pods != 0 || told != 1 {
		t.Errorf("claims %+v, told %d times", c, told)
	}
}

func TestPodsThatExchangePortsSwap(t *testing.T) {
	s := tableOn(t, someNode())
	for _, name := range []string{"a", "b", "c"} {
		s.admit(s.version(asked(t, name, port(map[string]int{"a": 80, "b": 81, "c": 82}[name]))))
	}
	s.admit(s.version(asked(t, "a", port(81))))
	if got := s.Swaps(s.waiting()); len(got) != 0 {
		t.Fatalf("one alone moves: %v", got)
	}
	s.admit(s.version(asked(t, "b", port(80))))
	s.admit(s.version(asked(t, "c", requests("cpu: 9")))) // fits in no case
	got := s.Swaps(s.waiting())
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Fatalf("move: %v", got)
	}
	s.counted()
	if again := s.Swaps(s.waiting()); !slices.Equal(again, got) {
		t.Errorf("another answer to the same question: %v", again)
	}
	delete(s.refused, manifests.Key{Namespace: "default", Name: "a"})
	if got := s.Swaps(s.waiting()); len(got) > 0 {
		t.Errorf("one gives way to one that may not move: %v", got)
	}
	s.counted()
}

// Two pods that exchange their uids wait for each other, whether their versions run or have ended.
func TestPodsThatExchangeUIDsSwap(t *testing.T) {
	for _, ended := range []bool{false, true} {
		s := tableOn(t, someNode())
		a, b := s.version(asked(t, "a")), s.version(asked(t, "b"))
		for _, p := range []*manifests.Pod{a, b} {
			s.admit(p)
			s.Update(p.Key(), true, ended)
		}
		nextA, nextB := s.version(asked(t, "a")), s.version(asked(t, "b"))
		nextA.UID, nextB.UID = b.UID, a.UID
		s.admit(nextA)
		if got := s.Swaps(s.waiting()); len(got) != 0 {
			t.Errorf("ended %v: one moves, and the uid that it waits for does not: %v", ended, got)
		}
		s.admit(nextB)
		if got := s.Swaps(s.waiting()); len(got) != 2 {
			t.Errorf("ended %v: move: %v", ended, got)
		}
		nextB.UID = b.UID
		if got := s.Swaps(s.waiting()); len(got) != 0 {
			t.Errorf("ended %v: two take one uid: %v", ended, got)
		}
		s.counted()
	}
}

// One has ended and has only its uid, for which the other waits; its own next version waits for the
// port of the other.
func TestPodsThatExchangeAUIDForAPortSwap(t *testing.T) {
	s := tableOn(t, someNode())
	a, b := s.version(asked(t, "a", port(80))), s.version(asked(t, "b", port(81)))
	for _, p := range []*manifests.Pod{a, b} {
		s.admit(p)
		s.Update(p.Key(), true, p == a)
	}
	nextA, nextB := s.version(asked(t, "a", port(81))), s.version(asked(t, "b", port(80)))
	nextB.UID = a.UID
	s.admit(nextA)
	if got := s.Swaps(s.waiting()); len(got) != 0 {
		t.Errorf("one moves, and the port that it waits for does not: %v", got)
	}
	s.admit(nextB)
	if got := s.Swaps(s.waiting()); len(got) != 2 {
		t.Errorf("move: %v", got)
	}
	s.counted()
}

// A version that is only asked about takes nothing.
func TestAVersionThatIsAskedAboutTakesNothing(t *testing.T) {
	s := tableOn(t, sized(4))
	was := s.runs(asked(t, "a", requests("cpu: 2"), port(80)))
	s.runs(asked(t, "b", requests("cpu: 2"), port(81)))
	for _, row := range []struct {
		what string
		p    *v1.Pod
		fits bool
	}{
		{"fits", asked(t, "a", requests("cpu: 1"), port(82)), true},
		{"does not", asked(t, "a", port(81)), false},
	} {
		if r := s.Room(s.version(row.p)); (r == nil) != row.fits || s.Admitted(was.Key()) != was {
			t.Errorf("what %s: %+v, and %+v is admitted", row.what, r, s.Admitted(was.Key()))
		}
		s.counted()
	}
}

// Whatever happens, the totals are the sum of the entries.
func TestTotalsAreTheSumOfTheEntries(t *testing.T) {
	s := tableOn(t, sized(4))
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		name := string(rune('a' + random.IntN(6)))
		key := manifests.Key{Namespace: "default", Name: name}
		switch random.IntN(6) {
		case 0, 1:
			amount := fmt.Sprintf("cpu: %dm, memory: %dG", random.IntN(4000), random.IntN(700))
			s.admit(s.version(asked(t, name, requests(amount), port(80+random.IntN(4)))))
		case 2:
			s.Update(key, random.IntN(2) == 0, random.IntN(2) == 0)
		case 3:
			s.Free(key)
		case 4:
			s.Remove(key)
		case 5:
			s.retry()
			for _, key := range s.Swaps(s.waiting()) {
				s.Free(key)
			}
		}
		s.counted()
	}
}

func TestAllocationsAreReadFromCheckpoints(t *testing.T) {
	was := func(name, uid string, change ...func(*checkpoint.Checkpoint)) *checkpoint.Checkpoint {
		p := asked(t, name, requests("cpu: 1"))
		p.UID = types.UID(uid)
		c := &checkpoint.Checkpoint{Digest: uid, Pod: p}
		for _, f := range change {
			f(c)
		}
		return c
	}
	retired := func(c *checkpoint.Checkpoint) { *c = *c.Removing(c.Accepted, checkpoint.Mark{}) }
	ended := func(c *checkpoint.Checkpoint) { c.Pod.Status.Phase = v1.PodSucceeded }
	s := NewTable(node.Facts{}, []*checkpoint.Checkpoint{
		was("runs", "1"), was("going", "2", retired), was("done", "3", ended), was("gone", "6", ended, retired), was("changing", "4", retired), was("changing", "5"),
	}, nil)
	for name, want := range map[string]int64{"new": 3, "done": 3, "gone": 3, "runs": 2, "going": 2, "changing": 2} {
		cpu := s.totals.requests[v1.ResourceCPU].DeepCopy()
		if at := s.entries[manifests.Key{Namespace: "default", Name: name}]; at != nil {
			cpu.Sub(at.counted.of(v1.ResourceCPU))
		}
		if cpu.Value() != want {
			t.Errorf("beside %s: %s cpus are taken, want %d", name, cpu.String(), want)
		}
	}
}

// A former agent let pods run without an extended resource that nothing provides. These
// run on, in any version that asks for no more of it; others wait.
func TestWhatWasAcceptedWithoutItsDeviceRunsOn(t *testing.T) {
	gpus := func(name string, n int, more ...string) *v1.Pod {
		return asked(t, name, append(more, requests(fmt.Sprint("example.com/gpu: ", n)))...)
	}
	was := gpus("a", 2)
	s := &tabled{T: t, refused: map[manifests.Key]Waiter{}, Table: NewTable(*someNode(), []*checkpoint.Checkpoint{{Digest: "1", Pod: was}}, nil)}
	accepted := s.Admitted(manifests.Key{Namespace: "default", Name: "a"})
	if got := s.admit(accepted); got != accepted {
		t.Errorf("what runs does not run on: %v", got)
	}
	for _, more := range []struct {
		gpus int
		runs bool
	}{{3, false}, {2, true}, {1, true}} {
		v := s.edited(accepted, fmt.Sprintf("hostname: h%d", more.gpus), requests(fmt.Sprint("example.com/gpu: ", more.gpus)))
		got := s.admit(v)
		if r, waits := s.refused[v.Key()]; (got == v) != more.runs || waits == more.runs || waits && (r.Why.Reason != "OutOfexample.com/gpu" || got == nil) {
			t.Errorf("a version with %d: %v, %v", more.gpus, got, r)
		}
	}
	if r := s.asks(gpus("b", 1)); r == nil || r.Reason != "OutOfexample.com/gpu" {
		t.Errorf("another pod: %v", r)
	}
}

// What a former agent accepted is spared over the owner's stop and start, and when it comes
// back after an update.
func TestWhatIsSparedStaysSo(t *testing.T) {
	for name, leave := range map[string]func(s *tabled, was *manifests.Pod){
		"stopped and started":     func(s *tabled, was *manifests.Pod) { s.Free(was.Key()) },
		"updated and rolled back": func(s *tabled, was *manifests.Pod) { s.admit(s.edited(was)) },
	} {
		s := tableOn(t, someNode())
		was := s.runs(asked(t, "web", requests("example.com/gpu: 1")))
		leave(s, was)
		s.Update(was.Key(), true, false)
		s.admit(was)
		if r, refused := s.refused[was.Key()]; refused {
			t.Errorf("%s: %s: %s", name, r.Why.Reason, r.Why.Message)
		}
	}
	s := tableOn(t, someNode())
	former := s.version(asked(t, "web", requests("example.com/gpu: 1")))
	s.admit(s.edited(former))
	s.Spare(former)
	s.admit(former)
	if len(s.refused) > 0 {
		t.Error("a former version of a former agent does not come back")
	}
}

// full is a table with n pods that run, and n/10 that wait for cpu.
func full(t *testing.T, n int) *tabled {
	s := tableOn(t, sized(n))
	for k := range n {
		s.admit(s.version(asked(t, fmt.Sprint("p", k), requests("cpu: 1, memory: 1Gi"), port(1000+k))))
	}
	for k := range n / 10 {
		s.admit(s.version(asked(t, fmt.Sprint("waits", k), requests("cpu: 1"))))
	}
	return s
}

// What the table does for one pod costs the same beside 1,000 pods as beside 100.
func TestOnePodCostsTheSameBesideMany(t *testing.T) {
	costs := map[string]map[int]float64{}
	for _, n := range []int{100, 1000} {
		s := full(t, n)
		key := manifests.Key{Namespace: "default", Name: "p7"}
		refused := s.version(asked(t, "refused", requests("cpu: 1")))
		fits := s.version(asked(t, "fits", requests("memory: 1Gi"), port(80)))
		for what, do := range map[string]func(){
			"a state that frees nothing": func() { s.Update(key, true, false); s.TakeFreed() },
			"a refusal":                  func() { s.admit(refused) },
			"an admission":               func() { s.admit(fits); s.remove(fits.Key()); s.freed = false },
		} {
			before := s.checks
			if costs[what] == nil {
				costs[what] = map[int]float64{}
			}
			costs[what][n] = testing.AllocsPerRun(100, do) + float64(s.checks-before)
		}
	}
	for what, cost := range costs {
		t.Logf("%s: %v", what, cost)
		if cost[1000] > 1.3*cost[100] {
			t.Errorf("%s costs %v beside 100 pods, %v beside 1,000", what, cost[100], cost[1000])
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := &testing.T{}
			s := full(t, n)
			p := s.version(asked(t, "refused", requests("cpu: 1")))
			b.ReportAllocs()
			for b.Loop() {
				s.admit(p)
			}
		})
	}
}

func BenchmarkRetry(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := full(&testing.T{}, n)
			b.ReportAllocs()
			for b.Loop() {
				s.freed = true
				s.retry()
				s.Swaps(s.waiting())
			}
		})
	}
}

// The room of a version that may come back is kept beside what its successor takes: the larger
// of each resource, and the ports of both. The successor itself is asked as if it had it.
func TestTheRoomOfAVersionThatMayComeBackIsKept(t *testing.T) {
	port := func(port string) string { return ports("{containerPort: 80, hostPort: " + port + "}") }
	cpu := func(n string) string { return requests("cpu: " + n) }
	for _, row := range []struct {
		name         string
		was, next    string
		other        string
		keeps, after bool // other fits meanwhile, and once the room is not kept any more
	}{
		{"the port that only the former one has", port("80"), "", port("80"), false, true},
		{"the port that only the new one has", "", port("80"), port("80"), false, false},
		{"another port", port("80"), "", port("81"), true, true},
		{"what only the former one takes", cpu("1500m"), cpu("500m"), cpu("1"), false, true},
		{"what only the new one takes", cpu("500m"), cpu("1500m"), cpu("1"), false, false},
		{"what neither takes", cpu("500m"), cpu("1"), cpu("1"), true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := tableOn(t, someNode())
			was := s.runs(asked(t, "web", row.was))
			s.Reserve(was)
			next := s.version(asked(t, "web", row.next))
			if s.admit(next) != next {
				t.Fatal("the new version does not fit")
			}
			s.Update(next.Key(), true, false)
			other := s.version(asked(t, "other", row.other))
			if got := s.Room(other) == nil; got != row.keeps {
				t.Errorf("the other fits meanwhile: %v", got)
			}
			if again := s.Room(was); again != nil {
				t.Errorf("the former does not fit: %v", again)
			}
			s.Unreserve(next.Key())
			if got := s.Room(other) == nil; got != row.after {
				t.Errorf("the other fits after that: %v", got)
			}
		})
	}
	s := tableOn(t, someNode())
	was := s.runs(asked(t, "web", port("80")))
	s.Reserve(was)
	s.Free(was.Key()) // the pod is stopped
	s.Update(was.Key(), true, false)
	if r := s.Room(s.version(asked(t, "other", port("80")))); r != nil {
		t.Errorf("the room of a stopped pod is kept: %v", r)
	}
}
