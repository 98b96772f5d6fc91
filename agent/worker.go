package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/metrics"
	"monopod/agent/probe"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/manifests"
)

// workers is what all workers share.
type workers struct {
	cri               *cri.Client
	lister            *lister
	images            *image.Puller
	secrets           secrets     // pods' own credentials for registries; nil: there are none
	needs             *imageNeeds // told of all pods that are accepted; nil: nobody asks
	store             *status.Store
	events            *events.Recorder // nil: nobody wants to know
	root              *root
	machine           *machine
	prober            probe.Prober
	cgroups           *podCgroups
	gate              gate
	log               *slog.Logger
	starts            chan struct{} // a slot per sandbox or container being started
	ends              chan struct{} // a slot per sandbox being stopped or removed
	stands            chan standing // to the sync loop, which makes it
	podLogs, logLinks string        // folders; no logLinks: none are made
	keepLogs          bool          // of pods that are gone
	rotator           *logs.Rotator // of logs
	metrics           *metrics.Metrics
	arrivals          *arrivals // of the sync loop, which makes it

	suffix         string              // that the node adds to the names of pods
	runtimeClasses map[string]string   // the runtime's handlers by name of the class
	settings       func() planSettings // as they are now
}

// gate tells workers whether the runtime answers.
type gate interface {
	Up() bool
	Handler(name string) *rt.RuntimeHandlerFeatures // nil: it does not say what it can do
	Runtime() string                                // its name, such as containerd
	Suspect(err error)                              // a call found the runtime gone
	StrictGroups() (supported, known bool)
}

var (
	errNewWish = errors.New("the manifest has changed")
	errBusy    = errors.New("something did not work and is tried again")
)

const (
	retryFirst = 250 * time.Millisecond // after the first failure of something that should work
	retryMax   = 10 * time.Second
	spinLimit  = 20 // passes in a row without a pause
)

// worker keeps one pod name as its wish says. Its goroutine owns all fields but
// those under mu. It never has more than one instance of the pod alive.
type worker struct {
	*workers
	key       manifests.Key
	log       *slog.Logger
	observer  *observer
	known     map[string]*checkpoint // by uid
	failures  map[string]failure     // of the wished instance, by container name
	failed    int                    // passes in a row in which something else went wrong
	said      string                 // the last such error, so that it is said once
	hold      time.Time              // nothing but a new wish is heeded before
	settingUp sync.Mutex             // volumes, as containers start together
	sandbox   *madeSandbox           // the wished instance's, as far as this process knows it
	fetches   map[string]*fetch      // images on their way, by container name
	stops     map[string]*stop       // under way, by container id
	hooks     map[string]*hookRun    // postStart, of the wished instance, by container id
	began     time.Time              // when the wished instance became active; zero: not asked yet
	beside    sync.WaitGroup         // goroutines of fetches, stops and hooks
	probes    *probe.Set             // of the containers that run
	waits     map[string]string      // containers whose back-off an event told of, by name: the id of the attempt before
	born      time.Time              // when the worker was
	last      *v1.PodStatus          // as reported last, of the uid lastUID
	lastUID   string
	inherited bool           // last is a former agent's, and may be of a former instance
	doing     *manifests.Pod // the wish of the last pass
	told      standing       // what the sync loop knows
	coming    *coming        // the instance that this worker accepted last, until it runs

	life  context.Context // ends with the agent, or when the sync loop lets the worker go
	wake  chan struct{}
	asked chan struct{}  // renewals have come
	done  chan<- *worker // told when nothing is left

	mu       sync.Mutex
	wish     *manifests.Pod
	renewals []*renewal              // that were not looked at yet
	changed  context.CancelCauseFunc // ends what is done for the wish before
}

// startWorker starts the worker of a pod name. It ends with ctx.
func (ws *workers) startWorker(ctx context.Context, all *sync.WaitGroup, key manifests.Key, known map[string]*checkpoint, wish *manifests.Pod, done chan<- *worker) *worker {
	w := &worker{
		workers: ws, key: key, log: ws.log.With("pod", key.String()),
		observer: newObserver(ws.cri, ws.lister, key),
		life:     ctx, known: known, failures: map[string]failure{}, fetches: map[string]*fetch{},
		stops: map[string]*stop{}, hooks: map[string]*hookRun{},
		wake: make(chan struct{}, 1), asked: make(chan struct{}, 1), done: done, wish: wish, born: time.Now(),
	}
	w.inherit()
	w.probes = w.newProbes()
	all.Go(func() { w.run(ctx) })
	return w
}

// offer tells the worker what the pod shall be now; nil: gone. The newest wish
// wins, and what is under way for another one is interrupted where it only waits.
func (w *worker) offer(wish *manifests.Pod) {
	w.mu.Lock()
	w.wish = wish
	if w.changed != nil {
		w.changed(errNewWish)
		w.changed = nil
	}
	w.mu.Unlock()
	w.poke()
}

