package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cnicache"
	"monopod/agent/config"
	"monopod/agent/devices"
	"monopod/agent/events"
	"monopod/agent/gc"
	"monopod/agent/hold"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/logrotate"
	"monopod/agent/message"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/overview"
	"monopod/agent/pinning"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podhosts"
	"monopod/agent/podspec"
	"monopod/agent/probe"
	"monopod/agent/rollout"
	"monopod/agent/settings"
	"monopod/agent/slots"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/volume"
	"monopod/agent/worker"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

// rig is an agent without manifests, server and signals, on a runtime in memory.
type rig struct {
	*testing.T
	*critest.Runtime
	dir     string
	root    *checkpoint.Root
	store   *status.Store
	events  *events.Recorder
	metrics *metrics.Metrics
	offers  chan manifests.Snapshot
	watch   *pleg.Watch
	hosts   *podhosts.Keeper
	sync    *syncLoop
	owner   *hold.Requests
	power   chan os.Signal
	stop    func() // ends this agent; the next one is started with start
	life    *life  // how it is killed
	log     *lines
	names   map[string]string // of containers that were, by id; see remove
	shared  bool              // somebody else has a pod of the same name

	settings  *atomic.Pointer[config.Config] // as they are now
	configure func(*config.Config)           // nil: as it is
	links     string                         // folder of links to logs; "": none are made
	machine   func(*podspec.Host)            // likewise
	options   manifests.Options
	facts     func(*node.Facts)
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // of probes; nil: all connections are refused
	booted    time.Time                                                            // when its clock began; zero: long ago
	boot      checkpoint.Boot                                                      // zero: this machine's
	system    string                                                               // the CPUs as in /sys/devices/system; "": this machine's
	pins      *pinning.Keeper                                                      // of the agent
	devices   *devices.Keeper                                                      // likewise
	proc      string                                                               // where containers' processes are; "": this machine's
	cgroups   *node.PodCgroups                                                     // nil: pods have none
	mangle    func(args, reply any)                                                // see life; must be set before start
	goingDown bool                                                                 // logind says so when the agent starts
	known     []*manifests.Pod                                                     // last good versions that start found
	kept      string                                                               // see life; "": beside the root dir
	copied    func() bool                                                          // see life
	wire      func(grpc.ClientConnInterface) grpc.ClientConnInterface              // what calls go through on their way; nil: nothing
	whole     func(do func() error) error                                          // lets do change the root dir, whatever its disk takes; nil: do() is enough
}

// lines is what the agent logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// live runs a test in a bubble with an agent that has just been started.
func live(t *testing.T, test func(*rig)) { liveOn(t, nil, test) }

// liveOn runs a test on a node that differs from this machine.
func liveOn(t *testing.T, facts func(*node.Facts), test func(*rig)) {
	liveWith(t, func(r *rig) { r.facts = facts }, test)
}

// liveWith runs a test with an agent that prepare may change before it starts.
func liveWith(t *testing.T, prepare, test func(*rig)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: dir, log: &lines{}}
		prepare(r)
		r.AddImage("img:1", "img:2")
		r.start()
		defer func() { r.stop() }()
		test(r)
		if twice := r.DoubleRunning(); len(twice) > 0 && !r.shared {
			t.Errorf("ran twice at a time: %v", twice)
		}
		if !strings.HasPrefix(t.Name(), "TestAPanic") && strings.Contains(r.log.String(), "monopod itself went wrong") {
			t.Error("a panic was contained")
		}
		if t.Failed() {
			t.Logf("the agent's log:\n%s", r.log)
		}
	})
}

// clockIsSet has the agent of a rig start on a machine whose clock was set, on a Saturday at 00:00 UTC:
// windows count by such a clock alone, and a bubble begins in 2000.
func clockIsSet(*rig) { time.Sleep(time.Until(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC))) }

