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
	"monopod/agent/podstatus"
	"monopod/agent/probe"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/manifests"
)

// Pool is what all workers share.
type Pool struct {
	Cri               *cri.Client
	Images            *image.Puller
	Secrets           secrets // pods' own credentials for registries; nil: there are none
	Store             *status.Store
	Events            *events.Recorder // nil: nobody wants to know
	Root              *checkpoint.Root
	Machine           *node.Node
	Prober            probe.Prober
	Cgroups           *node.PodCgroups
	Watch             *pleg.Watch
	Log               *slog.Logger
	Starts            chan struct{} // a slot per sandbox or container being started
	Ends              chan struct{} // a slot per sandbox being stopped or removed
	States            chan State    // to the sync loop
	PodLogs, LogLinks string        // folders; no logLinks: none are made
	KeepLogs          bool          // of pods that are gone
	Rotator           *logs.Rotator // of logs
	Metrics           *metrics.Metrics
	Born              time.Time             // when the first pod could be wanted
	Uids              *admission.UidHolders // of the sync loop, which makes them
	Faults            panics.Faults         // of the agent itself

	Suffix         string                   // that the node adds to the names of pods
	RuntimeClasses map[string]string        // the runtime's handlers by name of the class
	Settings       func() plan.PlanSettings // as they are now
}

var (
	errNewWish = errors.New("the manifest has changed")
	errBusy    = errors.New("something did not work and is tried again")
)

// spinLimit is how many passes in a row there may be without a pause.
const spinLimit = 20

