package agent

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/archives"
	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/disk"
	"monopod/agent/gc"
	"monopod/agent/hold"
	"monopod/agent/image"
	"monopod/agent/managed"
	"monopod/agent/node"
	"monopod/agent/notify"
	"monopod/agent/overview"
	"monopod/agent/podhosts"
	"monopod/agent/podresolv"
	"monopod/agent/podresources"
	"monopod/agent/reload"
	"monopod/agent/rollout"
	"monopod/agent/server"
	"monopod/agent/settings"
	"monopod/agent/shutdown"
	"monopod/agent/stats"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// startsPerCore bounds how many sandboxes and containers start at the same time: runtimes slow down
// beyond that.
const startsPerCore = 4

// stopsPerCore bounds how many containers stop at the same time, where the runtime keeps up with
// that: one that is to kill too many at once answers nobody for minutes (containerd gives itself 10 s
// to note each end, and tries again ever later).
const stopsPerCore = 48

// Options configures an agent beyond its settings.
type Options struct {
	Version string
	Log     *slog.Logger   // nil: slog's default
	Level   *slog.LevelVar // follows the setting logLevel; nil: none
	Reread  *Reread        // nil: the settings are read once

	Power <-chan os.Signal // signals a power failure; nil: no such signal

	Name func(setting string) string // the name of a setting in errors; nil: its field

	CollectEvery time.Duration // between two checks whether images must be removed; 0: the default of package image
}

// newManaged returns the runtime that this agent starts; nil: it uses somebody else's.
func (a *Agent) newManaged() (*managed.Runtime, error) {
	if !a.cfg.ManagedRuntime {
		return nil, nil
	}
	if err := managed.Able(); err != nil {
		return nil, err
	}
	s := settings.Managed(a.cfg, a.once != nil)
	s.Log, s.Restarted = a.log, a.metrics.RuntimeRestarted
	s.Trouble = func(text string) {
		a.store.SetProblem("runtime", text)
		if text != "" {
			a.recordTrouble("ManagedRuntimeDown", text)
		}
		a.node.Wake()
	}
	m, err := managed.New(s)
	if err != nil {
		return nil, err
	}
	a.log.Info("the runtime is managed", "runtime", m.Name(), "network", cmp.Or(m.NoNetwork(), m.Warning(), "ok"))
	if w := m.Warning(); w != "" {
		a.log.Warn(w)
	}
	return m, nil
}

// prepareRuntime gives a runtime of the agent's own what it needs, and learns who makes cgroups. Before
// anything runs in the runtime it records which one it is.
func (a *Agent) prepareRuntime(ctx context.Context, down context.CancelCauseFunc) error {
	if a.managed != nil {
		if err := a.managed.Prepare(ctx, a.cri); err != nil {
			return err
		}
	}
	if a.once == nil {
		if err := a.root.KeepRuntime(a.cri.Endpoint(), checkpoint.ReadBoot()); err != nil {
			a.log.Warn("which runtime it is is not recorded: an agent that starts while it is down may take another one", "err", err)
		}
	}
	return a.cgroups.Follow(ctx, a.cri, down)
}