// start starts an agent on the rig's root dir.
func (r *rig) start() {
	r.Helper()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	root, err := checkpoint.OpenRoot(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn := r.Conn()
	if r.wire != nil {
		conn = r.wire(conn)
	}
	r.life = newLife(conn, r.dir, cancel)
	r.life.mangle = r.mangle
	if r.kept != "" {
		r.life.kept = r.kept
	}
	r.life.copied = r.copied
	client := cri.New(r.life)
	if r.store, err = status.Open(root.Path("status"), log); err != nil {
		r.Fatal(err)
	}
	root.Complain(log, nil)
	checkpoints, err := root.Checkpoints(log)
	if err != nil {
		r.Fatal(err)
	}
	r.known = manifests.AsGiven(checkpoint.LastGood(checkpoints))
	cfg := config.Default()
	cfg.NodeName, cfg.Root, cfg.PodLogs, cfg.ResolvConf = "n", r.dir, filepath.Join(r.dir, "logs"), "/dev/null"
	if r.configure != nil {
		r.configure(&cfg)
	}
	r.settings = &atomic.Pointer[config.Config]{}
	r.settings.Store(&cfg)
	plans := func() plan.PlanSettings { return settings.Plans(*r.settings.Load()) }
	r.options = settings.Manifests(cfg)
	m, err := node.New(settings.Node(cfg), func() node.NodeSettings { return settings.Node(*r.settings.Load()) }, root.Instance, log)
	if err != nil {
		r.Fatal(err)
	}
	if r.machine != nil {
		r.machine(m.Now())
		m.Read = time.Now().AddDate(1, 0, 0)
	}
	if r.boot.ID != "" || !r.boot.Since.IsZero() {
		m.Boot = r.boot
	}
	since := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	if !r.booted.IsZero() {
		since = r.booted
	}
	m.Boot.Uptime = func() time.Duration { return time.Since(since) }
	if r.facts != nil {
		r.facts(&m.Facts)
		known := m.Facts
		m.ReadFacts = func() (node.Facts, error) {
			f := known // to read the machine takes a while, and it does not change
			r.facts(&f)
			return f, nil
		}
	}
	if r.cgroups != nil {
		r.cgroups.Machine = m
		m.Base.HugePageSizes = []string{"2MB"} // as the kernel that is played has
		if err := r.cgroups.SetUp(ctx, cgroups.Cgroupfs); err != nil {
			r.Fatal(err)
		}
	}
	r.watch = pleg.NewWatch(client, root.Marks, r.store, log)
	r.watch.Lister.PodLogs, r.watch.Vanished = cfg.PodLogs, r.cgroups.NewlyVanished
	r.watch.Proc = cmp.Or(r.proc, r.watch.Proc)
	r.events = events.Open(events.Config{Node: "n", Log: log})
	r.watch.Events, r.watch.Node = r.events, "n"
	r.metrics = metrics.New(metrics.Config{NodeName: "n", State: func() metrics.State { return overview.State(r.store, r.watch, r.pins, r.sync.names()) }})
	r.watch.Metrics, client.Observe = r.metrics, r.metrics.Call
	rotator := logrotate.New(settings.Logs(cfg), pleg.LogRuntime{Cri: client, Watch: r.watch}, log)
	trash := &gc.Garbage{Root: root, Metrics: r.metrics, Lister: r.watch.Lister, Up: r.watch.Up, PodLogs: cfg.PodLogs, LogLinks: r.links, Dead: func() int { return plans().DeadContainers }, Log: log,
		Event: func(reason, text string) {
			r.events.Record(events.NodeRef("n"), v1.EventTypeWarning, reason, message.Private(text))
		},
		Needs: &gc.ImageNeeds{Root: root, Changed: func() {}}}
	r.watch.Sweep = func(ctx context.Context, pods map[manifests.Key]*pleg.Listed) { trash.Collect(ctx, pods, true) }
	if r.dial == nil {
		r.dial = nobodyListens
	}
	r.hosts = podhosts.New(podhosts.Config{Store: r.store, Root: r.dir, Host: m.Now, Suffix: settings.NameSuffix(cfg),
		On: func() bool { return r.settings.Load().PodHosts }, Former: checkpoints, Fault: r.metrics.Panic, Log: log})
	ws := &worker.Pool{Metrics: r.metrics, Prober: probe.Prober{Dial: r.dial, Observe: overview.ProbeCounter(r.metrics)}, Cri: client,
		Images: image.New(client, image.Config{Pulled: r.metrics.Pulled}), Store: r.store, Events: r.events, Disk: &instance.Disk{Root: root, Machine: m, Hosts: r.hosts, Cgroups: r.cgroups, PodLogs: cfg.PodLogs, LogLinks: r.links, Rotator: rotator},
		CNI:   cnicache.Cache{Dir: filepath.Join(r.dir, "cni"), Log: log},
		Watch: r.watch, Log: log, Sandboxes: slots.New(8), Containers: slots.New(8), ContainerStops: slots.NewWindow(256), SandboxStops: slots.New(2), Removals: slots.New(2),
		Suffix: settings.NameSuffix(cfg), RuntimeClasses: cfg.RuntimeClasses, Settings: plans, StartFailed: new(Once).failed(),
		StopsFirst: func(p *v1.Pod) bool { return update.StopsFirst(p, r.settings.Load().UpdateStrategy) }}
	noErr(r.T, volume.RecordClaims(r.dir))
	ws.Disk.Objects.Start(root.Objects(log))
	root.UseObjects(ws.Disk.Objects.All)
	r.root = root
	at := settings.Devices(cfg)
	at.Unwatched = true
	at.SpecDirs = []string{filepath.Join(r.dir, "cdi")}
	r.devices = devices.New(at, log, func(reason, text string) {
		r.events.Record(events.NodeRef("n"), v1.EventTypeWarning, reason, message.Private(text))
	})
	ws.Devices = r.devices
	r.sync = newSyncLoop(ws, r.store, trash.Needs, []string{"manifests"}, checkpoints)
	pinned := settings.Pinning(cfg, false)
	pinned.System = r.system
	r.pins, err = pinning.New(pinned, pins{client, r.watch.Lister}, log, func(reason, text string) {
		r.events.Record(events.NodeRef("n"), v1.EventTypeWarning, reason, message.Private(text))
	})
	noErr(r.T, err)
	ws.CPUs = r.pins
	if r.pins != nil {
		r.pins.Assigned = r.metrics.Pinned
	}
	assignOwn(r.sync.table, ws, checkpoints)
	r.sync.trials.limits = func(p *v1.Pod) update.Limits {
		c := r.settings.Load()
		return update.LimitsOf(p, c.UpdateHealth, c.UpdateStable)
	}
	r.sync.follow.every = func(p *v1.Pod) time.Duration { return follows(p, r.settings.Load()) }
	holds, err := hold.Open(root, m.Boot, r.store, checkpoints)
	if err != nil {
		log.Error("holds", "err", err)
	}
	r.sync.setHolds(holds, func() rollout.Rules { return settings.Gate(*r.settings.Load()) }, checkpoints)
	r.owner = r.sync.requests("n")
	r.sync.down.Periods, _ = settings.Shutdown(cfg)
	r.sync.goesDown = r.goingDown
	r.power = make(chan os.Signal, 1)
	r.sync.power = r.power
	r.offers = make(chan manifests.Snapshot, 1)
	var parts sync.WaitGroup
	parts.Go(func() { r.watch.Run(ctx) })
	parts.Go(func() { rotator.Run(ctx) })
	parts.Go(func() { trash.Run(ctx) })
	parts.Go(func() { r.hosts.Run(ctx) })
	parts.Go(func() { r.pins.Run(ctx) })
	parts.Go(func() { r.devices.Run(ctx) })
	parts.Go(func() { r.sync.Run(ctx, r.offers, r.watch) })
	r.stop = func() {
		cancel()
		parts.Wait()
		r.store.Close(context.Background())
		root.Close()
	}
}

// settle waits until nothing happens any more without time passing.
func (r *rig) settle() { synctest.Wait() }

// after lets time pass.
func (r *rig) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want offers a snapshot of manifests, one document each, and lets it take effect.
func (r *rig) want(docs ...string) {
	r.Helper()
	s := manifests.Snapshot{Complete: true}
	for k, doc := range docs {
		c := documents.Read(fmt.Sprintf("/m/%d.yaml", k), []byte(doc), r.options)
		for _, p := range c.Problems {
			if !p.Warning {
				r.Fatal(p)
			}
		}
		f := &manifests.File{Path: fmt.Sprintf("/m/%d.yaml", k), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(doc))), Hashes: map[string]poduid.ContentHash{}}
		for _, p := range c.Pods {
			s.Pods = append(s.Pods, p.Pod)
			f.Hashes[p.Key().String()] = poduid.HashOf(p.Pod)
		}
		for _, o := range c.Objects {
			s.Objects = append(s.Objects, o.Object)
		}
		s.Files = append(s.Files, f)
	}
	slices.SortFunc(s.Pods, func(a, b *manifests.Pod) int { return cmp.Compare(a.Key().String(), b.Key().String()) })
	slices.SortFunc(s.Files, func(a, b *manifests.File) int { return cmp.Compare(a.Path, b.Path) })
	if err := r.root.SaveObjects(s.Objects); err != nil { // as the Source does
		r.Log("objects not saved: ", err)
	}
	r.offers <- s
	r.settle()
}

