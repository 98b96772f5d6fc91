package fetch

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/image"
	"monopod/agent/update"
)

// The waits between fetches that fail for a reason that is not the image's, such as a
// runtime that is away.
const (
	retryFirst = time.Second
	retryMax   = time.Minute
)

// Prepare gets the images of a pod that does not start yet, and tries again what has
// failed. lack is the first image that is not there; nil: all are. next is when to call
// it again; zero: when a fetch has ended.
func (g *Set) Prepare(ctx context.Context, p *v1.Pod, sandbox *rt.PodSandboxConfig) (lack *update.Lack, next time.Time) {
	now := time.Now()
	for _, c := range containersOf(p) {
		g.Start(ctx, p, &c, sandbox)
		f := g.all[c.Name]
		if f.ready() && f.err == nil {
			continue
		}
		if f.ready() && f.retry.IsZero() {
			f.retry = f.nextTry(now)
		}
		if f.ready() && !now.Before(f.retry) {
			f = g.start(ctx, p, &c, sandbox, f)
			g.all[c.Name] = f
		}
		if f.ready() && (next.IsZero() || f.retry.Before(next)) {
			next = f.retry
		}
		if now := f.lack(); lack == nil || lack.Err == nil && now.Err != nil {
			lack = now
		}
	}
	return lack, next
}

// nextTry returns when a fetch that has failed is tried again.
func (f *fetch) nextTry(now time.Time) time.Time {
	var i *image.Error
	if errors.As(f.err, &i) {
		return i.Retry
	}
	return now.Add(min(retryFirst<<min(f.tries, 10), retryMax))
}

// lack says what a fetch that has not succeeded lacks. The failure of the last one
// stays the reason until a fetch succeeds.
func (f *fetch) lack() *update.Lack {
	out := &update.Lack{Image: f.wanted[0].Name, Err: f.failed}
	if f.ready() {
		out.Err = f.err
	}
	var i *image.Error
	if errors.As(out.Err, &i) {
		out.Image = i.Image
	}
	return out
}
