package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/panics"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/cgroups"
	"monopod/cri"
)

// The values of --cgroup-driver besides the drivers of package cgroups.
const (
	DriverAuto = "auto" // the runtime's
	DriverNone = "none" // no cgroups of pods: the runtime chooses those of containers
)

// LevelsEvery is how often the values of the cgroups that hold pods are written again, as other
// programs may change them: as often as the kubelet writes them.
const LevelsEvery = time.Minute

// PodCgroups creates and removes the cgroups of pods and keeps the weight of the
// Burstable level. Any goroutine may use it; calls wait for the kernel, and with the
// systemd driver for systemd. With nil, pods have no cgroups.
type PodCgroups struct {
	Manager *cgroups.Manager
	Machine *Node
	Metrics *metrics.Metrics
	Log     *slog.Logger
	lacking saidonce.Errors // values that pods' cgroups lack, by uid

	counts []uint64  // of cgroups at the last NewlyVanished, corrected for creations and removals since; guarded by mu
	looked time.Time // when all cgroups were last checked; likewise

	mu        sync.Mutex               // guards what follows; never held while waiting for the kernel or systemd
	ready     bool                     // the driver is known and the levels exist
	Burstable map[string]int64         // cpu requests of Burstable pods that may run, by uid, in thousandths of a core
	seen      map[string]seenCgroup    // by uid
	leaving   map[string]cgroups.Class // seen cgroups that the agent removes, by uid
	said      saidonce.Error
	other     cgroups.Driver // the runtime's at the last Follow, which alone uses it; "": not requested since ready
	off       bool           // cgroups cannot be created here; pods have none
}

// NewPodCgroups checks that cgroups can be created and, unless the driver is the runtime's, creates
// the levels for pods.
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
	g := &PodCgroups{Manager: manager, Machine: m, Metrics: to, Log: m.log, Burstable: map[string]int64{}}
	for _, c := range checkpoints {
		if c.Ended() != "" {
			continue
		}
		if err := panics.Contain(func() { g.Count(c.Pod) }); err != nil {
			to.Panic()
			m.log.Error("pod not counted in the weight of its QoS cgroup", append(panics.Logged(err), "pod", c.Key().String())...)
		}
	}
	if m.Cfg.CgroupDriver == DriverAuto {
		return g, nil
	}
	return g, g.SetUp(context.Background(), cgroups.Driver(m.Cfg.CgroupDriver))
}

// noCgroups adds the remedy to an error about cgroups that cannot be created.
func noCgroups(err error) error {
	return fmt.Errorf("pods cannot have cgroups here: %w; make them possible, or run monopod with --cgroup-driver none", err)
}