// offer is want for manifests of which some may be refused.
func (r *rig) offer(doc string) {
	pods, _ := manifests.Decode("/m/0.yaml", []byte(doc), manifests.Options{NodeName: "n", NameSuffix: true})
	r.offers <- manifests.Snapshot{Complete: true, Pods: pods}
	r.settle()
}

// expect checks what runs: "namespace/pod/container" of each, and no more.
func (r *rig) expect(want ...string) {
	r.Helper()
	got := r.Running()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Fatalf("running %v, want %v", got, want)
	}
}

// status returns the status that is reported of a pod.
func (r *rig) status(key string) v1.PodStatus {
	r.Helper()
	p, ok := r.store.Pod(key)
	if !ok {
		r.Fatalf("no status of %s", key)
	}
	return p.Status
}

// made counts the calls that make or start something.
func (r *rig) made() int {
	return r.Count("RunPodSandbox") + r.Count("CreateContainer") + r.Count("StartContainer")
}

// manifest returns a pod's manifest; extra are lines of its spec.
func manifest(name, image string, extra ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers: [{name: c, image: %q}]\n  %s\n",
		name, image, strings.Join(extra, "\n  "))
}

func TestAPodComesAndGoes(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
		st := r.status("default/web-n")
		if st.Phase != v1.PodRunning || !st.ContainerStatuses[0].Ready || st.PodIP == "" {
			r.Errorf("status %+v", st)
		}
		r.want()
		r.after(31 * time.Second)
		r.expect()
		if left := len(r.Sandboxes()) + len(r.Containers()); left != 0 {
			r.Errorf("%d things are left in the runtime", left)
		}
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) > 0 {
			r.Errorf("left on disk: %v", dirs)
		}
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "logs", "*")); len(dirs) > 0 {
			r.Errorf("logs left: %v", dirs)
		}
		if pods := r.store.Pods(); len(pods) > 0 {
			r.Errorf("status of %s is left", pods[0].Name)
		}
	})
}

