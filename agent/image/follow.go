package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests/imagename"
)

// IsTag reports whether a name means an image by its tag, by default latest.
func IsTag(name string) bool { return imagename.HasTag(name) }

// IsExact reports whether a reference means one image for ever: by its digest, or by its id. An id
// without algorithm, as CRI-O gives it, is no reference.
func IsExact(ref string) bool { return strings.Contains(ref, "@") || strings.HasPrefix(ref, "sha256:") }

// Moved returns a reference to the image that a tag means now: by digest where the runtime knows one
// of that repository, else the image's id. "": it is still the image of was, a reference that Moved
// or the runtime gave, or the image has none of these. pull: the registry is asked; else the tag means what the runtime has.
func (p *Puller) Moved(ctx context.Context, r Request, was string, pull bool) (now string, err error) {
	img, err := p.meant(ctx, r, pull)
	if err != nil || img == nil {
		return "", err
	}
	former, err := p.cri.Image(ctx, spec(was, r.Sandbox))
	if err != nil {
		return "", inspection(ctx, was, err)
	}
	if former.GetId() == img.GetId() || slices.Contains(img.GetRepoDigests(), was) {
		return "", nil
	}
	now = digested(img, r.Image)
	if now == was || !IsExact(now) {
		return "", nil
	}
	return now, nil
}

// meant returns the image that a tag means now; nil: the runtime has none.
func (p *Puller) meant(ctx context.Context, r Request, pull bool) (img *rt.Image, err error) {
	if pull {
		r.Policy, r.Beside = v1.PullAlways, true
		img, _, err = p.Pull(ctx, r)
	} else {
		img, _, err = p.Present(ctx, r.Image, v1.PullIfNotPresent, r.Sandbox)
	}
	if err == nil && pull && img == nil {
		err = fmt.Errorf("the runtime does not have image %s, which it has pulled", r.Image)
	}
	return img, err
}

// digested returns the reference by digest that an image has in the repository of a name, else its id.
func digested(img *rt.Image, name string) string {
	of := repository(name)
	k := slices.IndexFunc(img.GetRepoDigests(), func(d string) bool { return repository(d) == of })
	if k < 0 {
		return img.GetId()
	}
	return img.GetRepoDigests()[k]
}
