package image

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/panics"
	"monopod/cri"
)

// pull is one pull in progress, for all callers that want this image with these credentials. It is
// cancelled when no caller waits for it any more. Fields but done are guarded by Puller.mu until
// done is closed.
type pull struct {
	auths    []Auth // of the pod that started it
	done     chan struct{}
	cancel   context.CancelFunc
	waiters  int
	progress Progress
	ref      string
	took     time.Duration
	err      error
	reported sync.Once // Pulled was called
}

// pull joins the pull of this reference, or starts it. It does not join a pull
// with the credentials of another pod, but waits for it: this pod may not have
// what that pull may fetch, and does not fail with it.
func (p *Puller) pull(ctx context.Context, ref string, r Request) (*pull, error) {
	auths := secretAuths(r.Secrets, repository(ref))
	for {
		w, joined := p.join(ctx, ref, r, auths)
		select {
		case <-w.done:
			if joined {
				return w, w.err
			}
			continue
		case <-ctx.Done():
		}
		if joined {
			p.leave(w)
		}
		return nil, context.Cause(ctx)
	}
}

func (p *Puller) join(ctx context.Context, ref string, r Request, auths []Auth) (w *pull, joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w = p.pulls[ref]; w == nil {
		w = &pull{auths: auths, done: make(chan struct{})}
		var own context.Context
		own, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
		p.pulls[ref] = w
		p.running.Go(func() { p.run(own, w, ref, r) })
	} else if w.waiters == 0 || !slices.Equal(w.auths, auths) { // it is being cancelled, or is another pod's
		return w, false
	}
	w.waiters++
	return w, true
}

func (p *Puller) leave(w *pull) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.waiters--; w.waiters == 0 {
		w.cancel()
	}
}

// run carries out one pull. It ends with the runtime's answer, or when cancelled.
func (p *Puller) run(ctx context.Context, w *pull, ref string, r Request) {
	defer w.cancel()
	image, err := p.inTurn(ctx, w, ref, r)
	if err == nil {
		p.syncs.start(&p.running)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.ref, w.err, w.took = image, err, time.Since(w.progress.Started)
	delete(p.pulls, ref)
	close(w.done)
}

// inTurn pulls when there is a slot for it.
func (p *Puller) inTurn(ctx context.Context, w *pull, ref string, r Request) (image string, err error) {
	defer panics.Catch(&err)
	free, err := p.slot(ctx, r.Beside)
	if err != nil {
		return "", err
	}
	defer free()
	p.mu.Lock()
	w.progress.Started = time.Now()
	p.mu.Unlock()
	return p.tryAll(ctx, ref, w.auths, r.Sandbox)
}

// slot waits until a pull may begin. free must be called when it has ended.
func (p *Puller) slot(ctx context.Context, isBeside bool) (free func(), err error) {
	if isBeside {
		return func() {}, nil
	}
	select {
	case p.slots <- struct{}{}:
		free = func() { <-p.slots }
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := p.limit.wait(ctx); err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// tryAll pulls with one credential after the other, without any where there are
// none, until a pull succeeds.
func (p *Puller) tryAll(ctx context.Context, ref string, auths []Auth, sandbox *rt.PodSandboxConfig) (string, error) {
	for _, a := range p.keyring.lookup(ctx, repository(ref)) {
		if !slices.Contains(auths, a) {
			auths = append(auths[:len(auths):len(auths)], a)
		}
	}
	if len(auths) == 0 {
		image, err := p.cri.PullImage(ctx, spec(ref, sandbox), nil, sandbox)
		return image, scrub(err, Auth{})
	}
	var failed []error
	for _, a := range auths {
		image, err := p.cri.PullImage(ctx, spec(ref, sandbox), a.config(), sandbox)
		if err == nil {
			return image, nil
		}
		err = scrub(err, a)
		if ctx.Err() != nil || cri.Unavailable(err) {
			return "", err
		}
		failed = append(failed, err)
	}
	return "", together(failed)
}

// together makes one error of one line out of several, without repetitions.
func together(all []error) error {
	var texts []string
	for _, err := range all {
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) == 1 {
		return all[0]
	}
	return &failure{"[" + strings.Join(texts, ", ") + "]", errors.Join(all...)}
}

// explain finds the kubelet's reason for a pull that failed. Some runtimes put it at the start of
// their message, which follows the call and its object.
func explain(image string, err error) *Error {
	e := &Error{Reason: ErrImagePull, Image: image, Err: err}
	if full := fullName(image, err); full != "" {
		e.Err = &failure{err.Error() + full, err}
	}
	_, text, _ := strings.Cut(err.Error(), ": ")
	for reason, what := range map[string]string{ErrNoRegistry: "the registry is unavailable", ErrSignature: "the signature validation failed"} {
		if rest, ok := strings.CutPrefix(text, reason); ok {
			e.Reason, e.Err = reason, &failure{"image pull failed for " + image + " because " + what + rest, err}
		}
	}
	return e
}