func TestAnEditReplacesThePodAndNeverOverlaps(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		old, _ := r.Container("c")
		r.want(manifest("web", "img:2"))
		r.after(31 * time.Second)
		r.expect("default/web-n/c")
		if c, _ := r.Container("c"); c.ID == old.ID || c.Config.Image.Image == old.Config.Image.Image {
			r.Errorf("container %+v", c)
		}
	})
}

// Sandboxes that nobody waits for make way for starts; one whose successor
// waits does not.
func TestTearingDownYieldsToStartsUnlessASuccessorWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("a", "img:1"), manifest("b", "img:1"))
		slow := r.Fault(critest.On("RunPodSandbox").Of("slow-n").Hang())
		r.want(manifest("a", "img:1"), manifest("b", "img:1"), manifest("slow", "img:1"))
		r.want(manifest("a", "img:2"), manifest("slow", "img:1")) // a is replaced, b goes
		r.after(time.Millisecond)
		r.expect("default/a-n/c")
		if n := len(r.Sandboxes()); n != 2 { // a's new one and b's, which yields
			r.Errorf("%d sandboxes", n)
		}
		r.after(2 * time.Second)
		if n := len(r.Sandboxes()); n != 1 {
			r.Errorf("%d sandboxes two seconds later", n)
		}
		slow.Release()
	})
}

