// Package agent keeps the pods of the manifests running on a CRI runtime.
//
// A change of the manifests arrives as a Snapshot at the sync loop (sync.go),
// which owns one worker per pod name. A worker (worker.go) observes its pod in
// the runtime (observe.go), a pure function plans what is to be done (plan.go),
// and apply (apply.go) does it. Events and ticks only say "look again".
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"monopod/agent/config"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/metrics"
	"monopod/agent/probe"
	"monopod/agent/server"
	"monopod/agent/stats"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/manifests"
)

// leaveIn is how long a call that changes the runtime may still run when the
// agent is told to end; a call that takes longer is left to the runtime, and
// the next agent finds out what became of it.
const leaveIn = 5 * time.Second

// startsPerCore bounds how many sandboxes and containers are started at once:
// runtimes slow down beyond.
const startsPerCore = 4

// Agent is one monopod on one root dir. New makes it, Run runs it once.
type Agent struct {
	cfg     config.Config                 // at the start
	live    atomic.Pointer[config.Config] // as it is now, of which some changes: the reloader writes it
	version string
	log     *slog.Logger
	root    *root
	cri     *cri.Client
	store   *status.Store
	events  *events.Recorder
	server  *server.Server
	source  *manifests.Source
	watch   *watch
	sync    *syncLoop
	workers *workers
	images  *image.Collector
	needs   *imageNeeds
	cgroups *podCgroups
	rotator *logs.Rotator
	garbage *garbage
	metrics *metrics.Metrics
	node    *nodeReporter
	stats   *stats.Collector
	once    *once // nil: an agent that keeps pods for good

	reloader *reloader // nil: the settings are read once
}

// Options is what an agent is told besides the settings.
type Options struct {
	Version string
	Log     *slog.Logger   // nil: slog's default
	Level   *slog.LevelVar // follows the setting; nil: nothing does
	Reread  *Reread        // nil: the settings are read once

	CollectEvery time.Duration // how often is looked whether images must go; 0: as image has it
}

// New checks the settings, takes the root dir, and binds the endpoints. The
// agent stays for one run of its pods, or, if once is nil, keeps those of the
// manifests. Each error is one sentence for the person who started it. The caller
// must call Run.
func New(cfg config.Config, once *Once, o Options) (_ *Agent, err error) {
	if cfg, err = complete(cfg, once); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, version: o.Version, log: cmp.Or(o.Log, slog.Default()), once: newOnce(once)}
	a.live.Store(&cfg)
	defer func() {
		if err != nil {
			a.abandon()
		}
	}()
	if a.root, err = openRoot(cfg.Root); err != nil {
		return nil, err
	}
	if a.cri, err = cri.Dial(endpoints(cfg)...); err != nil {
		return nil, err
	}
	if a.store, err = status.Open(a.root.path("status"), a.log); err != nil {
		return nil, err
	}
	a.events = events.Open(events.Config{Path: a.root.path("status", "events.jsonl"), Node: cfg.NodeName, Log: a.log})
	a.store.OnTrouble(func(err error) { a.recordTrouble("FailedStatusWrite", err.Error()) })
	a.root.complain(a.log, a.recordTrouble)
	checkpoints, err := a.root.checkpoints(a.log)
	if err != nil {
		return nil, err
	}
	settings := once.settingsOfNode(settingsOfNode(cfg), a.root.instance)
	machine, err := newMachine(settings, func() nodeSettings { return settingsOfNode(*a.live.Load()) }, a.root.instance, a.log)
	if err != nil {
		return nil, err
	}
	a.source = manifests.NewSource(manifests.SourceConfig{
		Dir:     cfg.Manifests,
		Options: manifestOptions(cfg),
		Known:   lastGood(checkpoints),
		Record:  a.root.folder(a.log),
		Save:    a.root.saveFolder,
		Boot:    machine.boot.ID,
		Log:     a.log,
		Fault:   func() { a.metrics.Panic() },
	})
	a.metrics = a.newMetrics(machine)
	if err := a.build(machine, checkpoints, once, o); err != nil {
		return nil, err
	}
	a.sync = newSyncLoop(a.workers, a.store, a.needs, cfg.Manifests, checkpoints)
	a.stats = a.newStats(machine)
	if a.server, err = a.listen(); err != nil {
		return nil, err
	}
	a.node = a.newNodeReporter(machine)
	a.reloader = a.newReloader(o)
	return a, nil
}

// listen binds the endpoints.
func (a *Agent) listen() (*server.Server, error) {
	return server.Listen(server.Config{
		Listen:   a.cfg.Listen,
		Socket:   a.cfg.Socket,
		Access:   access(a.cfg),
		Store:    a.store,
		PodLogs:  a.cfg.PodLogs,
		Version:  a.version,
		Images:   a.listImages,
		Events:   a.events,
		Handlers: a.pages(), Watch: a.metrics.Serve,
		Restart:  a.sync.Restart,
		Forget:   a.forget,
		Running:  a.listRunning,
		Settings: func() map[string]any { return a.live.Load().Configz() },
		Checks:   []server.Check{{Name: "syncloop", Func: a.sync.healthy}},
		Ready:    []server.Check{{Name: "manifests-read", Func: a.sync.read}, {Name: "pods-listed", Func: a.watch.looked}},
		Log:      a.log,
	})
}

