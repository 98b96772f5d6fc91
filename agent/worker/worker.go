// Package worker keeps each pod as desired, with one goroutine per pod name.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/probe"
	"monopod/agent/saidonce"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/manifests"
)

// Pool is what all workers share.
type Pool struct {
	Cri               *cri.Client
	Images            *image.Puller
	Secrets           secrets // pods' own credentials for registries; nil: none
	Store             *status.Store
	Events            *events.Recorder
	Root              *checkpoint.Root
	Machine           *node.Node
	Prober            probe.Prober
	Cgroups           *node.PodCgroups
	Watch             *pleg.Watch
	Log               *slog.Logger
	Starts            chan struct{} // a slot per sandbox or container being started
	Ends              chan struct{} // a slot per sandbox being stopped or removed
	States            chan State    // to the sync loop
	PodLogs, LogLinks string        // folders; LogLinks "": no links are made
	KeepLogs          bool          // of removed pods
	Rotator           *logs.Rotator
	Metrics           *metrics.Metrics
	Born              time.Time             // when the first pod could be desired
	Uids              *admission.UidHolders // filled by the sync loop
	Faults            saidonce.Errors       // panics that were logged

	Suffix         string                   // what the node adds to the names of pods
	RuntimeClasses map[string]string        // the runtime's handlers by runtime class
	Settings       func() plan.PlanSettings // the current ones
}

var (
	errNewVersion = errors.New("the manifest has changed")
	errBusy       = errors.New("the runtime is busy")
)

// spinLimit is how many passes may run in a row without a pause.
const spinLimit = 20

// Worker keeps one pod name as desired. Its goroutine owns all fields except
// those under mu. It never has more than one instance of the pod alive.
type Worker struct {
	*Pool
	Key        manifests.Key
	Log        *slog.Logger
	Observer   *pleg.Observer
	Known      map[string]*checkpoint.Checkpoint // by uid
	failures   map[string]plan.Failure           // of the desired instance, by container name
	failed     int                               // syncs in a row that failed
	lastError  string                            // of those, so that it is logged once
	retryAt    time.Time                         // until then only an update or a restart request wakes the worker
	settingUp  sync.Mutex                        // volumes and /etc/hosts, as containers start together
	sandbox    *madeSandbox                      // the desired instance's, if this process created it
	fetches    map[string]*fetch                 // image pulls, by container name
	stops      map[string]*stop                  // container stops that run, by container id
	hooks      map[string]*hookRun               // postStart hooks of the desired instance, by container id
	began      time.Time                         // when the desired instance became active; zero: not read yet
	background sync.WaitGroup                    // goroutines of fetches, stops and hooks
	probes     *probe.Set                        // of the containers that run
	waits      map[string]string                 // by container name: the attempt whose back-off has an event, by id
	born       time.Time                         // when the worker started
	last       *v1.PodStatus                     // as reported last, of the uid lastUID
	lastUID    string
	inherited  bool          // last comes from a previous agent, and may be of a previous instance
	current    Update        // of the last pass
	lastState  State         // what the sync loop knows
	swept      bool          // termination logs of previous agents are gone
	starting   *pendingStart // the instance that this worker accepted last, until it runs

	Life  context.Context // ends with the agent, or when the sync loop ends the worker
	woken chan struct{}
	asked chan struct{} // restart requests have come

	mu       sync.Mutex
	desired  Update
	restarts []*RestartRequest       // not taken yet
	changed  context.CancelCauseFunc // ends the waits for the update before
}

// Start starts the worker of a pod name. It ends with ctx.
func (ws *Pool) Start(ctx context.Context, all *sync.WaitGroup, key manifests.Key, known map[string]*checkpoint.Checkpoint, desired Update) *Worker {
	w := &Worker{
		Pool: ws, Key: key, Log: ws.Log.With("pod", key.String()),
		Observer: pleg.NewObserver(ws.Cri, ws.Watch.Lister, key),
		Life:     ctx, Known: known, failures: map[string]plan.Failure{}, fetches: map[string]*fetch{},
		stops: map[string]*stop{}, hooks: map[string]*hookRun{},
		woken: make(chan struct{}, 1), asked: make(chan struct{}, 1), desired: desired, born: time.Now(),
	}
	w.probes = w.newProbes()
	all.Go(func() { w.run(ctx) })
	return w
}

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

// Wake makes the worker sync its pod again.
func (w *Worker) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// nextUpdate returns the newest update and a context that ends when another comes.
func (w *Worker) nextUpdate(ctx context.Context) (context.Context, Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.changed = context.WithCancelCause(ctx)
	return ctx, w.desired
}

