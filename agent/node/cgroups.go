package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/panics"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cri"
)

// The drivers that can be asked for, besides those of package cgroups.
const (
	DriverAuto = "auto" // the runtime's
	DriverNone = "none" // no cgroups of pods: the runtime puts containers where it likes
)

// LevelsEvery is how often the levels that hold pods are put right, since
// others may write to them: as often as the kubelet does.
const LevelsEvery = time.Minute

// PodCgroups makes and removes the cgroups of pods and keeps the weight of the
// Burstable level. Any goroutine may use it; they wait for the kernel, and with
// the systemd driver for systemd. Pods of nil have no cgroups.
type PodCgroups struct {
	Manager *cgroups.Manager
	Machine *Node
	metrics *metrics.Metrics
	Log     *slog.Logger

	mu        sync.Mutex
	ready     bool             // the driver is known and the levels are made
	Burstable map[string]int64 // by uid of each Burstable pod that may run: the cpu it requests, in thousandths of a core
	said      string           // the last trouble, so that it is said once
	other     cgroups.Driver   // that the runtime had when it was asked last, by follow alone; "": not asked since ready
	off       bool             // they cannot be made here, and pods go without
}

// NewPodCgroups looks whether cgroups can be made and, unless the runtime must
// be asked first, makes the levels for pods.
func NewPodCgroups(m *Node, to *metrics.Metrics, checkpoints []*checkpoint.Checkpoint) (*PodCgroups, error) {
	if m.Cfg.CgroupDriver == DriverNone {
		return nil, nil
	}
	manager, err := cgroups.Open(cgroups.Config{Root: m.Cfg.CgroupRoot, Own: m.Cfg.OwnCgroup})
	if err != nil && m.Cfg.MayLackCgroups {
		sayNoCgroups(m.log, err)
		return nil, nil
	}
	if err != nil {
		return nil, noCgroups(err)
	}
	g := &PodCgroups{Manager: manager, Machine: m, metrics: to, Log: m.log, Burstable: map[string]int64{}}
	for _, c := range checkpoints {
		if c.Ended() != "" {
			continue
		}
		if err := panics.Contain(func() { g.Count(c.Pod) }); err != nil {
			to.Panic()
			m.log.Error("a pod does not count for the weight of its level", append(panics.Logged(err), "pod", c.Key().String())...)
		}
	}
	if m.Cfg.CgroupDriver == DriverAuto {
		return g, nil
	}
	return g, g.SetUp(context.Background(), cgroups.Driver(m.Cfg.CgroupDriver))
}

// noCgroups says what to do where pods cannot have cgroups.
func noCgroups(err error) error {
	return fmt.Errorf("pods cannot have cgroups here: %w; make them possible, or run monopod with --cgroup-driver none", err)
}

// Follow takes on the runtime's driver, unless one was given or taken on before:
// then a runtime that has another one is complained of. What keeps it from that
// is returned; that cgroups cannot be made ends the agent by end.
func (g *PodCgroups) Follow(ctx context.Context, c *cri.Client, end context.CancelCauseFunc) error {
	if g.None() {
		return nil
	}
	config, err := c.RuntimeConfig(ctx)
	if err != nil && !cri.Unimplemented(err) && !g.ready {
		return err
	}
	driver := cmp.Or(cgroups.Driver(g.Machine.Cfg.FallbackDriver), cgroups.Cgroupfs)
	linux := config.GetLinux()
	if linux != nil {
		driver = cgroups.Cgroupfs
		if linux.CgroupDriver == rt.CgroupDriver_SYSTEMD {
			driver = cgroups.Systemd
		}
	}
	if g.ready {
		own := g.Manager.Names().Driver
		if linux != nil && own != driver && driver != g.other {
			g.Log.Warn("the runtime has another cgroup driver, with which it starts no container in the pods' cgroups: "+
				"give both the same, let the pods end, and restart monopod", "driver", string(own), "runtime", string(driver))
		}
		if linux != nil {
			g.other = driver
		}
		return nil
	}
	if err := g.SetUp(ctx, driver); err != nil {
		end(err)
		return err
	}
	return nil
}

