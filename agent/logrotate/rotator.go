// Package logrotate limits the size of running containers' logs: a log that has become too large is
// renamed, the runtime reopens it, and rotated logs are compressed and finally removed. A reader
// that follows a log by its name, as tail -F does, loses no line.
package logrotate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"monopod/agent/panics"
	"monopod/agent/saidonce"
	"monopod/agent/wake"
)

// The kubelet's values.
const (
	DefaultMaxSize  = 10 << 20
	DefaultMaxFiles = 5
	DefaultInterval = 10 * time.Second
	DefaultWorkers  = 1
)

// Config limits the disk space of logs. Zero values mean the default.
type Config struct {
	MaxSize  int64         // size in bytes from which a log is rotated; negative: no log is
	MaxFiles int           // files of one container, including the one that is written to; at least 2
	Interval time.Duration // from the end of one round to the next
	Workers  int           // containers whose logs are rotated at the same time
}

// Complete returns the settings with defaults filled in.
func (c Config) Complete() Config {
	return Config{
		MaxSize:  cmp.Or(c.MaxSize, DefaultMaxSize),
		MaxFiles: max(cmp.Or(c.MaxFiles, DefaultMaxFiles), 2),
		Interval: cmp.Or(c.Interval, DefaultInterval),
		Workers:  max(cmp.Or(c.Workers, DefaultWorkers), 1),
	}
}

// Container is a running container and the intended path of its log.
type Container struct {
	ID, Log string
}

// Runtime is what a Rotator needs of the container runtime.
type Runtime interface {
	// Running returns the containers that may be running, and waits until they are known. It is
	// called in each round and must be cheap.
	Running(ctx context.Context) ([]Container, error)
	// Log returns the path of a container's log; "" if the container no longer runs.
	Log(ctx context.Context, id string) (path string, err error)
	// Reopen makes the runtime write a container's log to a new file at its path, and returns when
	// it does. After an error that is ErrUnanswered, or the context's, the runtime may still do so
	// later.
	Reopen(ctx context.Context, id string) error
}

// ErrUnanswered reports that the runtime was lost before it returned the result of a call.
var ErrUnanswered = errors.New("the runtime did not answer")

// errEnded reports that a listed container no longer runs.
var errEnded = errors.New("the container has ended")

// reopenIn bounds a call by which the runtime reopens a log. The agent's end does not interrupt it:
// otherwise a log would be left without its name.
const reopenIn = 5 * time.Second

// Rotator rotates logs. A successor needs nothing of its state: the files show what a killed
// Rotator left unfinished.
type Rotator struct {
	// Fault is called for each panic in the work on one container's log; it may
	// be nil. It must be set before Run.
	Fault func()

	cfg     atomic.Pointer[Config]
	changed wake.Slot // cfg has changed
	runtime Runtime
	log     *slog.Logger
	known   map[string]*seen // by container id; of Run's goroutine

	mu   sync.Mutex
	busy map[string]chan struct{} // by container id: closed when the work on its logs is done
}

// seen is a Rotator's record of a container.
type seen struct {
	log    string // the path of its log
	tidy   bool   // its folder has no remains of an interrupted rotation
	logged saidonce.Error
}

// New returns a Rotator. Run starts its work.
func New(cfg Config, r Runtime, log *slog.Logger) *Rotator {
	rotator := &Rotator{changed: wake.New(), runtime: r, log: log, known: map[string]*seen{}, busy: map[string]chan struct{}{}}
	rotator.Set(cfg)
	return rotator
}

// Set changes the limits from the next round on, which starts at once. Any goroutine may call it.
func (r *Rotator) Set(cfg Config) {
	cfg = cfg.Complete()
	r.cfg.Store(&cfg)
	r.changed.Wake()
}

// Run checks the logs each interval until ctx ends.
func (r *Rotator) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		case <-timer.C:
		}
		timer.Stop()
		if r.cfg.Load().MaxSize < 0 {
			continue // until the settings change
		}
		r.round(ctx)
		timer.Reset(r.cfg.Load().Interval)
	}
}

// round checks each log once and returns when everything that is due is done.
func (r *Rotator) round(ctx context.Context) {
	all, err := r.runtime.Running(ctx)
	if err != nil {
		return // the next round tries again
	}
	r.forget(all)
	errs := make([]error, len(all))
	slots := make(chan struct{}, r.cfg.Load().Workers)
	var group sync.WaitGroup
	for k, c := range all {
		s := r.known[c.ID]
		if !r.due(s) {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			defer panics.Catch(&errs[k])
			errs[k] = r.visit(ctx, c.ID, s)
		})
	}
	group.Wait()
	for k, c := range all {
		r.complain(ctx, r.known[c.ID], c, errs[k])
	}
}

// forget adds records of new running containers, and drops those of ended ones.
func (r *Rotator) forget(all []Container) {
	isNew := func(c Container) bool { return r.known[c.ID] == nil }
	if len(all) == len(r.known) && !slices.ContainsFunc(all, isNew) {
		return
	}
	now := make(map[string]*seen, len(all))
	for _, c := range all {
		if now[c.ID] = r.known[c.ID]; now[c.ID] == nil {
			now[c.ID] = &seen{log: c.Log}
		}
	}
	r.known = now
}

// due reports whether a log needs work.
func (r *Rotator) due(s *seen) bool {
	size, err := sizeOf(s.log)
	return err != nil || !s.tidy || size >= r.cfg.Load().MaxSize
}

// visit tidies one container's log and rotates it if it is too large.
func (r *Rotator) visit(ctx context.Context, id string, s *seen) error {
	release, err := r.hold(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	size, err := sizeOf(s.log)
	if err != nil && !isOther(err) {
		size, err = r.find(ctx, id, s)
	}
	if err != nil {
		if errors.Is(err, errEnded) {
			return nil
		}
		return err
	}
	if !s.tidy {
		if err := tidyOnce(s.log); err != nil {
			return err
		}
		s.tidy = true
	}
	if size < r.cfg.Load().MaxSize {
		return nil
	}
	return r.rotate(ctx, id, s.log)
}

// tidyOnce tidies the folder of a log.
func tidyOnce(log string) error {
	d, err := folderOf(log)
	if err != nil {
		return fmt.Errorf("rotated logs: %w", err)
	}
	defer d.Close()
	_, err = tidy(d, filepath.Base(log))
	return err
}

// complain logs a container's log that cannot be rotated, once.
func (r *Rotator) complain(ctx context.Context, s *seen, c Container, err error) {
	if panics.In(err) != nil && r.Fault != nil {
		r.Fault()
	}
	if ctx.Err() != nil {
		err = nil
	}
	if s.logged.IsNew(err) {
		r.log.Warn("log is not kept within bounds", append(panics.Logged(err), "file", c.Log)...)
	}
}

// hold keeps other goroutines away from a container's logs until release is called.
func (r *Rotator) hold(ctx context.Context, id string) (release func(), err error) {
	mine := make(chan struct{})
	for {
		r.mu.Lock()
		theirs := r.busy[id]
		if theirs == nil {
			r.busy[id] = mine
		}
		r.mu.Unlock()
		if theirs == nil {
			return func() { r.release(id) }, nil
		}
		select {
		case <-theirs:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the log of container %.13s: %w", id, context.Cause(ctx))
		}
	}
}

func (r *Rotator) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.busy[id])
	delete(r.busy, id)
}

// Remove removes the log of a container that is gone, and its rotated logs. It waits for a rotation
// in progress.
func (r *Rotator) Remove(ctx context.Context, id, log string) error {
	release, err := r.hold(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	return Remove(log)
}
