package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/cnicache"
	"monopod/agent/devices"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/metrics"
	"monopod/agent/oom"
	"monopod/agent/panics"
	"monopod/agent/pinning"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podimages"
	"monopod/agent/probe"
	"monopod/agent/saidonce"
	"monopod/agent/slots"
	"monopod/agent/status"
	"monopod/agent/wake"
	"monopod/cri"
	"monopod/manifests"
)

// Pool is what all workers share.
type Pool struct {
	Cri            *cri.Client
	Images         *image.Puller
	Disk           *instance.Disk
	CNI            cnicache.Cache
	Store          *status.Store
	Events         *events.Recorder
	Prober         probe.Prober
	Watch          *pleg.Watch
	Log            *slog.Logger
	Sandboxes      *slots.Slots  // for their creation
	Containers     *slots.Slots  // for their creation and start
	ContainerStops *slots.Window // for stops of containers: as many as the runtime answers soon
	SandboxStops   *slots.Slots  // for stops of sandboxes that no start waits for
	Removals       *slots.Slots  // for their removals
	States         chan State    // to the sync loop
	Metrics        *metrics.Metrics
	Born           time.Time                // when the first pod could be desired
	Uids           *admission.UidHolders    // filled by the sync loop
	Faults         saidonce.Errors          // logged panics
	Suffix         string                   // what the node adds to the names of pods
	StopsFirst     func(*v1.Pod) bool       // whether the version before stops before anything of the pod is fetched
	CPUs           *pinning.Keeper          // nil: containers run on all CPUs
	Devices        *devices.Keeper          // nil: containers get no devices
	OOMKills       *oom.Kills               // filled from the kernel's log; nil: none are known
	RuntimeClasses map[string]string        // the runtime's handlers by runtime class
	Settings       func() plan.PlanSettings // the current ones
	kills          atomic.Int64             // stops of containers whose grace period is over

	// StartFailed is called for each start of a container, "" for the pod itself, that failed for
	// the nth time in a row.
	StartFailed func(pod manifests.Key, container string, nth int, reason, message string)
}

var errNewVersion = errors.New("the manifest has changed")

// Worker keeps one pod name as desired. Its goroutine owns all fields except
// those under mu. It never has more than one instance of the pod alive.
type Worker struct {
	pod       *pod
	Observer  *pleg.Observer
	fetches   *podimages.Set
	stops     *stops
	tasks     *tasks
	hooks     *hooks
	reloads   *reloads
	probes    *probes
	report    *reporter
	start     *starter
	failures  map[string]plan.Failure // by plan.Action.Key
	failed    int                     // syncs in a row that failed
	logged    failureLog              // of these syncs
	refusals  map[string]*failureLog  // of actions, by plan.Action.Key
	noNetwork string                  // what is wrong with the pod's network, as recorded last
	unsaid    time.Time               // see plan.Facts.Unsaid
	away      plan.Refusals           // of calls, by action key
	swept     bool                    // termination logs of previous agents are gone
	edits     edits
	commit    commit

	came      atomic.Bool // images or devices that were missing have come
	objects   atomic.Bool // an object that the pod refers to has changed
	requested wake.Slot   // restart requests, or changed objects, are waiting
	mu        sync.Mutex
	desired   Update
	restarts  []*RestartRequest       // not taken yet
	changed   context.CancelCauseFunc // ends the waits for the update before
}

// Start starts the worker of a pod name. It ends with ctx.
func (ws *Pool) Start(ctx context.Context, all *sync.WaitGroup, key manifests.Key, known map[string]*checkpoint.Checkpoint, desired Update) *Worker {
	w := ws.New(ctx, key, known)
	w.desired = desired
	w.Observer = pleg.NewObserver(ws.Cri, ws.Watch.Lister, key)
	all.Go(func() { w.run(ctx) })
	return w
}

