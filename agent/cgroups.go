package agent

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

	"monopod/agent/metrics"
	"monopod/agent/panics"
	"monopod/cgroups"
	"monopod/cri"
)

// The drivers that can be asked for, besides those of package cgroups.
const (
	driverAuto = "auto" // the runtime's
	driverNone = "none" // no cgroups of pods: the runtime puts containers where it likes
)

// levelsEvery is how often the levels that hold pods are put right, since
// others may write to them: as often as the kubelet does.
const levelsEvery = time.Minute

// podCgroups makes and removes the cgroups of pods and keeps the weight of the
// Burstable level. Any goroutine may use it; they wait for the kernel, and with
// the systemd driver for systemd. Pods of nil have no cgroups.
type podCgroups struct {
	manager *cgroups.Manager
	machine *machine
	metrics *metrics.Metrics
	log     *slog.Logger

	mu        sync.Mutex
	ready     bool             // the driver is known and the levels are made
	burstable map[string]int64 // by uid of each Burstable pod that may run: the cpu it requests, in thousandths of a core
	said      string           // the last trouble, so that it is said once
	other     cgroups.Driver   // that the runtime had when it was asked last, by follow alone; "": not asked since ready
	off       bool             // they cannot be made here, and pods go without
}

// newPodCgroups looks whether cgroups can be made and, unless the runtime must
// be asked first, makes the levels for pods.
func newPodCgroups(m *machine, to *metrics.Metrics, checkpoints []*checkpoint) (*podCgroups, error) {
	if m.cfg.CgroupDriver == driverNone {
		return nil, nil
	}
	manager, err := cgroups.Open(cgroups.Config{Root: m.cfg.CgroupRoot, Own: m.cfg.OwnCgroup})
	if err != nil && m.cfg.MayLackCgroups {
		sayNoCgroups(m.log, err)
		return nil, nil
	}
	if err != nil {
		return nil, noCgroups(err)
	}
	g := &podCgroups{manager: manager, machine: m, metrics: to, log: m.log, burstable: map[string]int64{}}
	for _, c := range checkpoints {
		if c.ended() != "" {
			continue
		}
		if err := panics.Contain(func() { g.count(c.Pod) }); err != nil {
			to.Panic()
			m.log.Error("a pod does not count for the weight of its level", append(panics.Logged(err), "pod", c.key().String())...)
		}
	}
	if m.cfg.CgroupDriver == driverAuto {
		return g, nil
	}
	return g, g.setUp(context.Background(), cgroups.Driver(m.cfg.CgroupDriver))
}

// noCgroups says what to do where pods cannot have cgroups.
func noCgroups(err error) error {
	return fmt.Errorf("pods cannot have cgroups here: %w; make them possible, or run monopod with --cgroup-driver none", err)
}

// follow takes on the runtime's driver, unless one was given or taken on before:
// then a runtime that has another one is complained of. What keeps it from that
// is returned; that cgroups cannot be made ends the agent by end.
func (g *podCgroups) follow(ctx context.Context, c *cri.Client, end context.CancelCauseFunc) error {
	if g.none() {
		return nil
	}
	config, err := c.RuntimeConfig(ctx)
	if err != nil && !cri.Unimplemented(err) && !g.ready {
		return err
	}
	driver := cmp.Or(cgroups.Driver(g.machine.cfg.FallbackDriver), cgroups.Cgroupfs)
	linux := config.GetLinux()
	if linux != nil {
		driver = cgroups.Cgroupfs
		if linux.CgroupDriver == rt.CgroupDriver_SYSTEMD {
			driver = cgroups.Systemd
		}
	}
	if g.ready {
		own := g.manager.Names().Driver
		if linux != nil && own != driver && driver != g.other {
			g.log.Warn("the runtime has another cgroup driver, with which it starts no container in the pods' cgroups: "+
				"give both the same, let the pods end, and restart monopod", "driver", string(own), "runtime", string(driver))
		}
		if linux != nil {
			g.other = driver
		}
		return nil
	}
	if err := g.setUp(ctx, driver); err != nil {
		end(err)
		return err
	}
	return nil
}

