// Package prepare makes a version of a pod ready to run beside the one that runs.
package prepare

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/fetch"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/panics"
	"monopod/agent/podevents"
	"monopod/agent/podspec"
	"monopod/agent/update"
	"monopod/manifests"
)

// Shared is what all preparations share.
type Shared struct {
	Images  *image.Puller
	Disk    *instance.Disk
	Events  *events.Recorder
	Up      func() bool // the runtime answers
	Fault   func(p *v1.Pod, what string, err error)
	Log     *slog.Logger
	Answers chan Answer // to the sync loop
}

// Answer is what a preparation tells of its version, whenever that has changed.
type Answer struct {
	From  *Task
	State State
}

// Task is the preparation of one version. It has a goroutine, which ends with End or with the
// agent; the sync loop alone calls its methods.
type Task struct {
	*Shared
	version *manifests.Pod
	fetched *v1.Pod // what of it is fetched
	images  images
	sent    State

	woken      chan struct{}
	end        context.CancelFunc
	background sync.WaitGroup // fetches
}

// Start starts to prepare a version that is to take the place of another.
func (s *Shared) Start(ctx context.Context, all *sync.WaitGroup, runs, version *manifests.Pod) *Task {
	t := &Task{Shared: s, version: version, fetched: update.Fetched(runs.Pod, version.Pod), woken: make(chan struct{}, 1)}
	t.images.set = fetch.NewSet(t.settings())
	ctx, t.end = context.WithCancel(ctx)
	all.Go(func() { t.run(ctx) })
	return t
}

// settings are what the fetches use.
func (t *Task) settings() fetch.Settings {
	log := t.Log.With("pod", t.version.Key().String())
	told := &podevents.Recorder{Events: t.Events, Key: t.version.Key(), Machine: t.Disk.Machine}
	fault := func(err error, _, _ string) { t.Fault(t.version.Pod, "get the images of the next version", err) }
	return fetch.Settings{Images: t.Images, Events: told, Wake: t.Wake, Go: t.background.Go, Fault: fault,
		Caught: func(err *error, what, container string) {
			if v := recover(); v != nil {
				*err = panics.New(v)
				fault(*err, what, container)
			}
		},
		Secrets: func(of *v1.Pod) []*v1.Secret { return told.PullSecrets(of, t.Disk.Objects.Now(), log) }}
}

// Is reports whether it prepares this version; nil prepares none.
func (t *Task) Is(p *manifests.Pod) bool {
	return t != nil && p != nil && manifests.Same(t.version, p)
}

// Wake makes it look again. Any goroutine may call it.
func (t *Task) Wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// End ends it. taken: the version takes the place of the other one.
func (t *Task) End(taken bool) {
	t.end()
	if !taken {
		t.Images.Forget(string(t.version.UID))
	}
}

func (t *Task) run(ctx context.Context) {
	defer t.background.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Stop()
		again := t.look(ctx)
		if !again.IsZero() {
			timer.Reset(time.Until(again))
		}
		select {
		case <-t.woken:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// faultRetry is when it is tried again after a panic.
const faultRetry = time.Minute

// look goes on with the preparation. It returns when to look again; zero: when it is woken.
func (t *Task) look(ctx context.Context) (again time.Time) {
	if !t.Up() {
		return again // the relist that finds the runtime again wakes it
	}
	var now State
	err := panics.Contain(func() { now, again = t.observe(ctx) })
	if err != nil {
		t.Fault(t.version.Pod, "prepare the next version", err)
		now, again = State{Lacks: []string{err.Error()}, Lasting: true}, time.Now().Add(faultRetry)
	}
	now.Of = t.version
	t.answer(ctx, now)
	return again
}

// observe says how far the version is.
func (t *Task) observe(ctx context.Context) (now State, again time.Time) {
	sandbox, err := podspec.SandboxConfig(t.version.Pod, 0, t.Disk.Machine.Now())
	if err != nil {
		return State{Lacks: []string{fmt.Sprintf("its sandbox has no config: %v", err)}, Lasting: true}, again
	}
	lack, failed, again := t.images.look(ctx, t.fetched, sandbox)
	if lack != "" {
		now.Lacks, now.Lasting = append(now.Lacks, lack), failed
	}
	if missing := t.Disk.Objects.Missing(t.version); missing != "" {
		now.Lacks, now.Lasting = append(now.Lacks, missing), true
	}
	now.Ready = len(now.Lacks) == 0
	if now.Ready {
		now.Images = t.images.ready(t.fetched)
	}
	return now, again
}

// answer tells the sync loop what has changed.
func (t *Task) answer(ctx context.Context, now State) {
	if t.sent.Of != nil && now.Ready == t.sent.Ready && now.Lasting == t.sent.Lasting && slices.Equal(now.Lacks, t.sent.Lacks) {
		return
	}
	select {
	case t.Answers <- Answer{t, now}:
		t.sent = now
	case <-ctx.Done():
	}
}