// SetUp makes the levels that hold pods.
func (g *PodCgroups) SetUp(ctx context.Context, d cgroups.Driver) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.Manager.SetUp(ctx, d, g.Machine.Cfg.Reserved.Limit(g.Machine.capacity()))
	if err != nil && !errors.Is(err, cgroups.ErrValues) {
		if g.Machine.Cfg.MayLackCgroups {
			g.off = true
			sayNoCgroups(g.Log, err)
			return g.Manager.Dismantle(ctx)
		}
		return noCgroups(err)
	}
	g.complain(errors.Join(err, g.weigh(ctx)))
	g.Machine.setCgroups(g.Manager.Names())
	g.ready = true
	g.Log.Info("pods get cgroups", "driver", string(d), "root", g.Manager.Names().Root, "v2", g.Manager.Unified())
	return nil
}

// Run puts the levels right each minute until ctx ends.
func (g *PodCgroups) Run(ctx context.Context) {
	tick := time.NewTicker(LevelsEvery)
	defer tick.Stop()
	for !g.None() {
		select {
		case <-tick.C:
			g.refresh(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (g *PodCgroups) refresh(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready {
		g.complain(errors.Join(g.Manager.Refresh(ctx), g.weigh(ctx)))
	}
}

// complain says what is wrong with the levels, once: g.mu is held.
func (g *PodCgroups) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != g.said && text != "" {
		g.Log.Warn("the cgroups that hold pods are not as they should be", "err", err)
	}
	g.said = text
}

// weigh gives the Burstable level the weight of its pods: g.mu is held.
func (g *PodCgroups) weigh(ctx context.Context) error {
	var sum int64
	for _, milli := range g.Burstable {
		sum += milli
	}
	defer g.metrics.Cgroup(metrics.CgroupUpdate, time.Now())
	return g.Manager.SetBurstable(ctx, sum)
}

// Count takes a pod that may run into the weight of its level.
func (g *PodCgroups) Count(p *v1.Pod) {
	if podspec.CgroupClass(p) == cgroups.Burstable {
		requests := podspec.CgroupRequests(p)
		g.Burstable[string(p.UID)] = requests.Cpu().MilliValue()
	}
}

// take gives the Burstable level the weight of one more pod.
func (g *PodCgroups) take(ctx context.Context, p *v1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Count(p)
	g.complain(g.weigh(ctx))
}

// Create makes the cgroup of a pod with its values. Values that the kernel does
// not take are no reason not to run the pod, as with the kubelet.
func (g *PodCgroups) Create(ctx context.Context, p *v1.Pod, n *podspec.Host) error {
	if g.None() {
		return nil
	}
	g.take(ctx, p)
	begun := time.Now()
	err := g.Manager.Create(ctx, podspec.CgroupClass(p), string(p.UID), podspec.PodCgroup(p, n))
	g.metrics.Cgroup(metrics.CgroupCreate, begun)
	if errors.Is(err, cgroups.ErrValues) {
		g.Log.Warn("pod's cgroup has not all its values", "pod", p.Namespace+"/"+p.Name, "err", err)
		return nil
	}
	return err
}

// Destroy kills what still runs in the cgroup of a pod of ours and removes it.
func (g *PodCgroups) Destroy(ctx context.Context, uid string) error {
	if g.None() {
		return nil
	}
	begun := time.Now()
	if err := g.Manager.Destroy(ctx, uid); err != nil {
		return err
	}
	g.metrics.Cgroup(metrics.CgroupDestroy, begun)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.Burstable, uid)
	g.complain(g.weigh(ctx))
	return nil
}

// None reports whether pods have no cgroups of their own.
func (g *PodCgroups) None() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.off
}

// capacity returns what the machine has for all pods together.
func (m *Node) capacity() cgroups.Node {
	n := cgroups.Node{CPU: int64(runtime.NumCPU()) * 1000, Memory: m.Base.Memory, HugePages: m.Base.HugePageSizes}
	if online, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
		n.CPUs = strings.TrimSpace(string(online))
		if count := countCPUs(n.CPUs); count > 0 {
			n.CPU = count * 1000
		}
	}
	for _, name := range []string{"pid_max", "threads-max"} {
		b, err := os.ReadFile("/proc/sys/kernel/" + name)
		most, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && most > 0 && (n.Pids == 0 || most < n.Pids) {
			n.Pids = most
		}
	}
	return n
}

// countCPUs counts what a list such as 0-2,8 names; 0 if it is no list.
func countCPUs(list string) (count int64) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || b < a {
			return 0
		}
		count += b - a + 1
	}
	return count
}

func sayNoCgroups(log *slog.Logger, err error) {
	log.Warn("pods get no cgroups of their own here; limits of containers count all the same", "err", err)
}