func TestAReplacementUnderTheSameUIDBeginsAnew(t *testing.T) {
	live(t, func(r *rig) {
		r.want(fixed("img:1"))
		began := r.status("default/web-n").StartTime
		r.after(time.Hour)
		r.want(fixed("img:2", "hostname: other"))
		r.after(time.Minute)
		if c, _ := r.Container("default/web-n/c"); c.Attempt != 0 {
			r.Errorf("it begins with attempt %d", c.Attempt)
		}
		if st := r.status("default/web-n"); st.StartTime.Equal(began) {
			r.Errorf("it began at %s, as its predecessor", began)
		}
	})
}

// A call that hangs when the manifest is edited, and then the agent is told to
// end, does not keep it.
func TestACallThatHangsUnderAFormerWishDoesNotKeepTheAgent(t *testing.T) {
	live(t, func(r *rig) {
		r.Fault(critest.On("RunPodSandbox").Nth(1).Hang())
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:2"))
		started := time.Now()
		r.stop()
		if took := time.Since(started); took > worker.LeaveIn+time.Second {
			r.Errorf("the agent took %s to end", took)
		}
		r.start()
	})
}

func TestAnUnchangedManifestChangesNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		before := r.made()
		r.want("# a comment\n" + manifest("web", "img:1"))
		r.after(time.Minute)
		if r.made() != before {
			r.Errorf("%d calls more", r.made()-before)
		}
	})
}

func TestACrashLoopBacksOffAndAnotherAgentGoesOnWithIt(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		if n := r.Count("StartContainer"); n != 2 {
			r.Fatalf("started %d times, want at once and once again", n)
		}
		if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" {
			r.Errorf("state %+v", w)
		}
		r.after(10 * time.Second)
		if n := r.Count("StartContainer"); n != 3 {
			r.Fatalf("started %d times after 11 s, want 3", n)
		}
		r.stop()
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(18 * time.Second)
		if n := r.Count("StartContainer"); n != 3 {
			r.Errorf("a new agent started it after less than 20 s")
		}
		r.after(3 * time.Second)
		if n := r.Count("StartContainer"); n != 4 {
			r.Errorf("started %d times, want 4", n)
		}
		if st := r.status("default/web-n").ContainerStatuses[0]; st.RestartCount != 3 {
			r.Errorf("restart count %d, want 3", st.RestartCount)
		}
	})
}

func TestAPodThatEndedNeverRunsAgainUntilItChanges(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(3))
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.want(job)
		r.after(time.Second)
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed || st.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			r.Errorf("status %+v", st)
		}
		made := r.made()
		for _, c := range r.Containers() {
			r.RemoveContainerBehindBack(c.ID)
		}
		r.stop()
		r.start()
		r.want(job)
		r.after(time.Minute)
		if r.made() != made {
			r.Errorf("it was made again")
		}
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed || st.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			r.Errorf("status after a restart %+v", st)
		}
		r.Program("c", critest.Runs())
		r.want(manifest("job", "img:2", "restartPolicy: Never"))
		r.after(31 * time.Second)
		r.expect("default/job-n/c")
	})
}

func TestANewAgentAdoptsWhatRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("a", "img:1"), manifest("b", "img:1"))
		made := r.made()
		start := r.status("default/a-n").StartTime
		r.stop()
		r.after(time.Hour)
		r.start()
		r.want(manifest("a", "img:1"), manifest("b", "img:1"))
		r.after(time.Minute)
		if r.made() != made {
			r.Errorf("something was made again")
		}
		if st := r.status("default/a-n"); !st.StartTime.Equal(start) || st.Phase != v1.PodRunning {
			r.Errorf("status %+v, started %s before", st, start)
		}
	})
}

func TestAPodRemovedWhileTheAgentWasDownIsStoppedGracefully(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "terminationGracePeriodSeconds: 7"))
		r.stop()
		r.start()
		r.want()
		r.after(8 * time.Second)
		r.expect()
		stops := 0
		for _, c := range r.Calls() {
			if q, ok := c.Request.(*rt.StopContainerRequest); ok {
				stops++
				if q.Timeout != 7 {
					r.Errorf("grace %d s, want 7", q.Timeout)
				}
			}
		}
		if stops != 1 || len(r.Sandboxes()) != 0 {
			r.Errorf("%d stops, %d sandboxes left", stops, len(r.Sandboxes()))
		}
	})
}