// Worker keeps one pod name as its wish says. Its goroutine owns all fields but
// those under mu. It never has more than one instance of the pod alive.
type Worker struct {
	*Pool
	Key        manifests.Key
	Log        *slog.Logger
	Observer   *pleg.Observer
	Known      map[string]*checkpoint.Checkpoint // by uid
	failures   map[string]plan.Failure           // of the wished instance, by container name
	failed     int                               // passes in a row in which something else went wrong
	lastError  string                            // the last such error, so that it is said once
	retryAt    time.Time                         // nothing but a new wish is heeded before
	settingUp  sync.Mutex                        // volumes and /etc/hosts, as containers start together
	sandbox    *madeSandbox                      // the wished instance's, as far as this process knows it
	fetches    map[string]*fetch                 // images on their way, by container name
	stops      map[string]*stop                  // under way, by container id
	hooks      map[string]*hookRun               // postStart, of the wished instance, by container id
	began      time.Time                         // when the wished instance became active; zero: not asked yet
	background sync.WaitGroup                    // goroutines of fetches, stops and hooks
	probes     *probe.Set                        // of the containers that run
	waits      map[string]string                 // containers whose back-off an event told of, by name: the id of the attempt before
	born       time.Time                         // when the worker was
	last       *v1.PodStatus                     // as reported last, of the uid lastUID
	lastUID    string
	inherited  bool          // last is a former agent's, and may be of a former instance
	current    Update        // what the last pass was for
	lastState  State         // what the sync loop knows
	swept      bool          // termination logs of former agents are gone
	starting   *pendingStart // the instance that this worker accepted last, until it runs

	Life  context.Context // ends with the agent, or when the sync loop lets the worker go
	woken chan struct{}
	asked chan struct{} // renewals have come

	mu       sync.Mutex
	desired  Update
	restarts []*RestartRequest       // that were not looked at yet
	changed  context.CancelCauseFunc // ends what is done for the wish before
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

// Update tells the worker what the pod shall be now. The newest update wins,
// and what is under way for another one is interrupted where it only waits.
func (w *Worker) Update(u Update) {
	w.mu.Lock()
	w.desired = u
	if w.changed != nil {
		w.changed(errNewWish)
		w.changed = nil
	}
	w.mu.Unlock()
	w.Wake()
}

// Wake makes the worker look at its pod again.
func (w *Worker) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// begin returns the newest update and a context that ends when another comes.
func (w *Worker) begin(ctx context.Context) (context.Context, Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.changed = context.WithCancelCause(ctx)
	return ctx, w.desired
}

func (w *Worker) run(ctx context.Context) {
	defer w.background.Wait()
	defer w.probes.Close()
	w.contained("take over what was reported", w.restoreStatus)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	spins := 0
	updateCtx, update := w.begin(ctx)
	for ctx.Err() == nil {
		if updateCtx.Err() != nil {
			updateCtx, update = w.begin(ctx)
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

// pass looks at the pod once and does what the plan says. It reports whether
// to look again at once, else until when nothing needs to be done (zero: until
// something happens).
func (w *Worker) pass(ctx context.Context, u Update) (again bool, next time.Time) {
	w.switchTo(u)
	if !w.Watch.Up() {
		w.reportUnseen(u.Pod)
		return false, time.Time{}
	}
	stopping, hooks := w.stopping(), w.postStarts() // before what they changed is looked at
	seen, err := w.look(ctx)
	if err != nil {
		return w.passFailed(ctx, fmt.Errorf("error determining status: %w", err))
	}
	for uid := range seen.Instances {
		w.Uids.Take(types.UID(uid), w.Key) // a former one that no checkpoint tells of has its uid, too
	}
	settings := w.Settings()
	s := plan.Facts{Now: time.Now(), Pod: u.Pod, Known: w.Known, Observed: seen, Failures: w.failures, Runtime: w.Watch.Runtime(), Fetching: w.onTheirWay(), BackOff: settings.BackOff, Dead: settings.DeadContainers}
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

// Update is what a worker is told to make of its pod.
type Update struct {
	Pod        *manifests.Pod // nil: nothing of it is to be left
	Generation uint64         // counts the updates of all workers; States repeat it
	Read       time.Time      // when this version was read first; zero: not known
}

// State is what a worker tells the sync loop of its pod.
type State struct {
	Key        manifests.Key
	UID        types.UID // of the desired pod, "" without one
	Generation uint64    // of the update that the state is of
	Cleared    bool      // nothing of former versions is left
	Ended      bool      // the desired pod has ended for good
	Ready      bool      // the desired pod is what others wait for that start after it
	Gone       bool      // nothing is left, and nothing is to be
}

// reportState lets the sync loop know when the pod takes less of the node than before.
func (w *Worker) reportState(ctx context.Context, s *plan.Facts) {
	now := State{Key: w.Key, Generation: w.current.Generation, Cleared: len(s.Leaving()) == 0}
	if s.Pod != nil {
		now.UID = s.Pod.UID
		now.Ended = now.Cleared && s.Checkpoint().Ended() != ""
		now.Ready = now.Cleared && podstatus.IsReady(w.lastStatus(string(s.Pod.UID)))
	}
	switch {
	case now == w.lastState:
	case now.Cleared:
		w.sendState(ctx, now)
	default: // it is told again that it is cleared, as something came between
		w.lastState = now
	}
}

func (w *Worker) sendState(ctx context.Context, now State) {
	select {
	case w.States <- now:
		w.lastState = now
	case <-ctx.Done():
	}
}

// switchTo forgets what was gathered for another update.
func (w *Worker) switchTo(u Update) {
	if w.current == u {
		return
	}
	w.current, w.sandbox, w.began = u, nil, time.Time{}
	w.retryAt = time.Time{} // one that outlived its timer would be for good
	w.forgetHooks(nil)
	clear(w.failures)
	clear(w.fetches)
}

// passFailed decides how to go on after a pass that could not be finished.
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
		if text != w.lastError && panics.In(err) == nil { // which was said where it was caught
			w.lastError = text
			w.Log.Error("cannot go on and tries again", "err", err)
		}
		w.recordTrouble(err)
	}
	// What failed may itself have caused events, so these must not cut this short.
	w.retryAt = time.Now().Add(wait)
	return false, w.retryAt
}