// New returns the worker of a pod name, which does not run.
func (ws *Pool) New(ctx context.Context, key manifests.Key, known map[string]*checkpoint.Checkpoint) *Worker {
	p := newPod(ws, ctx, key, known)
	w := &Worker{pod: p, failures: map[string]plan.Failure{}, refusals: map[string]*failureLog{}, away: plan.Refusals{}, requested: wake.New()}
	w.fetches = podimages.NewSet(p.fetchSettings())
	w.hooks = &hooks{pod: p, all: map[string]*hookRun{}}
	w.stops = &stops{pod: p, hooks: w.hooks, all: map[string]*stop{}}
	w.tasks = &tasks{pod: p, all: map[string]*task{}, hung: map[string]hang{}}
	w.reloads = &reloads{pod: p, all: map[string]*reload{}}
	w.report = &reporter{pod: p}
	w.probes = newProbes(p, w.report)
	w.start = &starter{pod: p, fetches: w.fetches}
	w.objects.Store(true) // one may have changed while no agent ran
	return w
}

// Wake makes the worker look at its pod again. Any goroutine may call it.
func (w *Worker) Wake() { w.pod.Wake() }

// Update gives the worker the desired pod. The newest update wins, and
// interrupts what waits for an earlier one.
func (w *Worker) Update(u Update) {
	w.mu.Lock()
	w.desired = u
	if w.changed != nil {
		w.changed(errNewVersion)
		w.changed = nil
	}
	w.mu.Unlock()
	w.Wake()
}

// nextUpdate returns the newest update and a context that ends when another comes.
func (w *Worker) nextUpdate(ctx context.Context) (context.Context, Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.changed = context.WithCancelCause(ctx)
	return ctx, w.desired
}

func (w *Worker) run(ctx context.Context) {
	defer w.pod.background.Wait()
	defer w.probes.set.Close()
	w.pod.shared.Watch.Workers.Add(w.pod.key, w.pod.woken)
	defer w.pod.shared.Watch.Workers.Remove(w.pod.key, w.pod.woken)
	w.pod.contained("status restore", w.report.restore)
	alarm := newAlarm(w.pod.woken, w.requested)
	updateCtx, update := w.nextUpdate(ctx)
	for ctx.Err() == nil {
		if updateCtx.Err() != nil {
			updateCtx, update = w.nextUpdate(ctx)
		}
		select {
		case <-w.pod.woken: // the pass looks at everything anyway
		default:
		}
		alarm.wait(updateCtx.Done(), w.timedPass(updateCtx, update))
	}
}

// pass observes the pod once and carries out its plan. It returns when the next pass is due.
func (w *Worker) pass(ctx context.Context, u Update) look {
	u = w.byFormer(u)
	w.switchTo(u)
	w.tasks.cancelUnwanted(u)
	w.collect(ctx)
	w.tasks.logHanging()
	w.away.Forget(time.Now())
	maps.DeleteFunc(w.failures, func(_ string, f plan.Failure) bool { return f.Over(time.Now()) })
	if !w.pod.shared.Watch.Up() {
		clear(w.away)
		w.report.unseen(u.Pod)
		return look{}
	}
	stopping, hooks := w.stops.states(), w.hooks.states() // before the pod is observed, which shows their effects
	seen, err := w.observe(ctx)
	if err != nil {
		return w.passFailed(ctx, fmt.Errorf("error determining status: %w", err))
	}
	going, again := w.commitNext(ctx, u)
	w.switchTo(going)
	w.tasks.cancelUnwanted(going)
	u = going
	for uid := range seen.Instances {
		w.pod.shared.Uids.Take(types.UID(uid), w.pod.key) // a previous instance without checkpoint holds its uid, too
	}
	reloading := w.reloads.states(seen)
	s := w.facts(u, seen)
	w.followArrivals(&s)
	w.followObjects(&s)
	s.Stopping, s.PostStart, s.Reloading = stopping, hooks, reloading
	w.forgetFinished(seen)
	w.sweepOnce(seen)
	w.start.forgetSandbox(&s)
	w.takeRestartRequests(&s)
	w.probe(&s)
	p := plan.Make(s)
	if !p.Accepts() { // the next pass reports what is accepted
		w.report.report(&s, &p)
	}
	w.pod.events.RecordBackOffs(&s, &p)
	w.recordNetwork(&s, &p)
	w.report.state(ctx, &s)
	if u.Next != nil && !u.Starts && w.report.sent.Unmade {
		return look{} // the sync loop gives it up for the next version, which interrupts this
	}
	if p.Gone {
		return w.gone(ctx, u.Generation)
	}
	if len(p.Steps) == 0 {
		w.failed = 0
		delete(w.away, plan.PassKey)
		return lookAt(soonest(p.Wake, again))
	}
	if err := w.Apply(ctx, &s, p.Steps); err != nil {
		return w.passFailed(ctx, err)
	}
	return lookAgain()
}

