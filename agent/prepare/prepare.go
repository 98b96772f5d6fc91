// Package prepare makes a version of a pod ready to run beside the one that runs.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/devices"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/panics"
	"monopod/agent/podevents"
	"monopod/agent/podimages"
	"monopod/agent/podspec"
	"monopod/agent/update"
	"monopod/agent/wake"
	"monopod/manifests"
)

// Shared is what all preparations share.
type Shared struct {
	Images  *image.Puller
	Disk    *instance.Disk
	Devices *devices.Keeper
	Events  *events.Recorder
	Up      func() bool // the runtime answers
	// Network returns why the runtime cannot give pods a network, as far as that is known; "": it
	// can. AskNetwork requests it from the runtime now, and Network returns the same from then on.
	Network    func() string
	AskNetwork func(context.Context) (string, error)
	Features   func(*v1.Pod) (*rt.RuntimeHandlerFeatures, error) // what the pod's handler supports
	Uids       *admission.UidHolders
	Fault      func(p *v1.Pod, what string, err error)
	Log        *slog.Logger
	Answers    chan Answer // to the sync loop
}

// Answer is what a preparation reports of its version, whenever that has changed.
type Answer struct {
	From  *Task
	State State
	look  uint64 // the last look that it reports; 0: none
}

// Task is the preparation of one version. It has a goroutine, which ends with End or with the
// agent; the sync loop alone calls its methods.
type Task struct {
	shared   *Shared
	version  *manifests.Pod
	fetched  *v1.Pod // the part that is fetched
	replaces bool    // it gets a sandbox, volumes and a checkpoint of its own
	runs     string  // the uid of the version that runs
	images   images
	asking   trouble                // of the runtime's checks in the last look
	own      trouble                // of what the last look makes
	made     *checkpoint.Checkpoint // by this task or a previous agent; nil: nothing
	around   around
	sent     Answer

	mu    sync.Mutex
	want  uint64 // the last look that is requested; 0: none
	asked uint64 // last looks requested so far
	came  bool   // images or devices have come that were missing

	woken      wake.Slot
	over       chan struct{} // closed once its goroutine has ended
	end        context.CancelFunc
	background sync.WaitGroup // fetches
}

// Start starts to prepare a version that is to replace another. replaces: it gets a sandbox of its
// own.
func (s *Shared) Start(ctx context.Context, all *sync.WaitGroup, runs, version *manifests.Pod, replaces bool) *Task {
	t := &Task{shared: s, version: version, fetched: version.Pod, replaces: replaces, runs: string(runs.UID),
		woken: wake.New(), over: make(chan struct{})}
	if !replaces {
		t.fetched = update.Fetched(runs.Pod, version.Pod)
	}
	left := s.Disk.Root.NextOf(version.Key())
	if left != nil && left.Uid() == string(version.UID) && left.Digest == version.Digest {
		t.made = left
	}
	t.images.set = podimages.NewSet(t.settings())
	t.around = around{root: s.Disk.Root.Dir, pod: version.Pod, starts: t.fetched, devices: s.Devices}
	ctx, t.end = context.WithCancel(ctx)
	all.Go(func() { t.run(ctx) })
	return t
}

// settings are what the fetches use.
func (t *Task) settings() podimages.Settings {
	log := t.shared.Log.With("pod", t.version.Key().String())
	recorder := &podevents.Recorder{Events: t.shared.Events, Key: t.version.Key(), Machine: t.shared.Disk.Machine}
	fault := func(err error, _, _ string) { t.shared.Fault(t.version.Pod, "get the images of the next version", err) }
	return podimages.Settings{Images: t.shared.Images, Events: recorder, Wake: t.Wake, Go: t.background.Go, Fault: fault,
		Caught: func(err *error, what, container string) {
			if v := recover(); v != nil {
				*err = panics.New(v)
				fault(*err, what, container)
			}
		},
		Secrets: func(of *v1.Pod) []*v1.Secret { return recorder.PullSecrets(of, t.shared.Disk.Objects.Now(), log) }}
}

// Is reports whether it prepares this version; nil prepares none.
func (t *Task) Is(p *manifests.Pod) bool {
	return t != nil && p != nil && manifests.Same(t.version, p)
}

// Wake makes the task look again. Any goroutine may call it.
func (t *Task) Wake() { t.woken.Wake() }

// ImagesCame makes the task get the images at once that it could not get before.
func (t *Task) ImagesCame() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.came = true
	t.Wake()
}

// DevicesCame makes the task look at once for the devices that were missing.
func (t *Task) DevicesCame() { t.ImagesCame() }

