package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/logs"
	"monopod/agent/metrics"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/manifests"
)

const (
	relistWithEvents    = 5 * time.Second // guards against a lost event
	relistWithoutEvents = time.Second     // the only way to notice anything
	reconnectEvery      = 250 * time.Millisecond
	healthEvery         = 10 * time.Second // as old as what the node's report says of it may be
)

// notAskedYet is why the runtime counts as down at first.
const notAskedYet = "not asked yet"

// streamTries is how often in a row the event stream may break at once before
// the runtime counts as one without.
const streamTries = 3

// watch watches the runtime: whether it answers, and which pods changed in it.
// It only says "look again"; what is true a worker finds out by itself.
type watch struct {
	cri      *cri.Client
	lister   *lister
	instance string
	store    *status.Store
	log      *slog.Logger

	handlers map[string]*rt.RuntimeHandlerFeatures // by name, as the runtime said last; guarded by mu

	sightings chan sighting      // one slot, latest wins; after each relist
	touched   chan manifests.Key // a pod that an event was about
	suspect   chan struct{}      // one slot: a call found the runtime gone
	changed   chan struct{}      // one slot: the runtime is not as it was

	// prepare is called before sweep and whenever the runtime answers anew; until
	// it succeeds, the runtime counts as down.
	prepare func(ctx context.Context) error

	// sweep is called once, before any worker acts, with what is ours in the
	// runtime, to remove what a former agent did not come to remove.
	sweep func(ctx context.Context, pods map[manifests.Key]*listed)

	events *events.Recorder // nil: nobody wants to know
	node   string

	podLogs string                           // folder
	logs    atomic.Pointer[[]logs.Container] // of the containers that run, as of the last relist
	listed  chan struct{}                    // closed when there are some

	metrics  *metrics.Metrics
	relisted time.Time   // when the last relist was begun; of Run's goroutine
	streams  atomic.Bool // the runtime streams events

	fresh  bool // no relist yet since the runtime answers; of Run's goroutine
	breaks int  // of the event stream in a row; of Run's goroutine

	mu       sync.Mutex
	state    status.Runtime
	wrong    map[string]string   // what the runtime says is not so, by the name of its condition
	features *rt.RuntimeFeatures // nil before the runtime first answered
}

func newWatch(c *cri.Client, instance string, store *status.Store, log *slog.Logger) *watch {
	w := &watch{cri: c, lister: &lister{cri: c, instance: instance}, instance: instance, store: store, log: log,
		listed: make(chan struct{}), sightings: make(chan sighting, 1), touched: make(chan manifests.Key, 256), suspect: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	w.set(status.Runtime{Endpoint: c.Endpoint(), Error: notAskedYet, Since: time.Now()})
	return w
}

// looked is the endpoint's check that it is known what runs.
func (w *watch) looked() error {
	select {
	case <-w.listed:
		return nil
	default:
		return errors.New("the runtime's pods have not been listed yet")
	}
}

// Suspect makes the watch ask the runtime at once whether it is there.
func (w *watch) Suspect(error) {
	select {
	case w.suspect <- struct{}{}:
	default:
	}
}

func (w *watch) set(s status.Runtime) {
	w.mu.Lock()
	if w.state.Up != s.Up || w.state.Error == notAskedYet || w.state.Name != s.Name || w.state.Version != s.Version {
		w.nudge()
	}
	w.state = s
	w.mu.Unlock()
	w.store.SetRuntime(s)
}

// Run watches until ctx ends.
func (w *watch) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.connect(ctx); err != nil {
			w.down(ctx, err)
			sleep(ctx, reconnectEvery)
			continue
		}
		err := w.follow(ctx)
		if ctx.Err() == nil {
			w.log.Debug("asks the runtime again", "err", err)
		}
	}
}

