package stats

import (
	"fmt"
	"path"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// spend makes the cgroup of webPod on v2 have used so many microseconds of cpu time.
func spend(t *testing.T, h Host, used int) {
	t.Helper()
	put(t, h.Cgroup, path.Join(podV2, "cpu.stat"), fmt.Sprintf("usage_usec %d\nuser_usec 0\nsystem_usec 0\n", used))
}

// trendsOf returns the trends of a machine with webPod, and a func that removes the pod.
func trendsOf(t *testing.T, h Host) (all *Trends, uid string, remove func()) {
	pods := []*v1.Pod{parsePod(t, webPod)}
	c := looker(t, h, critest.New(t), "systemd").config
	c.Pods = func() []*v1.Pod { return pods }
	return NewTrends(c), string(pods[0].UID), func() { pods = nil }
}

func TestATrendHasAPointAMinuteForAnHour(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, _ := trendsOf(t, h)
		used := 0
		for minute := range 70 {
			for range 6 { // of the ticks only every sixth adds one
				all.Sample()
				time.Sleep(10 * time.Second)
				used += minute * 10_000 // so many thousandths of a core
				spend(t, h, used)
			}
		}
		points := all.Of()[uid].Points
		if len(points) != TrendPoints {
			t.Fatalf("%d points", len(points))
		}
		for k, p := range points {
			if want := uint32(9 + k); p.CPU != want || p.Memory != 85000000>>10 {
				t.Errorf("point %d is %+v, want cpu %d", k, p, want)
			}
		}
	})
}

func TestTheFirstPointNeedsARate(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, _ := trendsOf(t, h)
		all.Sample()
		if one := all.Of()[uid]; len(one.Points) != 0 || one.CPU != nil || *one.Memory != 85000000 {
			t.Errorf("at first: %+v", one)
		}
	})
}

// The present rate needs no wait: it is of the time since the last reading.
func TestThePresentUseIsReadWhenSomebodyLooks(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, _ := trendsOf(t, h)
		spend(t, h, 1_000_000)
		all.Of()
		time.Sleep(4 * time.Second)
		spend(t, h, 3_000_000)
		if got := *all.Of()[uid].CPU; got != 500_000_000 {
			t.Errorf("half a core is %d", got)
		}
		time.Sleep(time.Second)
		spend(t, h, 9_000_000)
		if got := *all.Of()[uid].CPU; got != 500_000_000 {
			t.Errorf("a second later it was read again: %d", got)
		}
	})
}

// A cgroup that is made again counts from zero.
func TestACounterThatGoesBackGivesNoPoint(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, _ := trendsOf(t, h)
		for _, used := range []int{9_000_000, 1_000_000, 61_000_000} {
			spend(t, h, used)
			all.Sample()
			time.Sleep(PointEvery)
		}
		if points := all.Of()[uid].Points; len(points) != 1 || points[0].CPU != 1000 {
			t.Errorf("points %v", points)
		}
	})
}

func TestATrendGoesWithItsPod(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, remove := trendsOf(t, h)
		all.Sample()
		if _, kept := all.pods[uid]; !kept {
			t.Fatal("there is no trend")
		}
		remove()
		time.Sleep(PointEvery)
		all.Sample()
		if len(all.pods) != 0 {
			t.Errorf("kept: %v", all.pods)
		}
	})
	if size := unsafe.Sizeof(trend{}); size > 1<<10 {
		t.Errorf("a trend takes %d bytes", size)
	}
}

func TestAPodWithoutACgroupHasNoTrend(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		c := looker(t, h, critest.New(t), "none", parsePod(t, webPod)).config
		all := NewTrends(c)
		all.Sample()
		if got := all.Of(); len(got) != 0 {
			t.Errorf("it has %v", got)
		}
	})
}

// The few files that a trend reads say what all others say.
func TestAGlanceSeesWhatIsToldElsewhere(t *testing.T) {
	for tree, pod := range map[string]string{"v1": podV1, "v2": podV2} {
		h := plant(t, tree).hierarchy()
		u := h.read(pod)
		cpu, memory := h.glance(pod)
		if cpu == nil || memory == nil || *cpu != *u.CPU || *memory != *u.WorkingSet {
			t.Errorf("%s: cpu %v, want %v; memory %v, want %v", tree, cpu, *u.CPU, memory, *u.WorkingSet)
		}
		if node, want := h.workingSet("/"), h.read("/").WorkingSet; node == nil || *node != *want {
			t.Errorf("%s: the node's memory is %v, want %d", tree, node, *want)
		}
		if cpu, memory = h.glance("/nowhere"); cpu != nil || memory != nil {
			t.Errorf("%s: a cgroup that is not there has %v, %v", tree, cpu, memory)
		}
	}
}