// haveCome reports whether images or devices have come since the last call.
func (t *Task) haveCome() (came bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	came, t.came = t.came, false
	return came
}

// Look requests the last look, or withdraws the request.
func (t *Task) Look(wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case wanted == (t.want != 0):
		return
	case wanted:
		t.asked++
		t.want = t.asked
	default:
		t.want = 0
	}
	t.Wake()
}

// Counts reports whether an answer belongs to the current request: a last look that was withdrawn
// is void.
func (t *Task) Counts(a Answer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.look == t.want
}

func (t *Task) wanted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.want
}

// discardWithin bounds the removal of what was made of a version that was withdrawn; what stays
// then is collected as garbage.
const discardWithin = time.Minute

// End ends the task. taken: the version replaces the other one; else what was made of it is
// removed, in the background. A last look may be under way: what it writes of a version that is
// accepted by then is removed, too.
func (t *Task) End(all *sync.WaitGroup, taken bool) {
	t.end()
	if taken {
		all.Go(func() {
			<-t.over
			err := t.shared.Disk.Root.DropVoidNext(t.version.Key())
			if err != nil {
				t.shared.Log.Warn("what was prepared of a version that runs already is not removed yet", "pod", t.version.Key().String(), "err", err)
			}
		})
		return
	}
	t.shared.Images.Forget(string(t.version.UID))
	all.Go(func() {
		<-t.over
		t.shared.Discard(t.made, t.runs)
	})
}

// Discard removes what was made of a next version that was withdrawn; nil: nothing was made. runs:
// the uid of the version that runs.
func (s *Shared) Discard(next *checkpoint.Checkpoint, runs string) {
	if next == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardWithin)
	defer cancel()
	key := next.Key()
	files := &instance.Files{Disk: s.Disk, Key: key, Log: s.Log.With("pod", key.String())}
	err := panics.Contain(func() {
		err := files.Discard(ctx, next, runs)
		if err != nil {
			files.Log.Warn("what was prepared of a version that does not come is not removed yet", "uid", next.Uid(), "err", err)
		}
	})
	if err != nil {
		files.Log.Error("what was prepared is not removed", panics.Logged(err)...)
	}
}