// build wires what acts on the runtime.
func (a *Agent) build(machine *machine, checkpoints []*checkpoint, once *Once, o Options) error {
	a.watch = newWatch(a.cri, a.root.instance, a.store, a.log)
	a.watch.metrics, a.cri.Observe = a.metrics, a.metrics.Call
	var err error
	if a.cgroups, err = newPodCgroups(machine, a.metrics, checkpoints); err != nil {
		return err
	}
	a.watch.podLogs = a.cfg.PodLogs
	a.watch.events, a.watch.node = a.events, a.cfg.NodeName
	a.rotator = logs.New(settingsOfLogs(a.cfg), logRuntime{cri: a.cri, watch: a.watch}, a.log)
	a.rotator.Fault = a.metrics.Panic
	links, plans := logLinks(a.cfg, once), func() planSettings { return settingsOfPlans(*a.live.Load()) }
	a.garbage = &garbage{root: a.root, cgroups: a.cgroups, lister: a.watch.lister, up: a.watch.Up,
		podLogs: a.cfg.PodLogs, logLinks: links, dead: func() int { return plans().DeadContainers }, log: a.log, event: a.recordTrouble, metrics: a.metrics}
	a.watch.sweep = func(ctx context.Context, pods map[manifests.Key]*listed) { a.garbage.collect(ctx, pods, true) }
	keyring, err := keyring(a.cfg, a.log)
	if err != nil {
		return err
	}
	a.needs = &imageNeeds{root: a.root}
	a.images = image.NewCollector(a.collector(a.needs, o.CollectEvery))
	a.needs.changed = a.images.Kick
	a.workers = &workers{
		cri:     a.cri,
		images:  image.New(a.cri, settingsOfPulls(a.cfg, keyring, a.metrics)),
		prober:  probe.Prober{Observe: probeCounter(a.metrics)},
		metrics: a.metrics,
		store:   a.store,
		events:  a.events,
		root:    a.root,
		machine: machine,
		cgroups: a.cgroups,
		watch:   a.watch,
		log:     a.log,
		starts:  make(chan struct{}, startsPerCore*runtime.NumCPU()),
		ends:    make(chan struct{}, runtime.NumCPU()),
		podLogs: a.cfg.PodLogs, logLinks: links, keepLogs: once != nil,
		suffix: nameSuffix(a.cfg), runtimeClasses: a.cfg.RuntimeClasses, settings: plans,
		rotator: a.rotator,
	}
	return nil
}

// Run keeps the pods running until ctx ends, then leaves them as they are.
func (a *Agent) Run(ctx context.Context) error {
	defer a.Close()
	a.log.Info("monopod starts", "version", a.version, "node", a.cfg.NodeName, "manifests", a.cfg.Manifests,
		"root", a.cfg.Root, "runtime", a.cri.Endpoint(), "instance", a.root.instance)
	a.recordStart()
	a.recordResolvConf(a.workers.machine.Now())
	a.source.Doubt = a.inDoubt()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.watch.prepare = func(ctx context.Context) error { return a.cgroups.follow(ctx, a.cri, cancel) }
	var parts sync.WaitGroup
	parts.Go(func() { a.events.Run(ctx) })
	if a.once == nil {
		parts.Go(func() { a.source.Run(ctx) })
		parts.Go(func() { a.images.Run(ctx) }) // who stays for one run removes no images
		parts.Go(func() { a.node.Run(ctx) })
	}
	parts.Go(func() { a.watch.Run(ctx) })
	parts.Go(func() { a.cgroups.run(ctx) })
	parts.Go(func() { a.rotator.Run(ctx) })
	parts.Go(func() { a.garbage.run(ctx) })
	if a.reloader != nil {
		parts.Go(func() { a.reloader.run(ctx) })
	}
	parts.Go(func() {
		if err := a.server.Run(ctx); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("serve: %w", err))
		}
	})
	parts.Go(func() { a.sync.Run(ctx, a.snapshots(), a.watch) })
	parts.Wait()
	a.workers.images.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if a.once != nil {
		return errors.Join(err, a.leave(context.WithoutCancel(ctx), err == nil))
	}
	a.root.endedCleanly()
	if err != nil {
		return err
	}
	a.log.Info("monopod ends; its pods run on")
	return nil
}

// Close gives back what New took. It may be called more than once.
func (a *Agent) Close() {
	if a.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveIn)
		defer cancel()
		a.store.Close(ctx)
	}
	a.events.Close()
	if a.cri != nil {
		a.cri.Close()
	}
	if a.root != nil {
		a.root.close()
	}
}

// lastGood returns the pods that the checkpoints say shall run, one per key:
// what the Source goes by while the manifests themselves cannot be read.
func lastGood(all []*checkpoint) []*manifests.Pod {
	newest := map[manifests.Key]*checkpoint{}
	for _, c := range all {
		if c.retired() {
			continue
		}
		if old := newest[c.key()]; old == nil || old.Accepted.Before(&c.Accepted) {
			newest[c.key()] = c
		}
	}
	var pods []*manifests.Pod
	for _, c := range newest {
		pods = append(pods, c.manifest())
	}
	return pods
}