// poke makes the worker look at its pod again.
func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// begin returns the newest wish and a context that ends when another comes.
func (w *worker) begin(ctx context.Context) (context.Context, *manifests.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.changed = context.WithCancelCause(ctx)
	return ctx, w.wish
}

func (w *worker) run(ctx context.Context) {
	defer w.beside.Wait()
	defer w.probes.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	spins := 0
	wishCtx, wish := w.begin(ctx)
	for ctx.Err() == nil {
		if wishCtx.Err() != nil {
			wishCtx, wish = w.begin(ctx)
		}
		again, next := w.timedPass(wishCtx, wish)
		if spins++; again && spins < spinLimit {
			continue
		}
		if again {
			next = time.Now().Add(retryMax / 10)
		}
		spins = 0
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		wake := w.wake
		if time.Now().Before(w.hold) {
			wake = nil
		}
		select {
		case <-wishCtx.Done(): // a new wish, or the end
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
func (w *worker) pass(ctx context.Context, wish *manifests.Pod) (again bool, next time.Time) {
	w.turnTo(wish)
	if !w.gate.Up() {
		w.reportUnseen(wish)
		return false, time.Time{}
	}
	stopping, hooks := w.stopping(), w.postStarts() // before what they changed is looked at
	seen, err := w.look(ctx)
	if err != nil {
		return w.trouble(ctx, fmt.Errorf("error determining status: %w", err))
	}
	settings := w.settings()
	s := situation{Now: time.Now(), Pod: wish, Known: w.known, Observed: seen, Failures: w.failures, Runtime: w.gate.Runtime(), Fetching: w.onTheirWay(), BackOff: settings.BackOff, Dead: settings.DeadContainers}
	w.begins(&s)
	s.Next, s.Stopping, s.PostStart, s.Began = w.nextAttempts(&s), stopping, hooks, w.beganAt(&s)
	w.forgetAside(seen)
	w.forgetSandbox(&s)
	w.renew(&s)
	w.probe(&s)
	p := plan(s)
	w.report(&s, &p)
	w.recordBackOffs(&s, &p)
	w.tell(ctx, &s)
	if p.Gone {
		w.store.RemovePod(w.key.String())
		select {
		case w.done <- w:
		case <-ctx.Done():
		}
		return false, time.Time{}
	}
	if len(p.Steps) == 0 {
		w.failed, w.said = 0, ""
		return false, p.Wake
	}
	if err := w.apply(ctx, &s, p.Steps); err != nil {
		return w.trouble(ctx, err)
	}
	return true, time.Time{}
}

// standing is what the sync loop must know of a worker's pod to tell what it
// takes of the node.
type standing struct {
	w       *worker
	wish    *manifests.Pod
	cleared bool // nothing of former versions is left
	ended   bool // the wished version has ended for good
	ready   bool // the wished version is what others wait for that start after it
}

// tell lets the sync loop know when the pod takes less of the node than before.
func (w *worker) tell(ctx context.Context, s *situation) {
	now := standing{w: w, wish: s.Pod, cleared: len(s.leaving()) == 0}
	now.ended = s.Pod != nil && now.cleared && s.known().ended() != ""
	now.ready = s.Pod != nil && now.cleared && isReady(w.lastStatus(string(s.Pod.UID)))
	if now == w.told || !now.cleared {
		return
	}
	select {
	case w.stands <- now:
		w.told = now
	case <-ctx.Done():
	}
}

// turnTo forgets what was gathered for another wish.
func (w *worker) turnTo(wish *manifests.Pod) {
	if w.doing == wish {
		return
	}
	w.doing, w.sandbox, w.began = wish, nil, time.Time{}
	w.hold = time.Time{} // one that outlived its timer would be for good
	w.forgetHooks(nil)
	clear(w.failures)
	clear(w.fetches)
}

// trouble decides how to go on after a pass that could not be finished.
func (w *worker) trouble(ctx context.Context, err error) (again bool, next time.Time) {
	switch {
	case ctx.Err() != nil:
		return true, time.Time{}
	case cri.Unavailable(err):
		w.gate.Suspect(err)
		return false, time.Now().Add(retryMax)
	}
	wait := min(retryFirst<<min(w.failed, 10), retryMax)
	w.failed++
	if text := err.Error(); !errors.Is(err, errBusy) {
		if text != w.said {
			w.said = text
			w.log.Error("cannot go on and tries again", "err", err)
		}
		w.recordTrouble(err)
	}
	// What failed may itself have caused events, so these must not cut this short.
	w.hold = time.Now().Add(wait)
	return false, w.hold
}
