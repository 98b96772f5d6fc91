package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/podspec"
)

// images are the images that one container needs, all present.
type images struct {
	image   *rt.Image         // the container's own
	ref     string            // to create the container with
	volumes map[string]string // refs for the image volumes that it mounts, by volume
}

// fetch pulls the images of a container in the background. Its goroutine closes
// done last.
type fetch struct {
	wanted []podspec.WantedImage
	since  time.Time
	done   chan struct{}
	images *images
	err    error
}

// fetches are the image pulls of the desired instance's containers. They run in
// the background, and their ends wake the worker, whose goroutine owns the map.
type fetches struct {
	*pod
	all map[string]*fetch // by container name
}

// errFetching: the container's images are being pulled; the end of that wakes the worker.
var errFetching = errors.New("the image is being pulled")

// prefetch starts to pull a pod's images while its sandbox is created.
func (g *fetches) prefetch(ctx context.Context, s *plan.Facts, steps [][]plan.Action) {
	if !slices.ContainsFunc(slices.Concat(steps...), func(a plan.Action) bool { return a.Do == plan.DoCreateSandbox }) {
		return
	}
	config, err := podspec.SandboxConfig(s.Pod.Pod, 0, g.Machine.Now())
	if err != nil {
		return // the creation of the sandbox reports it
	}
	for _, c := range slices.Concat(s.Pod.Spec.InitContainers, s.Pod.Spec.Containers) {
		if g.all[c.Name] == nil {
			g.all[c.Name] = g.start(ctx, s.Pod.Pod, &c, config)
		}
	}
}

// start pulls a container's images in the background, all at once. Images that
// are present and may be used are not pulled.
func (g *fetches) start(ctx context.Context, p *v1.Pod, c *v1.Container, config *rt.PodSandboxConfig) *fetch {
	about := events.AboutContainer(p, c.Name)
	f := &fetch{wanted: podspec.WantedImages(p, c), since: time.Now(), done: make(chan struct{})}
	g.background.Go(func() {
		defer g.Wake()
		defer close(f.done)
		f.images, f.err = gather(f.wanted, func(i podspec.WantedImage) (img *rt.Image, ref string, err error) {
			defer g.caught(&err, "image fetch", c.Name)
			img, ref, err = g.Images.Present(ctx, i.Name, i.Policy, config)
			if img == nil && err == nil {
				r := image.Request{Pod: string(p.UID), Image: i.Name, Sandbox: config, Secrets: g.PullSecrets(p, g.Objects.Now(), g.Log)}
				g.RecordPull(about, &r)
				if img, ref, err = g.Images.Pull(ctx, r); panics.In(err) != nil { // in the pull's own goroutine
					g.fault(err, "image pull", c.Name)
				}
			} else if err == nil {
				g.RecordPresent(about, i.Name)
			}
			return img, ref, err
		})
	})
	return f
}

// gather calls get for all images at once. Of several errors it returns the
// first in the order of the images.
func gather(all []podspec.WantedImage, get func(podspec.WantedImage) (*rt.Image, string, error)) (*images, error) {
	found, refs, errs := make([]*rt.Image, len(all)), make([]string, len(all)), make([]error, len(all))
	var each sync.WaitGroup
	for k := range all {
		each.Go(func() { found[k], refs[k], errs[k] = get(all[k]) })
	}
	each.Wait()
	out := &images{image: found[0], ref: refs[0]}
	for k, err := range errs {
		if err != nil {
			return nil, err
		}
		if v := all[k].Volume; v != "" {
			if out.volumes == nil {
				out.volumes = map[string]string{}
			}
			out.volumes[v] = refs[k]
		}
	}
	return out, nil
}

// running returns the progress of the image pulls that run, by container name.
func (g *fetches) running() map[string]plan.Pull {
	var out map[string]plan.Pull
	for name, f := range g.all {
		if !f.ready() {
			if out == nil {
				out = map[string]plan.Pull{}
			}
			out[name] = g.progress(f)
		}
	}
	return out
}

func (f *fetch) ready() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// get returns a container's images, or errFetching while one is not present.
func (g *fetches) get(ctx context.Context, p *v1.Pod, c *v1.Container, m *madeSandbox, f *fetch) (*images, error) {
	switch {
	case f != nil && f.ready():
		return f.images, f.err
	case f != nil:
		return nil, errFetching
	}
	return gather(podspec.WantedImages(p, c), func(i podspec.WantedImage) (img *rt.Image, ref string, err error) {
		defer g.caught(&err, "image fetch", c.Name)
		img, ref, err = g.Images.Present(ctx, i.Name, i.Policy, m.config)
		if img == nil && err == nil {
			err = errFetching
		} else if err == nil {
			g.RecordPresent(events.AboutContainer(p, c.Name), i.Name)
		}
		return img, ref, err
	})
}

// forget drops the end of a container's fetch, if it has ended.
func (g *fetches) forget(name string) {
	if f := g.all[name]; f != nil && f.ready() {
		delete(g.all, name)
	}
}

// progress returns the progress of a fetch.
func (g *fetches) progress(f *fetch) plan.Pull {
	for _, i := range f.wanted {
		if p, ok := g.Images.Progress(i.Name); ok {
			if p.Begun.IsZero() {
				return plan.Pull{Image: i.Name, Queued: true, Since: f.since}
			}
			return plan.Pull{Image: i.Name, Queued: false, Since: p.Begun}
		}
	}
	return plan.Pull{Image: f.wanted[0].Name, Queued: false, Since: f.since}
}