// Follow sets up cgroups with the runtime's driver. If the driver is set already, it logs a warning
// when the runtime has another one. It returns the error of the request or the set-up; if cgroups
// cannot be created, it also calls end, which ends the agent.
func (g *PodCgroups) Follow(ctx context.Context, c *cri.Client, end context.CancelCauseFunc) error {
	if g.None() {
		return nil
	}
	config, err := c.RuntimeConfig(ctx)
	if err != nil && !cri.Unimplemented(err) && !g.isReady() {
		return err
	}
	linux := config.GetLinux()
	driver := driverOf(linux, g.Machine.Cfg.FallbackDriver)
	if g.isReady() {
		own := g.Manager.Names().Driver
		if linux != nil && own != driver && driver != g.other {
			g.Log.Warn("the runtime has another cgroup driver and cannot start containers in the pods' cgroups: "+
				"give both the same driver, let the pods end, and restart monopod", "driver", string(own), "runtime", string(driver))
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

// driverOf returns the driver of a runtime that says so in its configuration; nil: it does not.
func driverOf(linux *rt.LinuxRuntimeConfiguration, fallback string) cgroups.Driver {
	switch {
	case linux == nil:
		return cmp.Or(cgroups.Driver(fallback), cgroups.Cgroupfs)
	case linux.CgroupDriver == rt.CgroupDriver_SYSTEMD:
		return cgroups.Systemd
	}
	return cgroups.Cgroupfs
}

// Driver returns the driver that an agent with these settings has beside the runtime.
func Driver(ctx context.Context, s NodeSettings, c *cri.Client) (cgroups.Driver, error) {
	switch s.CgroupDriver {
	case DriverNone:
		return cgroups.None, nil
	case DriverAuto:
		config, err := c.RuntimeConfig(ctx)
		if err != nil && !cri.Unimplemented(err) {
			return cgroups.None, err
		}
		return driverOf(config.GetLinux(), s.FallbackDriver), nil
	}
	return cgroups.Driver(s.CgroupDriver), nil
}

// SetUp creates the levels that hold pods.
func (g *PodCgroups) SetUp(ctx context.Context, d cgroups.Driver) error {
	err := g.Manager.SetUp(ctx, d, g.Machine.Cfg.Reserved.Limit(g.Machine.capacity()))
	if err != nil && !errors.Is(err, cgroups.ErrValues) {
		if !g.Machine.Cfg.MayLackCgroups {
			return noCgroups(err)
		}
		g.mu.Lock()
		g.off = true
		g.mu.Unlock()
		sayNoCgroups(g.Log, err)
		return g.Manager.Dismantle(ctx)
	}
	held := g.hold(ctx)
	if errors.Is(held, errNoCgroup) {
		return held
	}
	g.complain(errors.Join(err, held, g.weigh(ctx)))
	g.Machine.setCgroups(g.Manager.Names())
	g.mu.Lock()
	g.ready = true
	g.mu.Unlock()
	g.Log.Info("pods get cgroups", "driver", string(d), "root", g.Manager.Names().Root, "v2", g.Manager.Unified())
	return nil
}

// isReady reports whether the driver is known and the levels exist.
func (g *PodCgroups) isReady() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ready
}

// Run writes the levels again every LevelsEvery until ctx ends.
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
	if g.isReady() {
		g.complain(errors.Join(g.Manager.Refresh(ctx), g.hold(ctx), g.weigh(ctx)))
	}
}

// errNoCgroup means that a cgroup that the settings name does not exist.
var errNoCgroup = errors.New("there is no such cgroup")

// hold limits the processes outside of pods. Cgroups that are missing are not created: their
// processes are put there by what creates them.
func (g *PodCgroups) hold(ctx context.Context) error {
	var errs []error
	for _, h := range g.Machine.Cfg.Reserved.Held {
		err := g.Manager.Limit(ctx, h.Cgroup, h.values())
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, cgroups.ErrValues):
			errs = append(errs, fmt.Errorf("%s %s: %w (%w): create it before monopod starts, such as by a slice of systemd, or remove %s from enforceNodeAllocatable",
				h.Setting, h.Cgroup, errNoCgroup, err, h.Level))
		default:
			errs = append(errs, fmt.Errorf("%s: %w", h.Setting, err))
		}
	}
	return errors.Join(errs...)
}

// complain logs a new error of the levels once.
func (g *PodCgroups) complain(err error) {
	g.mu.Lock()
	isNew := g.said.IsNew(err)
	g.mu.Unlock()
	if isNew {
		g.Log.Warn("cgroups not updated", "err", err)
	}
}

// weigh sets the weight of the Burstable level from its pods. It repeats that until the weight
// matches the present pods, as another goroutine may set an older one.
func (g *PodCgroups) weigh(ctx context.Context) error {
	defer g.Metrics.Cgroup(metrics.CgroupUpdate, time.Now())
	for {
		sum := g.weight()
		if err := g.Manager.SetBurstable(ctx, sum); err != nil || g.weight() == sum {
			return err
		}
	}
}

// weight returns the total cpu request of the Burstable pods.
func (g *PodCgroups) weight() (sum int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, milli := range g.Burstable {
		sum += milli
	}
	return sum
}

