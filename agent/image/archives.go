package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Archives are files from which the runtime gets images without a registry.
type Archives interface {
	// Await is called for an image that is missing. It waits until no archive is going to give it,
	// and reports whether it has waited for one.
	Await(ctx context.Context, name string) (waited bool)
	// Pending returns the archive that is going to give an image; "": none is.
	Pending(name string) (archive string)
	// OnFound calls do, once, when an archive is found to have an image, until stop is called.
	OnFound(name string, do func()) (stop func())
}

// noArchives are none.
type noArchives struct{}

func (noArchives) Await(context.Context, string) bool   { return false }
func (noArchives) Pending(string) string                { return "" }
func (noArchives) OnFound(string, func()) (stop func()) { return func() {} }

// Local is Present for a caller that may wait: for an archive that is going to give the image.
func (p *Puller) Local(ctx context.Context, name string, policy v1.PullPolicy, sandbox *rt.PodSandboxConfig) (*rt.Image, string, error) {
	img, ref, err := p.Present(ctx, name, policy, sandbox)
	var e *Error
	lacks := img == nil && (err == nil || errors.As(err, &e) && e.Reason == ErrNeverPull)
	if policy == v1.PullAlways || !lacks || !p.archives.Await(ctx, name) {
		return img, ref, err
	}
	return p.Present(ctx, name, policy, sandbox)
}

// Pending returns the archive that is going to give an image; "": none is.
func (p *Puller) Pending(name string) string { return p.archives.Pending(name) }

// errFound ends a pull whose image an archive is found to have.
var errFound = errors.New("an archive has the image")

// untilFound returns a context for the pull of an image, which ends when an archive is found to have
// it. The caller must call stop.
func (p *Puller) untilFound(ctx context.Context, ref string, policy v1.PullPolicy) (pulls context.Context, stop func()) {
	pulls, found := context.WithCancelCause(ctx)
	if policy == v1.PullAlways {
		return pulls, func() { found(nil) }
	}
	unwatch := p.archives.OnFound(ref, func() { found(errFound) })
	return pulls, func() {
		unwatch()
		found(nil)
	}
}

// givenInstead returns the image that an archive was found to have while it was pulled.
func (p *Puller) givenInstead(ctx context.Context, r Request) (*rt.Image, string, error) {
	img, ref, err := p.Local(ctx, r.Image, v1.PullIfNotPresent, r.Sandbox)
	if img != nil || err != nil {
		return img, ref, err
	}
	text := fmt.Errorf("the archive that has it was not imported: see monopod images")
	return nil, "", &Error{Reason: ErrImagePull, Image: r.Image, Err: text, Retry: time.Now().Add(p.backOffs.first)}
}

// Came is called when images came from an archive: they are written to the disk soon, and no
// failure of their pulls counts any more.
func (p *Puller) Came(names []string) {
	p.syncs.start(&p.running)
	p.backOffs.forgetImages(func(ref string) bool { return slices.Contains(names, canonical(ref)) })
}
