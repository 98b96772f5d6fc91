package image

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/runtimewords"
	"monopod/cri"
)

// Parallel is how many images are pulled at the same time unless it is set.
const Parallel = 4

// Config is the settings of a Puller. Zero values mean the default given.
type Config struct {
	Parallel int // pulls at the same time; default 4
	// QPS bounds how many pulls start per second, Burst how many of them at once,
	// default 1; pulls over the limit wait. Default: no limit. (A kubelet has 5
	// and 10, and fails what is over it.)
	QPS, Burst int

	BackOffFirst time.Duration // after a pull that failed; default 10 s
	BackOffMax   time.Duration // default 5 min

	Keyring *Keyring // credentials of the node; nil: none

	Archives Archives // which give images without a registry; nil: there are none

	// Pulled is called for each image that was pulled; it may be nil.
	Pulled func(took time.Duration, bytes uint64)

	Log    *slog.Logger           // default: nothing is logged
	SyncFS func(dir string) error // writes a folder's file system to its disk; default syncfs(2)
}

// Puller pulls images: at most one pull per reference at a time for all callers,
// and a bounded number of pulls at once. Its methods may be called from any
// goroutine.
type Puller struct {
	cri      *cri.Client
	keyring  *Keyring
	archives Archives
	limit    *limit
	pulled   func(took time.Duration, bytes uint64)
	backOffs backOffs
	slots    chan struct{}
	running  sync.WaitGroup // the goroutines that pull, and syncs'
	syncs    *syncer

	mu    sync.Mutex
	pulls map[string]*pull // in progress, by reference
}