// setUp makes the levels that hold pods.
func (g *podCgroups) setUp(ctx context.Context, d cgroups.Driver) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.manager.SetUp(ctx, d, g.machine.cfg.Reserved.limit(g.machine.capacity()))
	if err != nil && !errors.Is(err, cgroups.ErrValues) {
		if g.machine.cfg.MayLackCgroups {
			g.off = true
			sayNoCgroups(g.log, err)
			return g.manager.Dismantle(ctx)
		}
		return noCgroups(err)
	}
	g.complain(errors.Join(err, g.weigh(ctx)))
	g.machine.setCgroups(g.manager.Names())
	g.ready = true
	g.log.Info("pods get cgroups", "driver", string(d), "root", g.manager.Names().Root, "v2", g.manager.Unified())
	return nil
}

// run puts the levels right each minute until ctx ends.
func (g *podCgroups) run(ctx context.Context) {
	tick := time.NewTicker(levelsEvery)
	defer tick.Stop()
	for !g.none() {
		select {
		case <-tick.C:
			g.refresh(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (g *podCgroups) refresh(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ready {
		g.complain(errors.Join(g.manager.Refresh(ctx), g.weigh(ctx)))
	}
}

// complain says what is wrong with the levels, once: g.mu is held.
func (g *podCgroups) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != g.said && text != "" {
		g.log.Warn("the cgroups that hold pods are not as they should be", "err", err)
	}
	g.said = text
}

// weigh gives the Burstable level the weight of its pods: g.mu is held.
func (g *podCgroups) weigh(ctx context.Context) error {
	var sum int64
	for _, milli := range g.burstable {
		sum += milli
	}
	defer g.metrics.Cgroup(metrics.CgroupUpdate, time.Now())
	return g.manager.SetBurstable(ctx, sum)
}

// count takes a pod that may run into the weight of its level.
func (g *podCgroups) count(p *v1.Pod) {
	if cgroupClass(p) == cgroups.Burstable {
		requests := cgroupRequests(p)
		g.burstable[string(p.UID)] = requests.Cpu().MilliValue()
	}
}

// take gives the Burstable level the weight of one more pod.
func (g *podCgroups) take(ctx context.Context, p *v1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(p)
	g.complain(g.weigh(ctx))
}

// create makes the cgroup of a pod with its values. Values that the kernel does
// not take are no reason not to run the pod, as with the kubelet.
func (g *podCgroups) create(ctx context.Context, p *v1.Pod, n *node) error {
	if g.none() {
		return nil
	}
	g.take(ctx, p)
	begun := time.Now()
	err := g.manager.Create(ctx, cgroupClass(p), string(p.UID), podCgroup(p, n))
	g.metrics.Cgroup(metrics.CgroupCreate, begun)
	if errors.Is(err, cgroups.ErrValues) {
		g.log.Warn("pod's cgroup has not all its values", "pod", p.Namespace+"/"+p.Name, "err", err)
		return nil
	}
	return err
}

// destroy kills what still runs in the cgroup of a pod of ours and removes it.
func (g *podCgroups) destroy(ctx context.Context, uid string) error {
	if g.none() {
		return nil
	}
	begun := time.Now()
	if err := g.manager.Destroy(ctx, uid); err != nil {
		return err
	}
	g.metrics.Cgroup(metrics.CgroupDestroy, begun)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.burstable, uid)
	g.complain(g.weigh(ctx))
	return nil
}

// none reports whether pods have no cgroups of their own.
func (g *podCgroups) none() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.off
}

// exists reports whether something may be there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// capacity returns what the machine has for all pods together.
func (m *machine) capacity() cgroups.Node {
	n := cgroups.Node{CPU: int64(runtime.NumCPU()) * 1000, Memory: m.base.Memory, HugePages: m.base.HugePageSizes}
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
