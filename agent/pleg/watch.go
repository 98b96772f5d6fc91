// Package pleg observes the agent's pods in the runtime.
package pleg

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

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/status"
	"monopod/agent/wake"
	"monopod/cri"
	"monopod/manifests"
)

const (
	RelistWithEvents    = 5 * time.Second        // guards against a lost event
	relistWithoutEvents = time.Second            // the only way to notice changes
	ReconnectEvery      = 250 * time.Millisecond // in the first minute, then relistWithoutEvents
	HealthEvery         = 10 * time.Second       // the maximum age of the runtime's state in the node's report
)

// notAskedYet is the error of the runtime's first state.
const notAskedYet = "not asked yet"

// streamTries is how often in a row the event stream may break before the runtime counts as one
// without events.
const streamTries = 3

// Watch watches the runtime: whether it answers, and which of its pods have changed. It only wakes
// workers, which observe their pods themselves.
type Watch struct {
	cri    *cri.Client
	Lister *Lister
	Marks  *checkpoint.Marks // of the agent's pods
	store  *status.Store
	log    *slog.Logger

	handlers map[string]*rt.RuntimeHandlerFeatures // by name, of the last status; guarded by mu

	Relists chan Relist // one slot, latest wins; after each relist
	suspect wake.Slot   // a call found the runtime down
	changed wake.Slot   // the runtime's state has changed
	network wake.Slot   // of Run: pods that wait for a network have one, or have another reason to wait

	Workers wake.Register[manifests.Key] // woken by events of their pods

	// Prepare is called before Sweep and whenever the runtime answers again; until
	// it succeeds, the runtime counts as down.
	Prepare func(ctx context.Context) error

	// Remedy says why the runtime has no network, and what to do, if that is known better than the
	// runtime knows it; "" otherwise.
	Remedy string

	// Sweep is called once, before any worker acts, with the agent's pods in the runtime, to remove
	// what a previous agent left.
	Sweep func(ctx context.Context, pods map[manifests.Key]*Listed)

	// Refuse ends the agent before any worker acts, as it cannot tell which pods are its own.
	Refuse func(error)

	// Known are the pods of the root dir's checkpoints; nil: none.
	Known func() []*v1.Pod

	// Vanished reports, after each relist, whether cgroups of running pods have newly vanished,
	// which wakes all workers; nil: that is not checked.
	Vanished func() bool

	Proc string // where the kernel shows processes

	Events *events.Recorder
	Node   string

	listed chan struct{} // closed after the first relist

	Metrics  *metrics.Metrics
	relisted time.Time   // when the last relist started; of Run's goroutine
	version  uint64      // of the index at the last relist; 0: there was none; of Run's goroutine
	Streams  atomic.Bool // the runtime streams events

	connection int64 // see cri.Client.Connections: the one whose runtime has told its version and settings; of Run's goroutine

	fresh  bool // no relist since the runtime answers again; of Run's goroutine
	breaks int  // breaks of the event stream in a row; of Run's goroutine

	processes processes

	mu       sync.Mutex
	state    status.Runtime
	wrong    map[string]condition // false conditions of the runtime, by name
	features *rt.RuntimeFeatures  // nil before the runtime's first answer
}

func NewWatch(c *cri.Client, marks *checkpoint.Marks, store *status.Store, log *slog.Logger) *Watch {
	w := &Watch{cri: c, Proc: "/proc", processes: processes{pidOf: c.ContainerPID, all: map[string]*process{}},
		Lister: &Lister{cri: c, marks: marks}, Marks: marks, store: store, log: log,
		Refuse: func(error) {}, listed: make(chan struct{}), Relists: make(chan Relist, 1), suspect: wake.New(), changed: wake.New(), network: wake.New()}
	w.set(status.Runtime{Endpoint: c.Endpoint(), Error: notAskedYet, Since: time.Now()})
	return w
}

// Ready is the endpoint's check that the runtime's pods are known.
func (w *Watch) Ready() error {
	select {
	case <-w.listed:
		return nil
	default:
		return errors.New("the runtime's pods have not been listed yet")
	}
}

// Late returns how late the end of a container may be noticed: at once if the runtime streams
// events, otherwise by the next relist, which takes time itself.
func (w *Watch) Late() time.Duration {
	if w.Streams.Load() {
		return 0
	}
	return 2 * relistWithoutEvents
}

// Wake makes the watch relist at once, after a call found the runtime down.
func (w *Watch) Wake(error) {
	w.suspect.Wake()
}

func (w *Watch) set(s status.Runtime) {
	w.mu.Lock()
	if w.state.Up != s.Up || w.state.Error == notAskedYet || w.state.Name != s.Name || w.state.Version != s.Version {
		w.signalChange()
	}
	w.state = s
	w.mu.Unlock()
	w.store.SetRuntime(s)
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	defer w.Lister.Close()
	for ctx.Err() == nil {
		if err := w.connect(ctx); err != nil {
			w.down(ctx, err)
			Sleep(ctx, w.reconnectAfter())
			continue
		}
		err := w.follow(ctx)
		if ctx.Err() == nil {
			w.log.Debug("runtime connection ended; reconnecting", "err", err)
		}
	}
}