// Count adds a pod that may run to the weight of its level.
func (g *PodCgroups) Count(p *v1.Pod) {
	if podspec.CgroupClass(p) == cgroups.Burstable {
		requests := podspec.TotalRequests(p)
		g.Burstable[string(p.UID)] = requests.Cpu().MilliValue()
	}
}

// take counts one more pod and sets the weight of the Burstable level.
func (g *PodCgroups) take(ctx context.Context, p *v1.Pod) {
	g.mu.Lock()
	g.Count(p)
	g.mu.Unlock()
	g.complain(g.weigh(ctx))
}

// MemoryInUse returns the memory of a pod in bytes that cannot be reclaimed, including its files in
// memory; 0: it has no cgroup.
func (g *PodCgroups) MemoryInUse(p *v1.Pod) (int64, error) {
	if g.None() {
		return 0, nil
	}
	used, err := g.Manager.MemoryInUse(podspec.CgroupClass(p), string(p.UID))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return used, err
}

// Live reports whether each of these containers of a pod, by their ids, has a process in its cgroup.
// Without cgroups of pods this cannot be told, and is true.
func (g *PodCgroups) Live(p *v1.Pod, containers []string) bool {
	return g.None() || g.Manager.Live(podspec.CgroupClass(p), string(p.UID), containers)
}

// Create creates the cgroup of a pod with its values. A pod runs even if the kernel refuses some
// values, as with the kubelet. The memory limit of an existing cgroup that uses more is not
// lowered: its volumes in memory outlive a sandbox.
func (g *PodCgroups) Create(ctx context.Context, p *v1.Pod, n *podspec.Host) error {
	if g.None() {
		return nil
	}
	g.take(ctx, p)
	started := time.Now()
	values := podspec.PodCgroup(p, n)
	if used, _ := g.MemoryInUse(p); used > values.Memory {
		values.Memory = 0
	}
	err := g.Manager.Create(ctx, podspec.CgroupClass(p), string(p.UID), values)
	g.Metrics.Cgroup(metrics.CgroupCreate, started)
	if err != nil && !errors.Is(err, cgroups.ErrValues) {
		return err
	}
	g.recordLacking(p, err)
	return nil
}

// recordLacking logs once which values the cgroup of a pod lacks; nil: none.
func (g *PodCgroups) recordLacking(p *v1.Pod, err error) {
	if g.lacking.IsNew(string(p.UID), err) {
		g.Log.Warn("pod cgroup is without some of its values", "pod", p.Namespace+"/"+p.Name, "err", err)
	}
}

// Update writes other values of a pod's cgroup, and counts the pod's new requests. The pod runs
// without values for which the kernel has no file, as after Create.
func (g *PodCgroups) Update(ctx context.Context, p *v1.Pod, r cgroups.Resources) error {
	if g.None() {
		return nil
	}
	g.take(ctx, p)
	defer g.Metrics.Cgroup(metrics.CgroupUpdate, time.Now())
	err := g.Manager.Update(ctx, podspec.CgroupClass(p), string(p.UID), r)
	if errors.Is(err, cgroups.ErrLacking) {
		g.recordLacking(p, err)
		return nil
	}
	return err
}

// Kill kills the processes in the cgroup of a pod of this agent.
func (g *PodCgroups) Kill(ctx context.Context, uid string) error {
	if g.None() {
		return nil
	}
	return g.Manager.Kill(ctx, uid)
}

// Destroy kills the processes in the cgroup of a pod of this agent and removes the cgroup.
func (g *PodCgroups) Destroy(ctx context.Context, uid string) error {
	if g.None() {
		return nil
	}
	g.unsee(uid)
	started := time.Now()
	if err := g.Manager.Destroy(ctx, uid); err != nil {
		return err
	}
	g.Metrics.Cgroup(metrics.CgroupDestroy, started)
	g.lacking.IsNew(uid, nil)
	g.mu.Lock()
	delete(g.Burstable, uid)
	g.mu.Unlock()
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

func sayNoCgroups(log *slog.Logger, err error) {
	log.Warn("pods get no cgroups of their own here; limits of containers still apply", "err", err)
}
