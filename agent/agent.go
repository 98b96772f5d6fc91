package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/archives"
	"monopod/agent/checkpoint"
	"monopod/agent/cnicache"
	"monopod/agent/config"
	"monopod/agent/devices"
	"monopod/agent/events"
	"monopod/agent/gc"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/logrotate"
	"monopod/agent/managed"
	"monopod/agent/message"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/notify"
	"monopod/agent/overview"
	"monopod/agent/pinning"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podhosts"
	"monopod/agent/podresolv"
	"monopod/agent/podresources"
	"monopod/agent/probe"
	"monopod/agent/reload"
	"monopod/agent/saidonce"
	"monopod/agent/server"
	"monopod/agent/settings"
	"monopod/agent/shutdown"
	"monopod/agent/slots"
	"monopod/agent/stats"
	"monopod/agent/status"
	"monopod/agent/volume"
	"monopod/agent/worker"
	"monopod/cri"
	"monopod/manifests"
	"monopod/manifests/fetch"
	"monopod/manifests/layers"
)

// Agent is one monopod on one root dir. New makes it, Run runs it once.
type Agent struct {
	cfg          config.Config                 // at start
	live         atomic.Pointer[config.Config] // at present: the reloader writes it
	version      string
	log          *slog.Logger
	root         *checkpoint.Root
	cri          *cri.Client
	managed      *managed.Runtime // nil: the runtime is somebody else's
	store        *status.Store
	events       *events.Recorder
	server       *server.Server
	healthz      *server.Server       // nil: no port serves /healthz alone
	podResources *podresources.Server // nil: no client may ask what containers have for themselves
	source       source
	known        int            // how many last good versions there were at start
	fetch        *fetch.Fetcher // nil: manifests come from no URL
	watch        *pleg.Watch
	sync         *syncLoop
	workers      *worker.Pool
	images       *image.Collector
	orders       image.Orders     // pulls that the owner requested
	archives     *archives.Keeper // nil: an agent of one run has no folders of archives
	needs        *gc.ImageNeeds
	cgroups      *node.PodCgroups
	rotator      *logrotate.Rotator
	pins         *pinning.Keeper // nil: containers share all CPUs
	devices      *devices.Keeper
	garbage      *gc.Garbage
	trash        *gc.Trash
	hosts        *podhosts.Keeper
	resolv       *podresolv.Keeper
	metrics      *metrics.Metrics
	node         *node.Reporter
	stats        *stats.Collector
	trends       *stats.Trends
	texts        manifestTexts
	notify       *notify.Notifier
	once         *once // nil: an agent that keeps pods running

	reloader  *reload.Reloader    // nil: the settings are read once
	inhibitor *shutdown.Inhibitor // nil: the shutdown of the machine is not delayed
	scrapes   saidonce.Errors     // the panics in scrapes that were logged
}