// reconnectAfter returns the wait before the next connect: short while the runtime may be
// restarting, longer once it is gone.
func (w *Watch) reconnectAfter() time.Duration {
	if time.Since(w.state.Since) < time.Minute {
		return ReconnectEvery
	}
	return relistWithoutEvents
}

// connect requests the runtime's version, status and pods.
func (w *Watch) connect(ctx context.Context) error {
	v, err := w.cri.Version(ctx)
	if err != nil {
		w.recordConditions(nil)
		return err
	}
	w.connection = w.cri.Connections()
	if err := w.checkStatus(ctx); err != nil {
		return err
	}
	if w.Prepare != nil {
		if err := w.Prepare(ctx); err != nil {
			return err
		}
	}
	if err := w.list(ctx); err != nil {
		return err
	}
	w.fresh = true
	was := w.state
	if was.Up && was.Name == v.RuntimeName && was.Version == v.RuntimeVersion {
		return nil
	}
	w.set(status.Runtime{Up: true, Endpoint: w.cri.Endpoint(), Name: v.RuntimeName, Version: v.RuntimeVersion, Since: time.Now()})
	if was.Up {
		w.log.Info("runtime was exchanged", "runtime", v.RuntimeName, "version", v.RuntimeVersion, "former", was.Version)
		return nil
	}
	w.log.Info("runtime answers", "runtime", v.RuntimeName, "version", v.RuntimeVersion, "endpoint", w.cri.Endpoint(), "after", time.Since(was.Since).Round(time.Millisecond))
	w.recordReady(v1.EventTypeNormal, "NodeReady")
	return nil
}

// list lists the runtime once: a runtime that cannot be listed counts as down, since otherwise its
// relists would fail and be retried without a pause. The first listing is swept.
func (w *Watch) list(ctx context.Context) error {
	pods, err := w.Lister.Pods(ctx)
	if err != nil || w.Sweep == nil {
		return err
	}
	err = w.checkUnmarked(ctx, pods)
	if errors.Is(err, errUnmarked) {
		w.Refuse(err)
	}
	if err != nil {
		return err
	}
	w.Sweep(ctx, pods)
	w.Sweep = nil
	return nil
}

// checkStatus requests the runtime's status. A network that is not ready affects only the pods that
// need one.
func (w *Watch) checkStatus(ctx context.Context) error {
	st, err := w.cri.Status(ctx)
	w.recordConditions(st)
	if err != nil {
		return err
	}
	w.recordHandlers(st)
	for _, c := range st.GetStatus().GetConditions() {
		if c.Type == "RuntimeReady" && !c.Status {
			return fmt.Errorf("it is not ready: %s %s", c.Reason, c.Message)
		}
	}
	w.recordFeatures(st)
	return nil
}

// down logs once that the runtime is down.
func (w *Watch) down(ctx context.Context, err error) {
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

// follow relists and listens until the runtime does not answer.
func (w *Watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listener sync.WaitGroup
	defer listener.Wait()
	defer cancel()
	ended := make(chan error, 1)
	listener.Go(func() { ended <- w.listen(ctx) })
	listener.Go(func() { w.watchProcesses(ctx) })
	period, health := RelistWithEvents, time.NewTicker(HealthEvery)
	defer health.Stop()
	relist, network := time.NewTimer(0), w.newNetworkTimer()
	defer relist.Stop()
	defer network.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			none := cri.Unimplemented(err) && !w.reportsEvents(ctx)
			if w.breaks++; !none && w.breaks < streamTries {
				return fmt.Errorf("event stream: %w", err)
			}
			if none {
				w.log.Info("runtime has no event stream; relisting every second", "err", err)
			} else {
				w.log.Warn("the runtime's event stream breaks again and again; relisting every second", "err", err)
			}
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
			if err := w.checkNetwork(ctx, network); err != nil {
				return err
			}
			w.breaks = 0
		case <-network.C:
			if err := w.checkNetwork(ctx, network); err != nil {
				return err
			}
		case <-w.network:
			w.fresh = true // the relist wakes all pods
			relist.Reset(0)
		}
	}
}

// errReconnected ends follow: the runtime may have restarted between two calls.
var errReconnected = errors.New("there is another connection to the runtime")

// relist lists the runtime in two calls and publishes the result. One without a change costs almost
// nothing.
func (w *Watch) relist(ctx context.Context) error {
	start, last := time.Now(), w.relisted
	version, err := w.Lister.List(ctx)
	w.Metrics.Relist(last, start, err)
	w.relisted = start
	if err == nil && w.cri.Connections() != w.connection {
		err = errReconnected
	}
	if err != nil {
		return err
	}
	seen := Relist{Fresh: w.fresh || w.Vanished != nil && w.Vanished()}
	if w.version == 0 {
		close(w.listed)
	}
	if version != w.version {
		seen.Pods, w.version = w.Lister.index.prints(), version
	}
	select {
	case missed := <-w.Relists:
		seen.Fresh = seen.Fresh || missed.Fresh
		if seen.Pods == nil {
			seen.Pods = missed.Pods
		}
	default:
	}
	w.Relists <- seen
	w.fresh = false
	return nil
}