func (w *Worker) run(ctx context.Context) {
	defer w.background.Wait()
	defer w.probes.Close()
	w.contained("status restore", w.restoreStatus)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	spins := 0
	updateCtx, update := w.nextUpdate(ctx)
	for ctx.Err() == nil {
		if updateCtx.Err() != nil {
			updateCtx, update = w.nextUpdate(ctx)
		}
		again, next := w.timedPass(updateCtx, update)
		if spins++; again && spins < spinLimit {
			continue
		}
		if again {
			next = time.Now().Add(plan.RetryMax / 10)
		}
		spins = 0
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		wake := w.woken
		if time.Now().Before(w.retryAt) {
			wake = nil
		}
		select {
		case <-updateCtx.Done(): // another update, or the end
		case <-wake:
		case <-w.asked:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass observes the pod once and carries out its plan. It reports whether to
// run again at once, else the time of the next pass (zero: when something wakes
// the worker).
func (w *Worker) pass(ctx context.Context, u Update) (again bool, next time.Time) {
	w.switchTo(u)
	if !w.Watch.Up() {
		w.reportUnseen(u.Pod)
		return false, time.Time{}
	}
	stopping, hooks := w.stopping(), w.postStarts() // before the pod is observed, which shows their effects
	seen, err := w.observe(ctx)
	if err != nil {
		return w.passFailed(ctx, fmt.Errorf("error determining status: %w", err))
	}
	for uid := range seen.Instances {
		w.Uids.Take(types.UID(uid), w.Key) // a previous instance without checkpoint holds its uid, too
	}
	settings := w.Settings()
	s := plan.Facts{Now: time.Now(), Pod: u.Pod, Known: w.Known, Observed: seen, Failures: w.failures, Runtime: w.Watch.Runtime(), Fetching: w.pulls(), BackOff: settings.BackOff, Dead: settings.DeadContainers}
	w.dropStaleStatus(&s)
	s.Next, s.Stopping, s.PostStart, s.Began = w.NextAttempts(&s), stopping, hooks, w.beganAt(&s)
	w.forgetFinished(seen)
	w.sweepOnce(seen)
	w.forgetSandbox(&s)
	w.takeRestartRequests(&s)
	w.probe(&s)
	p := plan.Make(s)
	w.report(&s, &p)
	w.recordBackOffs(&s, &p)
	w.reportState(ctx, &s)
	if p.Gone {
		w.Store.RemovePod(w.Key.String())
		w.sendState(ctx, State{Key: w.Key, Generation: u.Generation, Cleared: true, Gone: true})
		return false, time.Time{}
	}
	if len(p.Steps) == 0 {
		w.failed, w.lastError = 0, ""
		return false, p.Wake
	}
	if err := w.Apply(ctx, &s, p.Steps); err != nil {
		return w.passFailed(ctx, err)
	}
	return true, time.Time{}
}

// Update is the desired state of a worker's pod.
type Update struct {
	Pod        *manifests.Pod // nil: everything of it must go
	Generation uint64         // counts the updates of all workers; States repeat it
	Read       time.Time      // when this version was first read; zero: not known
}

// switchTo forgets the state of another update.
func (w *Worker) switchTo(u Update) {
	if w.current == u {
		return
	}
	w.current, w.sandbox, w.began = u, nil, time.Time{}
	w.retryAt = time.Time{} // one that outlives its timer would never end
	w.forgetHooks(nil)
	clear(w.failures)
	clear(w.fetches)
}

// passFailed decides when to retry after a pass that failed.
func (w *Worker) passFailed(ctx context.Context, err error) (again bool, next time.Time) {
	switch {
	case ctx.Err() != nil:
		return true, time.Time{}
	case cri.Unavailable(err):
		w.Watch.Wake(err)
		return false, time.Now().Add(plan.RetryMax)
	}
	wait := min(plan.RetryFirst<<min(w.failed, 10), plan.RetryMax)
	w.failed++
	if text := err.Error(); !errors.Is(err, errBusy) {
		if text != w.lastError && panics.In(err) == nil { // a panic is logged where it is caught
			w.lastError = text
			w.Log.Error("sync failed; retrying", "err", err)
		}
		w.recordError(err)
	}
	// The failed calls may have caused events, which must not shorten the wait.
	w.retryAt = time.Now().Add(wait)
	return false, w.retryAt
}