// openRoot opens the root dir, unless its pods are another agent's, with the list of those that it took
// over.
func openRoot(dir string) (*checkpoint.Root, error) {
	if err := checkpoint.OfOthers(dir); err != nil {
		return nil, err
	}
	r, err := checkpoint.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := r.ReadAdopted(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// New checks the settings, locks the root dir and binds the endpoints. once makes
// an agent for a single run of given pods; nil: it keeps the pods of the manifests
// running. Each error is one sentence for the person at the command line. The
// caller must call Run.
func New(cfg config.Config, once *Once, o Options) (_ *Agent, err error) {
	if cfg, err = settings.Complete(cfg, once != nil); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, version: o.Version, log: cmp.Or(o.Log, slog.Default()), once: newOnce(once)}
	a.live.Store(&cfg)
	defer func() {
		if err != nil {
			a.Abandon()
		}
	}()
	if a.root, err = openRoot(cfg.Root); err != nil {
		return nil, err
	}
	if once == nil {
		a.root.KeepNodeName(cfg.NodeName)
	}
	if a.cri, err = cri.Dial(settings.Endpoints(cfg)...); err != nil {
		return nil, err
	}
	if a.store, err = status.Open(a.root.Path("status"), a.log); err != nil {
		return nil, err
	}
	a.events = events.Open(events.Config{Path: a.root.Path("status", "events.jsonl"), Node: cfg.NodeName, Log: a.log})
	a.store.OnTrouble(func(err error) { a.recordTrouble("FailedStatusWrite", err.Error()) })
	a.root.Complain(a.log, a.recordTrouble)
	a.root.CheckRuntime()
	checkpoints, err := a.root.Checkpoints(a.log)
	if err != nil {
		return nil, err
	}
	machine, err := node.New(once.settingsOfNode(settings.Node(cfg), a.root.Instance), func() node.NodeSettings { return settings.Node(*a.live.Load()) }, a.root.Instance, a.log)
	if err != nil {
		return nil, err
	}
	a.metrics = a.newMetrics(machine)
	if a.managed, err = a.newManaged(); err != nil {
		return nil, err
	}
	given, retained := a.root.Objects(a.log)
	a.newSource(machine, checkpoints, given)
	if err := a.build(machine, checkpoints, once, o); err != nil {
		return nil, err
	}
	a.workers.Disk.Objects.Start(given, retained)
	if once == nil {
		a.root.UseObjects(a.workers.Disk.Objects.All)
	}
	a.sync = newSyncLoop(a.workers, a.store, a.needs, cfg.Manifests, checkpoints)
	assignOwn(a.sync.table, a.workers, checkpoints)
	a.sync.trials.limits, a.sync.follow.every = a.limits, a.follows
	a.sync.history.off = once != nil
	a.openHolds(checkpoints)
	measured := a.measured(machine)
	a.stats, a.trends = stats.New(measured), stats.NewTrends(measured)
	if a.server, err = a.listen(o.Name); err != nil {
		return nil, err
	}
	if a.healthz, err = a.listenHealthz(); err != nil {
		a.server.Close()
		return nil, err
	}
	a.podResources = a.listenPodResources()
	a.node, a.notify = a.newNodeReporter(machine), a.newNotifier()
	a.devices.Changed = a.node.Wake
	a.reloader = a.newReloader(o)
	if once == nil {
		a.prepareShutdown(o.Power)
	}
	a.logStart()
	return a, nil
}

// logStart logs what starts, and where a browser finds it.
func (a *Agent) logStart() {
	said := []any{"version", a.version, "node", a.cfg.NodeName, "manifests", strings.Join(a.cfg.Manifests, ", "),
		"root", a.cfg.Root, "runtime", a.cri.Endpoint(), "managed", a.cfg.ManagedRuntime, "instance", a.root.Instance}
	if page := a.server.Page(); page != "" {
		said = append(said, "page", page)
	}
	a.log.Info("monopod starts", said...)
}

// source is what gives the desired pods and objects: one folder, or several.
type source interface {
	Run(context.Context)
	Snapshots() <-chan manifests.Snapshot
	SetDoubt(bool)
	Forget(context.Context, manifests.Key) error
	ForgetObject(context.Context, manifests.ObjectKey) error
}

// newSource makes the source of manifests.
func (a *Agent) newSource(machine *node.Node, checkpoints []*checkpoint.Checkpoint, given []*manifests.Object) {
	c := manifests.SourceConfig{
		RemovalSettle: a.cfg.RemovalSettle,
		Options:       settings.Manifests(a.cfg),
		Known:         manifests.AsGiven(checkpoint.LastGood(checkpoints)),
		Record:        a.root.Folder(a.log),
		Save:          a.root.SaveFolder, KnownObjects: given, SaveObjects: a.root.SaveObjects,
		Boot:  machine.Boot.ID,
		Log:   a.log,
		Fault: a.metrics.Panic, Strict: !a.cfg.InsecureManifests, Root: a.cfg.Root,
	}
	if url := a.cfg.ManifestURL; url != "" {
		ask := settings.Fetch(a.cfg, a.root.Answer(url, a.log))
		ask.Serial, ask.SaveSerial = a.root.Serial(url, a.log), a.saverOfSerial(url)
		a.fetch = fetch.New(ask)
		c.URL, c.Cached, c.Answers = url, a.fetch.Known, a.fetch.Answers()
		c.SaveAnswer = func(answer manifests.Answer) error { return a.root.SaveAnswer(url, answer) }
	}
	a.known = len(c.Known)
	a.source = sourceOf(a.cfg.Manifests, c)
}

// saverOfSerial returns what saves which signed content of the URL counted last.
func (a *Agent) saverOfSerial(url string) func(manifests.Serial) error {
	var said saidonce.Error
	return func(s manifests.Serial) error {
		err := a.root.SaveSerial(url, s)
		if said.IsNew(saidonce.Cause(err)) {
			a.log.Error("the serial number of the signed list cannot be saved; it is tried again, "+
				"and after a restart before that an earlier list may count", "err", err)
		}
		return err
	}
}

// sourceOf returns what reads the folders, the lowest first.
func sourceOf(dirs []string, c manifests.SourceConfig) source {
	if len(dirs) > 1 {
		return layers.New(dirs, c)
	}
	if len(dirs) == 1 {
		c.Dir, c.Record = dirs[0], c.Record.Of(dirs[0])
	}
	return manifests.NewSource(c)
}

// listen binds the endpoints.
func (a *Agent) listen(name func(string) string) (*server.Server, error) {
	who := settings.Access(a.cfg)
	who.Name = name
	return server.Listen(server.Config{
		Listen:  a.cfg.Listen,
		Socket:  a.cfg.Socket,
		Held:    a.sync.holds.Held,
		Access:  who,
		NoTCP:   a.notServed("tcp", status.TCPNotServed, message.Fixed("the TCP address is served")),
		Store:   a.store,
		PodLogs: a.cfg.PodLogs,
		Version: a.version,
		Images: func(ctx context.Context) (*status.Images, error) {
			return overview.Images(ctx, a.cfg.NodeName, a.images, a.archives.List())
		},
		Events:   a.events,
		Handlers: a.pages(), Watch: a.metrics.Serve,
		Requests: a.requests(), PodsKnown: a.sync.podsKnown,
		Running:  func(ctx context.Context) ([]v1.Pod, error) { return overview.Running(ctx, a.watch.Lister) },
		Settings: func() map[string]any { return a.live.Load().Configz() },
		Trends:   a.trends.Of, Usage: a.nodeUsage, ManifestText: a.texts.read,
		Checks: a.healthChecks(),
		Ready:  []server.Check{{Name: "manifests-read", Func: a.sync.read}, {Name: "pods-listed", Func: a.watch.Ready}},
		Log:    a.log,
	})
}

func (a *Agent) healthChecks() []server.Check {
	return []server.Check{{Name: "syncloop", Func: a.sync.healthy}}
}

// listenHealthz binds the address that serves /healthz alone, as a kubelet's does: without
// authentication. It returns nil if the settings want none.
func (a *Agent) listenHealthz() (*server.Server, error) {
	if a.cfg.HealthzPort == 0 {
		return nil, nil
	}
	return server.Listen(server.Config{
		HealthOnly: true,
		Listen:     net.JoinHostPort(a.cfg.HealthzAddress, strconv.Itoa(a.cfg.HealthzPort)),
		NoTCP:      a.notServed("healthz", "healthzPort is not served", message.Fixed("healthzPort is served")),
		Store:      a.store,
		Checks:     a.healthChecks(),
		Log:        a.log,
	})
}

// servers returns what is bound.
func (a *Agent) servers() []*server.Server {
	all := []*server.Server{a.server, a.healthz}
	return slices.DeleteFunc(all, func(s *server.Server) bool { return s == nil })
}

// build wires the parts that act on the runtime.
func (a *Agent) build(machine *node.Node, checkpoints []*checkpoint.Checkpoint, once *Once, o Options) error {
	a.watch = pleg.NewWatch(a.cri, a.root.Marks, a.store, a.log)
	a.watch.Metrics, a.cri.Observe, a.watch.Known = a.metrics, a.metrics.Call, a.root.StoredPods
	var err error
	if a.cgroups, err = node.NewPodCgroups(machine, a.metrics, checkpoints); err != nil {
		return err
	}
	a.watch.Lister.PodLogs, a.watch.Vanished = a.cfg.PodLogs, a.cgroups.NewlyVanished
	a.watch.Events, a.watch.Node = a.events, a.cfg.NodeName
	if a.managed != nil {
		a.watch.Remedy = a.managed.NoNetwork()
	}
	a.rotator = logrotate.New(settings.Logs(a.cfg), pleg.LogRuntime{Cri: a.cri, Watch: a.watch}, a.log)
	a.rotator.Fault = a.metrics.Panic
	links, plans := settings.LogLinks(a.cfg, once != nil), func() plan.PlanSettings { return settings.Plans(*a.live.Load()) }
	a.garbage = &gc.Garbage{Root: a.root, Cgroups: a.cgroups, Lister: a.watch.Lister, Up: a.watch.Up,
		PodLogs: a.cfg.PodLogs, LogLinks: links, Dead: func() int { return plans().DeadContainers }, Log: a.log, Event: a.recordTrouble, Metrics: a.metrics}
	a.trash = gc.NewTrash(a.garbage)
	a.watch.Sweep = func(ctx context.Context, pods map[manifests.Key]*pleg.Listed) { a.garbage.Collect(ctx, pods, true) }
	keyring, err := settings.Keyring(a.cfg, a.log)
	if err != nil {
		return err
	}
	a.needs = &gc.ImageNeeds{Root: a.root}
	a.garbage.Needs = a.needs
	if once == nil {
		a.archives = a.newArchives()
	}
	a.images = image.NewCollector(a.collector(a.needs, o.CollectEvery))
	a.needs.Changed = a.images.Wake
	a.hosts, a.resolv = a.newHosts(machine, checkpoints), a.newResolv(machine)
	if a.pins, err = a.newPins(once != nil); err != nil {
		return err
	}
	a.devices = devices.New(settings.Devices(a.cfg), a.log, a.recordTrouble)
	a.workers = &worker.Pool{
		Cri:     a.cri,
		Images:  image.New(a.cri, a.pulls(keyring)),
		Prober:  probe.Prober{Observe: overview.ProbeCounter(a.metrics)},
		Metrics: a.metrics,
		Store:   a.store,
		Events:  a.events,
		Disk: &instance.Disk{
			Root: a.root, Machine: machine, Hosts: a.hosts, Resolv: a.resolv, Cgroups: a.cgroups, Rotator: a.rotator,
			PodLogs: a.cfg.PodLogs, LogLinks: links, KeepLogs: once != nil, Observe: a.observeVolume, Trashed: a.trash.Wake,
		},
		CNI:            cnicache.Cache{Dir: cnicache.Dir, Log: a.log},
		Watch:          a.watch,
		Log:            a.log,
		Sandboxes:      slots.New(startsPerCore * runtime.NumCPU()),
		Containers:     slots.New(startsPerCore * runtime.NumCPU()),
		ContainerStops: slots.NewWindow(stopsPerCore * runtime.NumCPU()),
		SandboxStops:   slots.New(runtime.NumCPU()),
		Removals:       slots.New(runtime.NumCPU()),
		CPUs:           a.pins,
		Devices:        a.devices,
		OOMKills:       openMemoryLog(a.log),
		Suffix:         settings.NameSuffix(a.cfg),
		RuntimeClasses: a.cfg.RuntimeClasses,
		Settings:       plans,
		StopsFirst:     a.stopsFirst,
		StartFailed:    once.failed(),
	}
	return nil
}

// Run keeps the pods running until ctx ends. It leaves them running.
func (a *Agent) Run(ctx context.Context) error {
	defer a.Close()
	node.RecordStart(a.events, a.cfg.NodeName, a.root, a.log)
	node.RecordResolvConf(a.events, a.workers.Disk.Machine.Now(), a.cfg.ResolvConf)
	a.source.SetDoubt(a.once == nil && a.root.InDoubt(a.known, a.log))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.watch.Prepare = func(ctx context.Context) error { return a.prepareRuntime(ctx, cancel) }
	a.watch.Refuse = cancel
	a.orders.Puller, a.orders.Until = a.workers.Images, ctx
	a.sync.goesDown = a.inhibitor != nil && a.inhibitor.AskFirst(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { a.events.Run(ctx) })
	if a.once == nil {
		parts.Go(func() { a.source.Run(ctx) })
		if a.fetch != nil {
			parts.Go(func() { a.fetch.Run(ctx) })
		}
		parts.Go(func() { a.archives.Run(ctx) })
		parts.Go(func() { a.images.Run(ctx) }) // an agent of one run removes no images
		parts.Go(func() { a.node.Run(ctx) })
		parts.Go(func() { a.notify.Run(ctx) })
	}
	parts.Go(func() {
		a.runManaged(ctx, &parts)
		a.watch.Run(ctx)
	})
	parts.Go(func() { a.cgroups.Run(ctx) })
	parts.Go(func() { a.rotator.Run(ctx) })
	parts.Go(func() { a.pins.Run(ctx) })
	parts.Go(func() { a.devices.Run(ctx) })
	parts.Go(func() { a.garbage.Run(ctx) })
	parts.Go(func() { a.trash.Run(ctx) })
	parts.Go(func() { volume.RecordFormerClaims(ctx, a.root.Dir, a.log) })
	parts.Go(func() { a.hosts.Run(ctx) })
	parts.Go(func() { a.resolv.Run(ctx) })
	parts.Go(func() { a.watchMemory(ctx) })
	if a.inhibitor != nil {
		parts.Go(func() { a.inhibitor.Run(ctx) })
	}
	if a.reloader != nil {
		parts.Go(func() { a.reloader.Run(ctx) })
	}
	serve := func(run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("serve: %w", err))
			}
		})
	}
	serve(a.podResources.Run)
	for _, s := range a.servers() {
		serve(s.Run)
	}
	parts.Go(func() { a.sync.Run(ctx, a.snapshots(), a.watch) })
	parts.Wait()
	a.workers.Images.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if a.once != nil {
		return errors.Join(err, a.leave(context.WithoutCancel(ctx), err == nil))
	}
	a.root.EndedCleanly()
	if err != nil {
		return err
	}
	a.log.Info("monopod ends; its pods run on")
	return nil
}
