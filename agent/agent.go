// Package agent keeps the pods of the manifests running on a CRI runtime.
//
// A change of the manifests arrives as a Snapshot at the sync loop (sync.go),
// which owns one worker per pod name. A worker (worker.go) observes its pod in
// the runtime (observe.go), a pure function plans what is to be done (plan.go),
// and apply (apply.go) does it. Events and ticks only say "look again".
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

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

// Agent is one monopod on one root dir. New makes it, Run runs it once.
type Agent struct {
	cfg     Config
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
	cgroups *podCgroups
	rotator *logs.Rotator
	garbage *garbage
	metrics *metrics.Metrics
	node    *nodeReporter
	stats   *stats.Collector
	once    *once // nil: an agent that keeps pods for good

	reloader *reloader // nil: the settings are read once
}

// New checks the settings, takes the root dir, and binds the endpoints. Each
// error is one sentence for the person who started the agent. The caller must
// call Run.
func New(cfg Config) (_ *Agent, err error) {
	if cfg, err = cfg.complete(); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, log: cfg.Log}
	defer func() {
		if err != nil {
			a.abandon()
		}
	}()
	if a.root, err = openRoot(cfg.Root); err != nil {
		return nil, err
	}
	if a.cri, err = cri.Dial(cfg.endpoints()...); err != nil {
		return nil, err
	}
	if a.store, err = status.Open(a.root.path("status"), cfg.Log); err != nil {
		return nil, err
	}
	a.events = events.Open(events.Config{Path: a.root.path("status", "events.jsonl"), Node: cfg.NodeName, Log: cfg.Log})
	a.store.OnTrouble(func(err error) { a.recordTrouble("FailedStatusWrite", err.Error()) })
	a.root.complain(cfg.Log, a.recordTrouble)
	checkpoints, err := a.root.checkpoints(cfg.Log)
	if err != nil {
		return nil, err
	}
	machine, err := newMachine(cfg, a.root.instance)
	if err != nil {
		return nil, err
	}
	a.source = manifests.NewSource(manifests.SourceConfig{
		Dir:     cfg.Manifests,
		Options: cfg.manifestOptions(),
		Known:   lastGood(checkpoints),
		Record:  a.root.folder(cfg.Log),
		Save:    a.root.saveFolder,
		Boot:    machine.boot.ID,
		Log:     cfg.Log,
		Fault:   func() { a.metrics.Panic() },
	})
	a.metrics = a.newMetrics(machine)
	if err := a.build(machine, checkpoints); err != nil {
		return nil, err
	}
	a.sync = newSyncLoop(a.workers, a.store, cfg.Manifests, checkpoints)
	a.stats = a.newStats(machine)
	a.once = newOnce(cfg.Once)
	if a.server, err = a.listen(machine); err != nil {
		return nil, err
	}
	a.node = a.newNodeReporter(machine)
	a.reloader = a.newReloader(machine)
	return a, nil
}

// listen binds the endpoints.
func (a *Agent) listen(machine *machine) (*server.Server, error) {
	return server.Listen(server.Config{
		Listen:   a.cfg.Listen,
		Socket:   a.cfg.Socket,
		Access:   a.cfg.Access,
		Store:    a.store,
		PodLogs:  a.cfg.PodLogs,
		Version:  a.cfg.Version,
		Images:   a.listImages,
		Events:   a.events,
		Handlers: a.pages(), Watch: a.metrics.Serve,
		Restart:  a.sync.Restart,
		Forget:   a.forget,
		Running:  a.listRunning,
		Settings: func() map[string]any { return machine.live.Load().configz() },
		Checks:   []server.Check{{Name: "syncloop", Func: a.sync.healthy}},
		Ready:    []server.Check{{Name: "manifests-read", Func: a.sync.read}, {Name: "pods-listed", Func: a.watch.looked}},
		Log:      a.log,
	})
}

// build wires what acts on the runtime.
func (a *Agent) build(machine *machine, checkpoints []*checkpoint) error {
	a.watch = newWatch(a.cri, a.root.instance, a.store, a.log)
	a.watch.metrics, a.cri.Observe = a.metrics, a.metrics.Call
	var err error
	if a.cgroups, err = newPodCgroups(a.cfg, machine, a.metrics, checkpoints); err != nil {
		return err
	}
	a.watch.podLogs = a.cfg.PodLogs
	a.watch.events, a.watch.node = a.events, a.cfg.NodeName
	a.rotator = logs.New(a.cfg.Logs, logRuntime{cri: a.cri, watch: a.watch}, a.log)
	a.rotator.Fault = a.metrics.Panic
	a.garbage = &garbage{root: a.root, cgroups: a.cgroups, lister: a.watch.lister, up: a.watch.Up,
		podLogs: a.cfg.PodLogs, logLinks: a.cfg.LogLinks, live: machine.live, log: a.log, event: a.recordTrouble, metrics: a.metrics}
	a.watch.sweep = func(ctx context.Context, pods map[manifests.Key]*listed) { a.garbage.collect(ctx, pods, true) }
	keyring, err := a.cfg.keyring()
	if err != nil {
		return err
	}
	needs := &imageNeeds{root: a.root}
	collector := a.cfg.collector(a.cri, needs, a.metrics)
	collector.Event = a.recordTrouble
	a.images = image.NewCollector(collector)
	needs.changed = a.images.Kick
	a.workers = &workers{
		cri:     a.cri,
		images:  image.New(a.cri, a.cfg.puller(keyring, a.metrics)),
		prober:  probe.Prober{Observe: probeCounter(a.metrics)},
		metrics: a.metrics,
		needs:   needs,
		store:   a.store,
		events:  a.events,
		root:    a.root,
		machine: machine,
		cgroups: a.cgroups,
		watch:   a.watch,
		log:     a.log,
		starts:  make(chan struct{}, a.cfg.StartsAtOnce),
		ends:    make(chan struct{}, runtime.NumCPU()),
		podLogs: a.cfg.PodLogs, logLinks: a.cfg.LogLinks, keepLogs: a.cfg.Once != nil,
		rotator: a.rotator,
	}
	return nil
}

// Run keeps the pods running until ctx ends, then leaves them as they are.
func (a *Agent) Run(ctx context.Context) error {
	defer a.Close()
	a.log.Info("monopod starts", "version", a.cfg.Version, "node", a.cfg.NodeName, "manifests", a.cfg.Manifests,
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