// runManaged keeps the agent's own runtime running, and returns after the first try to start it:
// before that it is no trouble that it does not answer.
func (a *Agent) runManaged(ctx context.Context, parts *sync.WaitGroup) {
	if a.managed == nil {
		return
	}
	parts.Go(func() { a.managed.Run(ctx) })
	select {
	case <-a.managed.Tried():
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a.cri.Reconnect(ctx)
}

// Managed returns the runtime that this agent starts; nil: it uses somebody else's.
func (a *Agent) Managed() *managed.Runtime { return a.managed }

// Reread configures how settings are read again while the agent runs.
type Reread = reload.Reread

// SettingsError reports settings with which no agent can start.
type SettingsError = server.SettingsError

// newHosts returns the keeper that lists pods in the hosts files of each other.
func (a *Agent) newHosts(m *node.Node, former []*checkpoint.Checkpoint) *podhosts.Keeper {
	return podhosts.New(podhosts.Config{Store: a.store, Root: a.cfg.Root, Host: m.Now, Suffix: settings.NameSuffix(a.cfg),
		On: func() bool { return a.live.Load().PodHosts }, Former: former, Fault: a.metrics.Panic, Log: a.log})
}

// newResolv returns the keeper of the name servers of pods.
func (a *Agent) newResolv(m *node.Node) *podresolv.Keeper {
	return podresolv.New(podresolv.Config{Root: a.cfg.Root, File: a.cfg.ResolvConf, Host: m.Now, Pods: a.store.Pods,
		On: func() bool { return a.live.Load().FollowResolvConf }, Fault: a.metrics.Panic, Log: a.log,
		Problem: func(text string) {
			a.store.SetProblem("resolv.conf", text)
			if text != "" {
				a.recordTrouble("ResolvConfRefused", text)
			}
		}})
}

// newNodeReporter returns the reporter of the Node, which sends heartbeats while the sync loop
// turns.
func (a *Agent) newNodeReporter(m *node.Node) *node.Reporter {
	r := &node.Reporter{Machine: m, Store: a.store, Cri: a.cri, Runtime: a.watch, Devices: a.devices, Events: a.events, Turned: a.sync.lastTurn, Late: 2*syncTick + node.NodeEvery/2, Log: a.log,
		Info: node.ReadNodeInfo("/", m.Boot.ID, a.version), Measure: node.ReadSignals, Also: a.trends.Sample, Other: make(chan struct{}, 1),
		Full: func() (int, bool) { return a.images.Bounds().High, a.images.Shortfall().Bytes > 0 }, Pressed: map[v1.NodeConditionType]time.Time{}}
	r.Port = a.server.Port
	return r
}

// prepareShutdown wires the order in which pods stop before the machine shuts down.
func (a *Agent) prepareShutdown(power <-chan os.Signal) {
	q := a.sync.down
	periods, delays := settings.Shutdown(a.cfg)
	q.Periods, q.Changed, a.sync.power, a.node.Down = periods, a.node.Wake, power, q.On
	if delays {
		a.inhibitor = &shutdown.Inhibitor{Needs: shutdown.Total(periods), Orders: q.Orders, Done: q.Done,
			Connect: shutdown.SystemBus, DropIn: shutdown.DropIn, Log: a.log, Event: a.recordTrouble,
			Record: &shutdown.Record{Path: a.root.Path(shutdown.TimesFile), Shown: a.metrics.Shutdown}}
	}
}

// stopsFirst reports whether the former version stops before anything of p is fetched.
func (a *Agent) stopsFirst(p *v1.Pod) bool { return update.StopsFirst(p, a.live.Load().UpdateStrategy) }

// limits returns what p must meet when it replaces a former version.
func (a *Agent) limits(p *v1.Pod) update.Limits {
	c := a.live.Load()
	return update.LimitsOf(p, c.UpdateHealth, c.UpdateStable)
}

// follows returns how often it is checked whether the tags of p have moved; 0: never, as in one run
// of pods.
func (a *Agent) follows(p *v1.Pod) time.Duration {
	if a.once != nil {
		return 0
	}
	return follows(p, a.live.Load())
}

func follows(p *v1.Pod, c *config.Config) time.Duration {
	every, said, _ := annotations.FollowOf(p)
	if said {
		return every
	}
	return c.FollowImages
}

// openHolds reads the owner's holds and stops.
func (a *Agent) openHolds(checkpoints []*checkpoint.Checkpoint) {
	if a.once != nil {
		return
	}
	s, err := hold.Open(a.root, a.workers.Disk.Machine.Boot, a.store, checkpoints)
	if err != nil {
		a.log.Error("stopped and held pods are not known for sure", "err", err)
		a.recordTrouble("StateFileDamaged", err.Error())
	}
	a.sync.setHolds(s, func() rollout.Rules { return settings.Gate(*a.live.Load()) }, checkpoints)
}

// listenPodResources binds the socket on which clients of a kubelet ask what containers have for
// themselves; nil: the settings want none, or it cannot be bound, without which pods can run. The
// lock of the root folder is held, so that no other agent has the socket.
func (a *Agent) listenPodResources() *podresources.Server {
	if !a.cfg.PodResources {
		return nil
	}
	s, err := podresources.Listen(podresources.Config{
		Path:        a.root.Path("pod-resources", "kubelet.sock"),
		Active:      func() []*v1.Pod { return overview.Active(a.store) },
		Pod:         a.store.Pod,
		CPUs:        func(uid, container string) []int { return a.pins.Own(uid, container) },
		Allocatable: func() []int { return a.pins.Allocatable() },
		Devices: func(p *v1.Pod, container string) map[string][]string {
			return a.devices.Own(p.Namespace+"/"+p.Name, string(p.UID), container)
		},
		AllDevices: a.devices.Allocatable,
		Count:      a.metrics.PodResources,
		Log:        a.log,
	})
	if err != nil {
		text := "no client can ask for the resources of pods until monopod starts again: " + err.Error()
		if disk.Unwritable(err) {
			text += ": make room on the disk of the root folder"
		}
		a.log.Error(text)
		a.recordTrouble("FailedListen", text)
	}
	return s
}

// requests returns the requests that the owner may send to the agent.
func (a *Agent) requests() []server.Request {
	pods := a.sync.requests(a.cfg.NodeName)
	return append(a.imageRequests(),
		server.Restart(a.sync.Restart),
		server.Forget(a.forget),
		server.OfPod("stop", pods.Stop),
		server.OfPod("start", pods.Start),
		server.OfPodOrNode("hold", pods.Hold),
		server.OfPodOrNode("release", pods.Release),
		server.OfPod("rollback", func(ctx context.Context, key manifests.Key, q url.Values) error {
			return a.sync.Rollback(ctx, key, q.Get("to"), hold.Line(q.Get("reason")))
		}),
		server.History(func(ctx context.Context, namespace, pod string) (*status.History, error) {
			return a.sync.History(ctx, manifests.Key{Namespace: namespace, Name: pod})
		}),
		server.Outlook(a.outlook),
	)
}

func (a *Agent) collector(needs *gc.ImageNeeds, every time.Duration) image.CollectorConfig {
	limits := settings.Images(a.cfg)
	limits.Every = every
	return image.CollectorConfig{
		CRI: a.cri, Limits: limits, Needs: needs.All, History: a.root.Path("images.json"), ClockSet: checkpoint.IsBelievable,
		Statfs: func(dir string) (capacity, available uint64, err error) {
			free, err := stats.FreeOn(dir)
			return free.Capacity, free.Available, err
		},
		Archived: a.archives.Given, Collected: a.metrics.Collected, Log: a.log, Event: a.recordTrouble,
	}
}

// newArchives returns the keeper of the folders of image archives.
func (a *Agent) newArchives() *archives.Keeper {
	c := settings.Archives(a.cfg)
	c.CRI, c.Up, c.Log = a.cri, a.watch.Up, a.log
	c.Free = func(dir string) (uint64, error) {
		free, err := stats.FreeOn(dir)
		return free.Available, err
	}
	c.Problem = func(path, text string) {
		a.store.SetProblem("archive "+path, text)
		if text != "" {
			a.recordTrouble("ImageArchiveBroken", text)
		}
	}
	c.Came = func(ctx context.Context, names []string) { _ = a.imagesCame(ctx, names) } // its only error is that ctx has ended
	return archives.New(c)
}

// pulls returns the settings of image pulls.
func (a *Agent) pulls(k *image.Keyring) image.Config {
	c := settings.Pulls(a.cfg, k, a.metrics, a.once != nil)
	if a.archives != nil {
		c.Archives = a.archives
	}
	return c
}

// newReloader wires the parts that use live settings; nil: settings are read once.
func (a *Agent) newReloader(o Options) *reload.Reloader {
	if o.Reread == nil {
		return nil
	}
	from := *o.Reread
	if abs, err := filepath.Abs(from.File); err == nil && from.File != "" { // the path that is watched
		from.File = abs
	}
	return &reload.Reloader{From: from, Live: &a.live, Store: a.store, Log: a.log, Level: cmp.Or(o.Level, &slog.LevelVar{}),
		Logs: a.rotator.Set, Images: a.images.SetBounds,
		Rate: a.workers.Images.SetRate, Pods: a.sync.Wake, Node: a.node.Wake, Hosts: a.hosts.Wake, Resolv: a.resolv.Wake, Telling: a.notify.Reloading}
}

// newNotifier returns the notifier of the service manager. Its heartbeats are those of the sync
// loop: the service manager restarts an agent whose loop is stuck.
func (a *Agent) newNotifier() *notify.Notifier {
	send, every := notify.Sender(a.log)
	return &notify.Notifier{Send: send, Every: every, Started: func() error {
		return overview.LookedAt(a.store, a.sync.names(), a.sync.read(), a.watch.Ready())
	}, Changes: a.store.Changes,
		Alive:  func() bool { return time.Since(a.sync.lastTurn()) <= max(2*syncTick, every) },
		Status: func() string { return notify.Line(a.store.Pods(), a.store.Runtime(), a.store.Manifests()) }}
}

// Close releases what New acquired. It may be called more than once.
func (a *Agent) Close() {
	a.closeButRoot()
	if a.root != nil {
		a.root.Close()
	}
}

// closeButRoot closes all but the root dir, which stays locked.
func (a *Agent) closeButRoot() {
	if a.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), worker.LeaveIn)
		defer cancel()
		a.store.Close(ctx)
	}
	if a.events != nil {
		a.events.Close()
	}
	if a.cri != nil {
		a.cri.Close()
	}
	if a.workers != nil {
		a.workers.OOMKills.Close()
	}
}
