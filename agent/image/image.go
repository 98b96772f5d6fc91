// Package image brings images to the node: at most one pull per reference at
// a time, whoever asks, and a bounded number of pulls at once.
package image

import (
	"context"
	"fmt"
	"sync"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// Parallel is how many images are pulled at the same time.
const Parallel = 4

// Reasons why a container waits for its image, in the kubelet's words.
const (
	ErrImagePull     = "ErrImagePull"
	ImagePullBackOff = "ImagePullBackOff"
	ErrNeverPull     = "ErrImageNeverPull"
	InvalidName      = "InvalidImageName"
	ErrInspect       = "ImageInspectError"
)

// Error is why an image cannot be had.
type Error struct {
	Reason string // one of the reasons above
	Image  string // as it was asked for
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// words is a sentence of the kubelet's that becomes a status as it is.
type words string

func (w words) Error() string { return string(w) }

// Puller pulls images. Its methods may be called from any goroutine.
type Puller struct {
	cri   *cri.Client
	slots chan struct{}
	mu    sync.Mutex
	pulls map[string]*pull // under way, by reference
}

// pull is one pull under way. It ends early when nobody waits for it any more.
type pull struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	ref     string
	err     error
}

// New returns a Puller that pulls that many images at the same time.
func New(c *cri.Client, parallel int) *Puller {
	return &Puller{cri: c, slots: make(chan struct{}, parallel), pulls: map[string]*pull{}}
}

// Normalize returns the reference with the tag that is meant when none is
// given. It returns an *Error when it is no image reference.
func Normalize(ref string) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", &Error{InvalidName, ref, words(fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: %v", ref, ref, err))}
	}
	if reference.IsNameOnly(named) {
		ref += ":latest"
	}
	return ref, nil
}

// Present returns an image that need not be pulled, and the reference to
// create a container with; nil when the policy asks for a pull. Errors are
// *Error, or those of ctx and of a runtime that is down.
func (p *Puller) Present(ctx context.Context, name string, policy v1.PullPolicy, sandbox *rt.PodSandboxConfig) (*rt.Image, string, error) {
	ref, err := Normalize(name)
	if err != nil || policy == v1.PullAlways {
		return nil, "", err
	}
	img, err := p.cri.Image(ctx, spec(ref, sandbox))
	switch {
	case err != nil:
		return nil, "", because(ctx, ErrInspect, name, err)
	case img != nil:
		return img, img.Id, nil
	case policy == v1.PullNever:
		return nil, "", &Error{ErrNeverPull, name, words(fmt.Sprintf("Container image %q is not present with pull policy of Never", name))}
	}
	return nil, "", nil
}

// Pull pulls an image and returns it as Present does. sandbox is the config of
// the pod's sandbox.
func (p *Puller) Pull(ctx context.Context, name string, sandbox *rt.PodSandboxConfig) (*rt.Image, string, error) {
	ref, err := Normalize(name)
	if err != nil {
		return nil, "", err
	}
	pulled, err := p.pull(ctx, spec(ref, sandbox), sandbox)
	if err != nil {
		return nil, "", because(ctx, ErrImagePull, name, err)
	}
	img, err := p.cri.Image(ctx, spec(ref, sandbox))
	if err != nil {
		return nil, "", because(ctx, ErrInspect, name, err)
	}
	return img, pulled, nil
}

func spec(ref string, sandbox *rt.PodSandboxConfig) *rt.ImageSpec {
	return &rt.ImageSpec{Image: ref, Annotations: sandbox.GetAnnotations()}
}

// pull joins the pull of this reference, or begins it.
func (p *Puller) pull(ctx context.Context, spec *rt.ImageSpec, sandbox *rt.PodSandboxConfig) (string, error) {
	p.mu.Lock()
	w := p.pulls[spec.Image]
	if w == nil {
		w = &pull{done: make(chan struct{})}
		var own context.Context
		own, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
		p.pulls[spec.Image] = w
		go p.run(own, w, spec, sandbox)
	}
	w.waiters++
	p.mu.Unlock()
	select {
	case <-w.done:
		return w.ref, w.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	if w.waiters--; w.waiters == 0 {
		w.cancel()
		if p.pulls[spec.Image] == w {
			delete(p.pulls, spec.Image)
		}
	}
	p.mu.Unlock()
	return "", context.Cause(ctx)
}

// run carries out one pull. It ends with the runtime's answer, or when cancelled.
func (p *Puller) run(ctx context.Context, w *pull, spec *rt.ImageSpec, sandbox *rt.PodSandboxConfig) {
	defer w.cancel()
	select {
	case p.slots <- struct{}{}:
		w.ref, w.err = p.cri.PullImage(ctx, spec, nil, sandbox)
		<-p.slots
	case <-ctx.Done():
		w.err = ctx.Err()
	}
	p.mu.Lock()
	if p.pulls[spec.Image] == w {
		delete(p.pulls, spec.Image)
	}
	p.mu.Unlock()
	close(w.done)
}

// because returns err with its reason, unless it says nothing of the image:
// the caller went away, or the runtime is down.
func because(ctx context.Context, reason, name string, err error) error {
	if ctx.Err() != nil || cri.Unavailable(err) {
		return err
	}
	return &Error{reason, name, err}
}