func TestNothingUnknownIsRemovedWhileTheFolderCannotBeRead(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stop()
		r.start()
		clear(r.sync.pods.all) // as if the checkpoints were lost
		r.offers <- manifests.Snapshot{}
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.offers <- manifests.Snapshot{Complete: true}
		r.after(time.Minute)
		r.expect()
	})
}

func TestWhatADeadAgentDidNotComeToRemoveIsRemoved(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stop()
		left := filepath.Join(r.dir, "pods", "0123456789abcdef", "volumes")
		if err := os.MkdirAll(left, 0o750); err != nil {
			r.Fatal(err)
		}
		r.start()
		r.want(manifest("web", "img:1"))
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) != 1 {
			r.Errorf("dirs %v", dirs)
		}
		r.expect("default/web-n/c")
	})
}

func TestStrangersAreLeftAlone(t *testing.T) {
	live(t, func(r *rig) {
		r.shared = true
		other := cri.New(r.Conn())
		id, err := other.RunSandbox(context.Background(), &rt.PodSandboxConfig{
			Metadata: &rt.PodSandboxMetadata{Name: "web-n", Namespace: "default", Uid: "kubelets"},
			Labels:   map[string]string{podspec.LabelPodName: "web-n", podspec.LabelPodNamespace: "default", podspec.LabelPodUID: "kubelets"},
		}, "")
		if err != nil {
			r.Fatal(err)
		}
		r.want(manifest("web", "img:1"))
		r.want()
		r.after(time.Minute)
		if s := r.Sandboxes(); len(s) != 1 || s[0].ID != id {
			r.Errorf("sandboxes %v", s)
		}
	})
}

// Whoever may talk to the runtime may label a sandbox as ours; its uid must not
// lead out of our folders.
func TestAUIDThatIsNoFileNameIsLeftAlone(t *testing.T) {
	live(t, func(r *rig) {
		victim := filepath.Join(r.dir, "victim")
		if err := os.MkdirAll(victim, 0o755); err != nil {
			r.Fatal(err)
		}
		labels := map[string]string{podspec.LabelInstance: r.watch.Marks.Instance, podspec.LabelPodName: "web-n", podspec.LabelPodNamespace: "default", podspec.LabelPodUID: "../../victim"}
		_, err := cri.New(r.Conn()).RunSandbox(context.Background(), &rt.PodSandboxConfig{
			Metadata: &rt.PodSandboxMetadata{Name: "web-n", Namespace: "default", Uid: "x"}, Labels: labels}, "")
		if err != nil {
			r.Fatal(err)
		}
		r.want()
		r.after(time.Minute)
		if _, err := os.Stat(victim); err != nil || len(r.Sandboxes()) != 1 {
			r.Errorf("stat %v, sandboxes %v", err, r.Sandboxes())
		}
	})
}

func TestImagesArePulledWhenMissingAndTheWaitIsTold(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", 0, fmt.Errorf("no such image"))
		r.want(manifest("web", "img:9"))
		w := r.status("default/web-n").ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "ErrImagePull" || !strings.Contains(w.Message, "no such image") {
			r.Errorf("waiting %+v", w)
		}
		r.after(11 * time.Second)
		w = r.status("default/web-n").ContainerStatuses[0].State.Waiting
		if w == nil || w.Reason != "ImagePullBackOff" || !strings.Contains(w.Message, "no such image") {
			r.Errorf("waiting %+v", w)
		}
		r.OnPull("img:9", 0, nil)
		r.after(20 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestASlowPullKeepsNoOtherContainerFromBeingRestarted(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", 20*time.Minute, nil)
		r.want(strings.Replace(manifest("web", "img:9"), "containers: [", "containers: [{name: quick, image: \"img:1\"}, ", 1))
		r.after(40 * time.Second)
		r.expect("default/web-n/quick")
		if st := r.status("default/web-n"); st.ContainerStatuses[1].State.Running == nil || !strings.Contains(st.ContainerStatuses[0].State.Waiting.Message, "pulling image") {
			r.Errorf("statuses %+v", st.ContainerStatuses)
		}
		r.Exit("quick", 1)
		r.settle()
		r.expect("default/web-n/quick")
		r.after(time.Hour)
		r.expect("default/web-n/quick", "default/web-n/c")
	})
}