// New returns a Puller.
func New(c *cri.Client, cfg Config) *Puller {
	for to, fallback := range map[*time.Duration]time.Duration{&cfg.BackOffFirst: backOffFirst, &cfg.BackOffMax: backOffMax} {
		if *to == 0 {
			*to = fallback
		}
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = Parallel
	}
	if cfg.SyncFS == nil {
		cfg.SyncFS = syncFS
	}
	if cfg.Archives == nil {
		cfg.Archives = noArchives{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Puller{
		syncs: &syncer{cri: c, sync: cfg.SyncFS, log: cfg.Log},
		cri:   c, keyring: cfg.Keyring, archives: cfg.Archives, limit: newLimit(cfg.QPS, cfg.Burst), pulled: cfg.Pulled,
		backOffs: backOffs{first: cfg.BackOffFirst, max: cfg.BackOffMax, all: map[string]map[string]*Error{}},
		slots:    make(chan struct{}, cfg.Parallel), pulls: map[string]*pull{},
	}
}

// SetRate changes QPS and Burst for later pulls.
func (p *Puller) SetRate(qps, burst int) { p.limit.set(qps, burst) }

// Wait returns when no pull is in progress. No new one may be requested.
func (p *Puller) Wait() { p.running.Wait() }

// Forget drops the failures recorded for a pod.
func (p *Puller) Forget(uid string) { p.backOffs.forget(uid) }

// Present returns an image that need not be pulled, and the reference to create a container with;
// nil if the policy requires a pull. Errors are *Error, or those of ctx and of a runtime that is
// down.
func (p *Puller) Present(ctx context.Context, name string, policy v1.PullPolicy, sandbox *rt.PodSandboxConfig) (*rt.Image, string, error) {
	ref, err := Normalize(name)
	if err != nil || policy == v1.PullAlways {
		return nil, "", err
	}
	img, err := p.cri.Image(ctx, spec(ref, sandbox))
	switch {
	case err != nil:
		return nil, "", inspection(ctx, name, err)
	case img != nil:
		return img, img.Id, nil
	case policy == v1.PullNever:
		text := words(fmt.Sprintf("Container image %q is not present with pull policy of Never", name))
		return nil, "", &Error{Reason: ErrNeverPull, Image: name, Err: text, Retry: time.Now().Add(lookAgain)}
	}
	return nil, "", nil
}

// Has reports whether the runtime has the image of an id that it gave, which may be no
// name: CRI-O's has no algorithm.
func (p *Puller) Has(ctx context.Context, id string, sandbox *rt.PodSandboxConfig) (bool, error) {
	img, err := p.cri.Image(ctx, spec(id, sandbox))
	if err != nil {
		return false, inspection(ctx, id, err)
	}
	return img != nil, nil
}

// Request is one image that a pod needs.
type Request struct {
	Pod     string // uid; back-offs are its own
	Image   string
	Sandbox *rt.PodSandboxConfig // of the pod
	Secrets []*v1.Secret         // the pod's own credentials, tried before the node's
	Policy  v1.PullPolicy        // unless it is Always, the image may also come from an archive
	Beside  bool                 // it takes no place of the pulls that pods wait for

	// Begins is called when no back-off delays the pull any more, Done when the image is there,
	// with the time that the runtime took and the total with all waits; both may be nil.
	Begins func()
	Done   func(img *rt.Image, took, all time.Duration)
}

// Pull pulls an image and returns it as Present does. While the pod has to wait
// after an earlier failure it returns that at once, as ImagePullBackOff.
func (p *Puller) Pull(ctx context.Context, r Request) (*rt.Image, string, error) {
	ref, err := Normalize(r.Image)
	if err != nil {
		return nil, "", err
	}
	if e := p.backOffs.pending(r.Pod, ref); e != nil {
		return nil, "", e
	}
	requested := time.Now()
	if r.Begins != nil {
		r.Begins()
	}
	pulls, stop := p.untilFound(ctx, ref, r.Policy)
	defer stop()
	w, err := p.pull(pulls, ref, r)
	switch {
	case err == nil:
	case ctx.Err() == nil && context.Cause(pulls) == errFound:
		return p.givenInstead(ctx, r)
	case ctx.Err() != nil || cri.Unavailable(err):
		return nil, "", err // it is not about the image
	default:
		return nil, "", p.backOffs.failed(r.Pod, ref, explain(r.Image, err))
	}
	img, err := p.cri.Image(ctx, spec(ref, r.Sandbox))
	if err != nil {
		return nil, "", inspection(ctx, r.Image, err)
	}
	if r.Done != nil {
		all := time.Since(requested)
		r.Done(img, min(time.Since(w.progress.Started), all), all)
	}
	if p.pulled != nil {
		w.reported.Do(func() { p.pulled(w.took, img.GetSize()) })
	}
	return img, w.ref, nil
}

func spec(ref string, sandbox *rt.PodSandboxConfig) *rt.ImageSpec {
	return &rt.ImageSpec{Image: ref, Annotations: sandbox.GetAnnotations()}
}

// inspection returns err with its reason, unless it is not about the image: the caller left, or
// the runtime is down.
func inspection(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || cri.Unavailable(err) {
		return err
	}
	text := &failure{fmt.Sprintf("Failed to inspect image %q: %s", name, err) + fullName(name, err), err}
	return &Error{Reason: ErrInspect, Image: name, Err: text, Retry: time.Now().Add(lookAgain)}
}

// fullName is what a message adds if the runtime does not know which registry is meant.
func fullName(name string, err error) string {
	if full := canonical(name); full != "" && runtimewords.Of(runtimewords.Image, err.Error()) == runtimewords.ShortName {
		return ": give the full name in the manifest, such as " + full
	}
	return ""
}

// Progress is how far a pull is.
type Progress struct {
	Started time.Time // when it started; zero: it waits for other pulls
}

// Progress returns how far the pull of an image is, false if none is in progress.
func (p *Puller) Progress(name string) (Progress, bool) {
	ref, err := Normalize(name)
	if err != nil {
		return Progress{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.pulls[ref]; w != nil {
		return w.progress, true
	}
	return Progress{}, false
}