func (t *Task) run(ctx context.Context) {
	defer close(t.over)
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

// faultRetry is the wait for the next try after a panic.
const faultRetry = time.Minute

// look continues the preparation. It returns when to look again; zero: when it is woken.
func (t *Task) look(ctx context.Context) (again time.Time) {
	if !t.shared.Up() {
		return again // the relist that finds the runtime wakes the task
	}
	want := t.wanted()
	var now State
	err := panics.Contain(func() { now, again = t.observe(ctx, want != 0) })
	if err != nil {
		t.shared.Fault(t.version.Pod, "prepare the next version", err)
		now, again = State{Lacks: []Lack{{Text: err.Error()}}, Lasting: true}, time.Now().Add(faultRetry)
	}
	now.Of = t.version
	if now.Ready {
		now.Images = t.images.ready(t.fetched)
	}
	t.answer(ctx, Answer{t, now, want})
	return again
}

// observe returns how far the version is. final: this is the last look.
func (t *Task) observe(ctx context.Context, final bool) (now State, again time.Time) {
	sandbox, err := podspec.SandboxConfig(t.version.Pod, 0, t.shared.Disk.Machine.Now())
	if err != nil {
		return State{Lacks: []Lack{{Text: fmt.Sprintf("its sandbox has no config: %v", err)}}, Lasting: true}, again
	}
	// What failed in a last look counts as lacking until it was tried again: the next look is not
	// the last, and a version that it finds ready gets its last look at once.
	if (final || t.asking.lasts()) && t.asking.isDue() {
		t.asking.note(t.askRuntime(ctx, sandbox))
	}
	if t.haveCome() {
		t.images.retry()
		t.around.retry()
	}
	lack, failed, again := t.images.look(ctx, t.fetched, sandbox)
	if lack.Text != "" {
		now.Lacks, now.Lasting = append(now.Lacks, lack), failed
	}
	lacks := func(text string, next time.Time) {
		now.Lacks, now.Lasting, again = append(now.Lacks, Lack{Text: text}), true, earlier(again, next)
	}
	if t.asking.lasts() {
		lacks(t.asking.text, t.asking.retry)
	}
	if missing := t.shared.Disk.Objects.Missing(t.version); missing != "" {
		lacks(missing, time.Time{})
	}
	t.lookAround(lacks)
	if len(now.Lacks) == 0 {
		t.checkConfigs(lacks)
	}
	if len(now.Lacks) > 0 {
		return now, again
	}
	if t.replaces && (final || t.own.lasts()) {
		if !t.own.isDue() {
			lacks(t.own.text, t.own.retry)
			return now, again
		}
		t.own.note(t.makeOwn(ctx))
		if t.own.lasts() {
			lacks(t.own.text, t.own.retry)
		}
	}
	now.Ready = len(now.Lacks) == 0
	now.Final = now.Ready && final && t.shared.Up()
	return now, again
}

// askRuntime asks the runtime whether the images are still there, and whether it has a network for
// pods. It forgets images that are gone. It returns an error if the runtime does not answer.
func (t *Task) askRuntime(ctx context.Context, sandbox *rt.PodSandboxConfig) error {
	err := t.images.dropMissing(ctx, t.fetched, sandbox)
	if err != nil || !t.needsNetwork() {
		return err
	}
	_, err = t.shared.AskNetwork(ctx) // Network returns the answer from then on
	if err != nil {
		return fmt.Errorf("the runtime does not say whether it has a network for pods: %w", err)
	}
	return nil
}

// needsNetwork reports whether the version gets a network when it starts.
func (t *Task) needsNetwork() bool { return t.replaces && !t.version.Spec.HostNetwork }

// networkRetry is the wait between two checks for a missing network.
const networkRetry = 10 * time.Second

// lookAround checks what the containers that are to start, or a new sandbox, need of the machine.
func (t *Task) lookAround(lacks func(text string, again time.Time)) {
	why := t.shared.Network()
	if t.needsNetwork() && why != "" {
		lacks("the runtime has no network for pods yet: "+why, time.Now().Add(networkRetry)) // or the relist that finds the network wakes the task
	}
	if text, again := t.around.look(); text != "" {
		lacks(text, again)
	}
}

// featuresRetry is the wait between two looks for what the runtime supports.
const featuresRetry = 10 * time.Second

// checkConfigs checks that the runtime can be told to make what is to start.
func (t *Task) checkConfigs(lacks func(text string, again time.Time)) {
	features, err := t.shared.Features(t.version.Pod)
	if err == nil && t.replaces {
		err = podspec.CheckUsers(t.version.Pod, features)
	}
	in := podspec.Input{Objects: t.shared.Disk.Objects.Now(), RecursiveReadOnly: features.GetRecursiveReadOnlyMounts()}
	ready := t.images.ready(t.fetched)
	for _, c := range podspec.AllContainers(t.fetched) {
		if err != nil {
			break
		}
		in.Image, in.VolumeImages = ready[c.Name].Ref, ready[c.Name].Volumes
		in.ImageUID, in.ImageUsername = podspec.ImageUser(ready[c.Name].Image)
		err = podspec.CheckContainer(t.version.Pod, c, in, t.shared.Disk.Machine.Now())
	}
	switch {
	case err == nil:
	case features == nil: // a runtime that was started again may tell them later
		lacks(err.Error(), time.Now().Add(featuresRetry))
	default:
		lacks(err.Error(), time.Time{})
	}
}

// makeOwn makes what is the version's alone, its checkpoint first: by that a restarted agent knows
// of the rest.
func (t *Task) makeOwn(ctx context.Context) error {
	key, uid := t.version.Key(), t.version.UID
	if other, free := t.shared.Uids.Take(uid, key); !free {
		return errors.New(admission.UidStillOf(string(uid), other))
	}
	c := checkpoint.NewCheckpoint(t.version, metav1.Now().Rfc3339Copy()).InBoot(t.shared.Disk.Machine.Boot)
	files := &instance.Files{Disk: t.shared.Disk, Key: key, Log: t.shared.Log}
	t.made = c
	err := files.SaveNext(ctx, c, t.runs)
	if err != nil || t.runs == c.Uid() { // its volumes are made once those of the version that runs are gone
		return err
	}
	return files.SetUpOwn(ctx, t.version, t.shared.Disk.Machine.Now())
}

// answer sends the sync loop what has changed.
func (t *Task) answer(ctx context.Context, now Answer) {
	is, was := &now.State, &t.sent.State
	if was.Of != nil && is.Ready == was.Ready && is.Lasting == was.Lasting && slices.Equal(is.Lacks, was.Lacks) && (!is.Final || now.look == t.sent.look) {
		return
	}
	select {
	case t.shared.Answers <- now:
		t.sent = now
	case <-ctx.Done():
	}
}