func TestAPodThatIsRemovedInterruptsItsPull(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", 20*time.Minute, nil)
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		r.want()
		r.after(time.Second)
		if len(r.Sandboxes()) != 0 {
			r.Errorf("the sandbox is still there")
		}
	})
}

func TestARuntimeThatGoesAwayIsWaitedForAndSaidOnce(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("a", "img:1"))
		r.Stop()
		r.after(20 * time.Second)
		if r.store.Runtime().Up {
			r.Errorf("the runtime counts as up")
		}
		r.want(manifest("a", "img:1"), manifest("b", "img:1"))
		r.after(20 * time.Second)
		r.Resume()
		r.after(2 * time.Second)
		r.expect("default/a-n/c", "default/b-n/c")
		if n := strings.Count(r.log.String(), "runtime does not answer"); n != 1 {
			r.Errorf("said %d times", n)
		}
		if c, _ := r.Container("a-n"); c.Attempt != 0 {
			r.Errorf("pod a was restarted")
		}
	})
}

// A name that the runtime still holds for a call of an agent that died is tried
// again soon, and is nobody's failure.
func TestABusyRuntimeIsAskedAgainSoon(t *testing.T) {
	live(t, func(r *rig) {
		r.Fault(critest.On("CreateContainer").Times(3).Fail(codes.Unknown, `failed to reserve container name "c_web": name "c_web" is reserved for "x"`))
		r.want(manifest("web", "img:1"))
		if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" {
			r.Errorf("waiting %+v", w)
		}
		r.after(3 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestALostEventCostsTimeOnly(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.DropEvents(10)
		r.Exit("c", 1)
		r.after(pleg.RelistWithEvents + time.Second)
		r.expect("default/web-n/c")
	})
}

func TestWithoutEventsARelistEachSecondFindsACrash(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: dir, log: &lines{}}
		r.LikeContainerd16()
		r.AddImage("img:1")
		r.start()
		defer r.stop()
		r.want(manifest("web", "img:1"))
		r.after(3 * time.Second)
		r.Exit("c", 1)
		r.after(1100 * time.Millisecond)
		r.expect("default/web-n/c")
	})
}

// One that reports that it sends events, and ends the stream, may be about to end itself.
func TestOnlyARuntimeWithoutEventsIsSaidToHaveNone(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(*rig)
		says    string
		streams int // that were asked for
	}{
		"CRI-O without them":           {func(r *rig) { r.LikeCRIO() }, "runtime has no event stream", 1},
		"CRI-O that reports them":      {func(r *rig) { r.LikeCRIO(); r.SetCRIO("1.36.3", true, "") }, "event stream breaks again and again", 3},
		"containerd whose stream ends": {func(r *rig) { r.Fault(critest.On("GetContainerEvents").Fail(codes.Unavailable, "gone")) }, "event stream breaks again and again", 3},
	} {
		t.Run(name, func(t *testing.T) {
			liveWith(t, row.prepare, func(r *rig) {
				r.after(8 * time.Second)
				if !strings.Contains(r.log.String(), row.says) || strings.Count(r.log.String(), "relisting every second") != 1 {
					t.Errorf("it does not say once: %s", row.says)
				}
				if n := r.Count("GetContainerEvents"); n != row.streams {
					t.Errorf("asked for events %d times", n)
				}
			})
		})
	}
}

// A CRI-O that sends no events is asked for them once per connection: each further one
// would wake all pods.
func TestARuntimeWhoseStreamEndsAtOnceIsNotReconnectedTo(t *testing.T) {
	liveWith(t, func(r *rig) { r.LikeCRIO() }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if n, m := r.Count("Version"), r.Count("GetContainerEvents"); n != 1 || m != 1 {
			r.Errorf("asked for its version %d times and for events %d times", n, m)
		}
		r.Exit("c", 1)
		r.after(1100 * time.Millisecond)
		r.expect("default/web-n/c")
		r.ForgetCalls()
		r.Stop()
		r.after(3 * time.Second)
		r.Resume()
		r.after(time.Minute)
		if n := r.Count("GetContainerEvents"); n != 1 {
			r.Errorf("after its restart asked for events %d times", n)
		}
		if n := strings.Count(r.log.String(), "no event stream"); n != 2 {
			r.Errorf("said %d times that there are no events:\n%s", n, r.log)
		}
	})
}
