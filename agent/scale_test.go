package agent

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/config"
	"monopod/agent/worker"
	"monopod/cri/critest"
	"monopod/manifests"
)

// fleet is an agent with n pods, of which some ask for more than the node has.
type fleet struct {
	*rig
	manifests.Snapshot
	n, waiting int
	started    atomic.Int64
	all        chan struct{} // closed when all others have started
}

func newFleet(t *testing.T, n, waiting int) *fleet {
	c := &fleet{n: n, waiting: waiting, all: make(chan struct{}), Snapshot: manifests.Snapshot{Complete: true, Read: true}}
	c.rig = &rig{T: t, Runtime: critest.New(t), dir: quickDir(t), log: &lines{}}
	c.configure = func(cfg *config.Config) { cfg.MaxPods, cfg.PodsPerCore = int64(2*n), 0 }
	c.mangle = func(args, reply any) {
		if _, is := args.(*rt.StartContainerRequest); is && reply != nil && c.started.Add(1) == int64(n-waiting) {
			close(c.all)
		}
	}
	c.AddImage("img:1", "img:2")
	c.CountOnly()
	c.start()
	for k := range n {
		c.set(k, "img:1")
	}
	return c
}

// set makes one pod another version. Each tenth waits, if any does.
func (c *fleet) set(k int, image string) {
	var extra []string
	if c.waiting > 0 && k%(c.n/c.waiting) == 0 {
		extra = append(extra, "resources: {requests: {cpu: 1000}, limits: {cpu: 1000}}")
	}
	path := fmt.Sprintf("/m/%04d.yaml", k)
	pods, problems := manifests.Decode(path, []byte(manifest(fmt.Sprintf("p%04d", k), image, extra...)), c.options)
	if len(pods) != 1 {
		c.Fatal(problems)
	}
	if k < len(c.Pods) {
		c.Snapshot.Pods[k] = pods[0]
		return
	}
	c.Snapshot.Pods = append(c.Snapshot.Pods, pods...)
	c.Files = append(c.Files, &manifests.File{Path: path, Pods: []string{pods[0].Key().String()}})
}

// turn is the loop's work for a state of the last pod's worker that frees nothing.
func (c *fleet) turn() {
	key := c.Pods[c.n-1].Key()
	c.sync.handleStates(worker.State{Key: key, Generation: c.sync.pods.see(key).sent.Generation, Cleared: true, Ready: true})
	c.sync.turn(context.Background())
}

// snapshots returns the loop's work for the next of many snapshots, each of which
// changes the last pod.
func (c *fleet) snapshots() func() {
	var two [2]manifests.Snapshot
	for k, image := range []string{"img:2", "img:1"} {
		c.set(c.n-1, image)
		two[k] = c.Snapshot
		two[k].Pods = slices.Clone(c.Pods)
	}
	turn := 0
	ended, end := context.WithCancel(context.Background())
	end() // what is started beside the loop ends at once
	return func() {
		c.sync.handleSnapshot(two[turn%2])
		c.sync.turn(ended)
		turn++
	}
}

// What the loop does for one pod costs no more among 300 pods than among 100.
func TestTheLoopsCostPerEventDoesNotGrow(t *testing.T) {
	cost := map[string]map[int]float64{"a state that frees nothing": {}, "a snapshot that changes one pod": {}}
	for _, n := range []int{100, 300} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFleet(t, n, n/10)
				c.offers <- c.Snapshot
				c.settle()
				if running := len(c.Running()); running != n-n/10 {
					t.Fatalf("%d run", running)
				}
				c.stop() // the loop is the test's now
				cost["a state that frees nothing"][n] = testing.AllocsPerRun(50, c.turn)
				cost["a snapshot that changes one pod"][n] = testing.AllocsPerRun(50, c.snapshots())
			})
		})
	}
	for what, by := range cost {
		t.Logf("%s: %v allocations", what, by)
		if by[300] > 1.3*by[100] {
			t.Errorf("%s costs %v allocations", what, by)
		}
	}
}

// TestScale prints what fleets cost; it is `make scale` and measures nothing else.
func TestScale(t *testing.T) {
	sizes := []string{"30"}
	if text := os.Getenv("SCALE"); text != "" {
		sizes = strings.Fields(text)
	}
	t.Logf("%6s %8s %12s %14s %14s %14s %10s %10s %10s", "pods", "waiting", "all running", "first snapshot", "next snapshot", "state", "B/pod", "allocs/pod", "calls/pod")
	for _, text := range sizes {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 {
			t.Fatalf("SCALE=%q: want numbers of pods from 10", text)
		}
		for _, waiting := range []int{0, n / 10} {
			t.Log(newFleet(t, n, waiting).measure())
		}
	}
}

// measure lets the pods start and returns a line of the table.
func (c *fleet) measure() string {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, start, allocated := heap(), time.Now(), mallocs()
	c.offers <- c.Snapshot
	select {
	case <-c.all:
	case <-time.After(10 * time.Minute):
		c.Fatalf("%d of %d run after 10 minutes", c.started.Load(), c.n-c.waiting)
	}
	all := time.Since(start)
	allocations, calls := (mallocs()-allocated)/uint64(c.n), c.calls()
	used := int64(heap()) - int64(before)
	c.stop()
	each := func(times int, do func()) time.Duration {
		start := time.Now()
		for range times {
			do()
		}
		return time.Since(start) / time.Duration(times)
	}
	states, next := each(100, c.turn), each(20, c.snapshots())
	return fmt.Sprintf("%6d %8d %12s %14s %14s %14s %10d %10d %10.1f", c.n, c.waiting, all.Round(time.Millisecond), c.firstSnapshot(), next, states,
		used/int64(c.n), allocations, float64(calls)/float64(c.n))
}

// mallocs is how often memory was allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// calls is how often the runtime was called.
func (c *fleet) calls() (n int) {
	for _, of := range c.Counts() {
		n += of
	}
	return n
}

// firstSnapshot is how long the loop of an agent takes over its first snapshot.
func (c *fleet) firstSnapshot() time.Duration {
	next := newFleet(c.T, c.n, c.waiting)
	next.stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	start := time.Now()
	next.sync.handleSnapshot(next.Snapshot)
	next.sync.turn(ctx)
	took := time.Since(start)
	next.sync.running.Wait()
	return took
}