// connect asks the runtime who it is and whether it is ready for work.
func (w *watch) connect(ctx context.Context) error {
	v, err := w.cri.Version(ctx)
	if err != nil {
		w.noteConditions(nil)
		return err
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	if w.prepare != nil {
		if err := w.prepare(ctx); err != nil {
			return err
		}
	}
	if err := w.sweepOnce(ctx); err != nil {
		return err
	}
	w.fresh = true
	was := w.state
	if was.Up {
		return nil
	}
	w.set(status.Runtime{Up: true, Endpoint: w.cri.Endpoint(), Name: v.RuntimeName, Version: v.RuntimeVersion, Since: time.Now()})
	w.log.Info("runtime answers", "runtime", v.RuntimeName, "version", v.RuntimeVersion, "endpoint", w.cri.Endpoint(), "after", time.Since(was.Since).Round(time.Millisecond))
	w.recordReady(v1.EventTypeNormal, "NodeReady")
	return nil
}

func (w *watch) sweepOnce(ctx context.Context) error {
	if w.sweep == nil {
		return nil
	}
	all, err := w.lister.list(ctx)
	if err != nil {
		return err
	}
	w.sweep(ctx, all.pods)
	w.sweep = nil
	return nil
}

// ready asks whether the runtime itself says that it is ready. A network that
// is not ready concerns only the pods that need one.
func (w *watch) ready(ctx context.Context) error {
	st, err := w.cri.Status(ctx)
	w.noteConditions(st)
	if err != nil {
		return err
	}
	w.noteHandlers(st)
	for _, c := range st.GetStatus().GetConditions() {
		if c.Type == "RuntimeReady" && !c.Status {
			return fmt.Errorf("it is not ready: %s %s", c.Reason, c.Message)
		}
	}
	w.noteFeatures(st)
	return nil
}

// down says once that the runtime is gone.
func (w *watch) down(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s := w.state
	if s.Up || s.Error == notAskedYet {
		w.log.Error("runtime does not answer; waiting for it", "runtime", w.cri.Endpoint(), "err", err)
		w.recordReady(v1.EventTypeWarning, "NodeNotReady")
		s.Since = time.Now()
	}
	s.Up, s.Error = false, err.Error()
	w.set(s)
}

// follow relists and listens until the runtime does not answer any more.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listener sync.WaitGroup
	defer listener.Wait()
	defer cancel()
	lost := make(chan error, 1)
	listener.Go(func() { lost <- w.listen(ctx) })
	period, health := relistWithEvents, time.NewTicker(healthEvery)
	defer health.Stop()
	relist := time.NewTimer(0)
	defer relist.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			if w.breaks++; !cri.Unimplemented(err) && w.breaks < streamTries {
				return fmt.Errorf("event stream: %w", err)
			}
			w.log.Info("runtime has no event stream; pods are looked at each second", "err", err)
			period = relistWithoutEvents
			relist.Reset(0)
		case <-relist.C:
			if err := w.relist(ctx); err != nil {
				return err
			}
			relist.Reset(period)
		case <-w.suspect:
			if err := w.relist(ctx); err != nil {
				return err
			}
		case <-health.C:
			if err := w.ready(ctx); err != nil {
				return err
			}
			w.breaks = 0
		}
	}
}

// event passes on which pod an event is about. An event that does not say is
// made up for by the relist.
func (w *watch) event(ctx context.Context, e *rt.ContainerEventResponse) {
	b := e.GetPodSandboxStatus()
	if b.GetLabels()[labelInstance] != w.instance || !wellFormed(b.Labels) {
		return
	}
	select {
	case w.touched <- keyOf(b.Labels):
	case <-ctx.Done():
	}
}

// relist lists the node in two calls and offers what it saw.
func (w *watch) relist(ctx context.Context) error {
	begun, last := time.Now(), w.relisted
	all, err := w.lister.list(ctx)
	w.metrics.Relist(last, begun, err)
	w.relisted = begun
	if err != nil {
		return err
	}
	w.noteLogs(all.pods)
	seen := sighting{Pods: map[manifests.Key]uint64{}, Fresh: w.fresh}
	for key, p := range all.pods {
		seen.Pods[key] = p.fingerprint()
	}
	select {
	case missed := <-w.sightings:
		seen.Fresh = seen.Fresh || missed.Fresh
	default:
	}
	w.sightings <- seen
	w.fresh = false
	return nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