// facts returns what the plan is made of, except for the stops and hooks that run.
func (w *Worker) facts(u Update, seen *pleg.Observed) plan.Facts {
	settings := w.pod.shared.Settings()
	s := plan.Facts{
		Now:       time.Now(),
		Mark:      w.pod.shared.Disk.Machine.Boot.Mark(),
		Pod:       u.Pod,
		Exchanges: u.Exchanges,
		Known:     w.pod.known,
		Observed:  seen,
		Failures:  w.failures,
		Running:   w.tasks.running(),
		Runtime:   w.pod.shared.Watch.Runtime(),
		Fetching:  w.fetches.Running(),
		BackOff:   settings.BackOff,
		Dead:      settings.DeadContainers,
		Policy:    settings.UpdatePolicy,
		Halted:    u.Halted,
		Restarts:  u.Restarts,
	}
	w.dropGone(&s)
	s.ByAccepted()
	w.report.dropStale(&s)
	s.Since = w.report.startOf(&s)
	w.lookAround(&s)
	s.Next, s.Reported = w.NextAttempts(&s), w.report.endOf(&s)
	return s
}

// gone reports to the sync loop that all of the pod is removed.
func (w *Worker) gone(ctx context.Context, generation uint64) look {
	// A next version may have been withdrawn after its former was gone: then no instance
	// removes what was prepared of it.
	err := w.pod.files.Discard(ctx, w.pod.shared.Disk.Root.NextOf(w.pod.key), "")
	if err != nil {
		return w.passFailed(ctx, fmt.Errorf("remove what was prepared of a version that does not come: %w", err))
	}
	w.report.send(ctx, State{Key: w.pod.key, Generation: generation, Cleared: true, Gone: true})
	return look{}
}

// passFailed decides when to retry after a pass that failed.
func (w *Worker) passFailed(ctx context.Context, err error) look {
	if ctx.Err() != nil {
		return lookAgain()
	}
	up := w.pod.shared.Watch.Up()
	away := pleg.IsListing(err) || cri.Unavailable(err) && !(up && w.away.Lasts(plan.PassKey, time.Now()))
	if away {
		w.pod.shared.Watch.Wake(err)
	}
	if away && !up { // the relist that finds it again wakes the worker
		return lookAt(time.Now().Add(plan.RetryMax))
	}
	w.failed++
	retry := retryAt(time.Now().Add(plan.RetryIn(w.failed)))
	if away {
		return retry
	}
	w.pod.events.RecordError(err)
	if panics.In(err) != nil { // logged and reported where it was caught
		return retry
	}
	if w.logged.isNews(err, time.Now()) {
		w.pod.log.Error("sync failed; retrying", "err", err)
	}
	w.report.trouble(err)
	return retry
}

// containedPass runs a pass; one that panics is a pass that failed.
func (w *Worker) containedPass(ctx context.Context, u Update) look {
	var next look
	var err error
	func() {
		defer w.pod.caught(&err, "pod sync", "")
		next = w.pass(ctx, u)
	}()
	if err == nil {
		return next
	}
	w.pod.contained("fault report", func() { w.report.fault(u.Pod, err) })
	return w.passFailed(ctx, err)
}
