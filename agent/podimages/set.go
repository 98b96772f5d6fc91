// Package podimages gets the images of a pod's containers in the background.
package podimages

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
	"monopod/agent/podevents"
	"monopod/agent/podspec"
)

// Images are the images that one container needs, all present.
type Images struct {
	Image   *rt.Image         // the container's own
	Ref     string            // to create the container with
	Volumes map[string]string // refs for the image volumes that it mounts, by volume
}

// fetch gets the images of a container in the background. Its goroutine closes done last.
type fetch struct {
	wanted []podspec.WantedImage
	since  time.Time
	done   chan struct{}
	images *Images
	err    error
}

// Ready is what was fetched for a pod's containers, by container name.
type Ready map[string]*Images

// Settings are what a Set needs of its pod's worker.
type Settings struct {
	Images  *image.Puller
	Events  *podevents.Recorder
	Secrets func(*v1.Pod) []*v1.Secret // for the pod's pulls
	Wake    func()                     // called when a fetch has ended
	Go      func(func())               // starts a goroutine that the worker waits for

	// Caught converts a panic into *err and reports it; it must be deferred directly. Fault reports
	// a panic that another goroutine has contained.
	Caught func(err *error, what, container string)
	Fault  func(err error, what, container string)
}

// Set has the image pulls of one pod's containers. They run in the background; when one ends it
// wakes the worker, whose goroutine owns the set.
type Set struct {
	Settings Settings
	all      map[string]*fetch // by container name
}

// NewSet returns a set without fetches.
func NewSet(s Settings) *Set { return &Set{s, map[string]*fetch{}} }

// ErrFetching reports that the container's images are being pulled; the end of the pulls wakes the
// worker.
var ErrFetching = errors.New("the image is being pulled")

// All starts to fetch the images of all containers that are not fetched yet.
func (g *Set) All(ctx context.Context, p *v1.Pod, sandbox *rt.PodSandboxConfig) {
	for _, c := range containersOf(p) {
		g.Start(ctx, p, &c, sandbox)
	}
}

// containersOf returns the containers whose images are fetched.
func containersOf(p *v1.Pod) []v1.Container {
	return slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
}

// Start starts to fetch a container's images, all at the same time, unless a fetch was started
// already. Images that are present and may be used are not pulled.
func (g *Set) Start(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox *rt.PodSandboxConfig) {
	if g.of(p, c) == nil {
		g.all[c.Name] = g.start(ctx, p, c, sandbox, false)
	}
}

// of returns the fetch for a container; nil: there is none, or it is for another version of the
// pod.
func (g *Set) of(p *v1.Pod, c *v1.Container) *fetch {
	f := g.all[c.Name]
	if f == nil || !slices.Equal(f.wanted, podspec.WantedImages(p, c)) {
		return nil
	}
	return f
}

// Again fetches a container's images once more. It records no event for that.
func (g *Set) Again(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox *rt.PodSandboxConfig) {
	g.all[c.Name] = g.start(ctx, p, c, sandbox, true)
}

// Ended returns the result of a container's fetch; false: it has not ended, or there is none.
func (g *Set) Ended(name string) (images *Images, err error, ended bool) {
	f := g.all[name]
	if f == nil || !f.ready() {
		return nil, nil, false
	}
	return f.images, f.err, true
}

// start starts a fetch. again: events were recorded for an earlier one.
func (g *Set) start(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox *rt.PodSandboxConfig, again bool) *fetch {
	about := events.AboutContainer(p, c.Name)
	f := &fetch{wanted: podspec.WantedImages(p, c), since: time.Now(), done: make(chan struct{})}
	g.Settings.Go(func() {
		defer g.Settings.Wake()
		defer close(f.done)
		f.images, f.err = gather(f.wanted, func(i podspec.WantedImage) (img *rt.Image, ref string, err error) {
			defer g.Settings.Caught(&err, "image fetch", c.Name)
			img, ref, err = g.Settings.Images.Local(ctx, i.Name, i.Policy, sandbox)
			if img == nil && err == nil {
				r := image.Request{Pod: string(p.UID), Image: i.Name, Policy: i.Policy, Sandbox: sandbox, Secrets: g.Settings.Secrets(p)}
				g.Settings.Events.RecordPull(about, &r)
				if again {
					r.Begins = nil
				}
				if img, ref, err = g.Settings.Images.Pull(ctx, r); panics.In(err) != nil { // a panic in the pull's own goroutine
					g.Settings.Fault(err, "image pull", c.Name)
				}
			} else if err == nil && !again {
				g.Settings.Events.RecordPresent(about, i.Name)
			}
			return img, ref, err
		})
	})
	return f
}

// gather calls get for all images at once. Of several errors it returns the
// first in the order of the images.
func gather(all []podspec.WantedImage, get func(podspec.WantedImage) (*rt.Image, string, error)) (*Images, error) {
	found, refs, errs := make([]*rt.Image, len(all)), make([]string, len(all)), make([]error, len(all))
	var each sync.WaitGroup
	for k := range all {
		each.Go(func() { found[k], refs[k], errs[k] = get(all[k]) })
	}
	each.Wait()
	out := &Images{Image: found[0], Ref: refs[0]}
	for k, err := range errs {
		if err != nil {
			return nil, err
		}
		if v := all[k].Volume; v != "" {
			if out.Volumes == nil {
				out.Volumes = map[string]string{}
			}
			out.Volumes[v] = refs[k]
		}
	}
	return out, nil
}

// Running returns the progress of the image pulls that run, by container name.
func (g *Set) Running() map[string]plan.Pull {
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

// progress returns the progress of a fetch.
func (g *Set) progress(f *fetch) plan.Pull {
	for _, i := range f.wanted {
		if archive := g.Settings.Images.Pending(i.Name); archive != "" && i.Policy != v1.PullAlways {
			return plan.Pull{Image: i.Name, Archive: archive, Since: f.since}
		}
		if p, ok := g.Settings.Images.Progress(i.Name); ok {
			if p.Started.IsZero() {
				return plan.Pull{Image: i.Name, Queued: true, Since: f.since}
			}
			return plan.Pull{Image: i.Name, Queued: false, Since: p.Started}
		}
	}
	return plan.Pull{Image: f.wanted[0].Name, Queued: false, Since: f.since}
}

func (f *fetch) ready() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Of returns a func that returns a container's images, or ErrFetching while one is not present: the
// result of its fetch, or without a fetch the present images. Any goroutine may call that func.
func (g *Set) Of(p *v1.Pod, name string) func(ctx context.Context, c *v1.Container, sandbox *rt.PodSandboxConfig) (*Images, error) {
	var f *fetch
	if c := podspec.FindContainer(p, name); c != nil {
		f = g.of(p, c)
	}
	return func(ctx context.Context, c *v1.Container, sandbox *rt.PodSandboxConfig) (*Images, error) {
		switch {
		case f != nil && f.ready():
			return f.images, f.err
		case f != nil:
			return nil, ErrFetching
		}
		return g.present(ctx, p, c, sandbox)
	}
}

func (g *Set) present(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox *rt.PodSandboxConfig) (*Images, error) {
	return gather(podspec.WantedImages(p, c), func(i podspec.WantedImage) (img *rt.Image, ref string, err error) {
		defer g.Settings.Caught(&err, "image fetch", c.Name)
		img, ref, err = g.Settings.Images.Present(ctx, i.Name, i.Policy, sandbox)
		if img == nil && err == nil {
			err = ErrFetching
		} else if err == nil {
			g.Settings.Events.RecordPresent(events.AboutContainer(p, c.Name), i.Name)
		}
		return img, ref, err
	})
}

// Drop drops the fetch for a container. A fetch for another version of the pod stays.
func (g *Set) Drop(p *v1.Pod, name string) {
	c := podspec.FindContainer(p, name)
	if c != nil && g.of(p, c) != nil {
		delete(g.all, name)
	}
}

// DropEnded drops a container's fetch if it has ended.
func (g *Set) DropEnded(name string) {
	if f := g.all[name]; f != nil && f.ready() {
		delete(g.all, name)
	}
}

// Become drops all fetches, and uses what was fetched for a pod before it started.
func (g *Set) Become(p *v1.Pod, ready Ready) {
	g.all = map[string]*fetch{}
	for _, c := range containersOf(p) {
		if images := ready[c.Name]; images != nil {
			f := &fetch{wanted: podspec.WantedImages(p, &c), done: make(chan struct{}), images: images}
			close(f.done)
			g.all[c.Name] = f
		}
	}
}

// Ran are references to the images that a container ran, by volume, and its own by "".
type Ran map[string]string

// RanBy returns the images that a container in the runtime was created with.
func RanBy(c *v1.Container, st *rt.ContainerStatus) Ran {
	ran := Ran{"": st.GetImageRef()}
	for _, m := range c.VolumeMounts {
		for _, made := range st.GetMounts() {
			if made.ContainerPath == podspec.Absolute(m.MountPath) && made.Image != nil {
				ran[m.Name] = made.Image.Image
			}
		}
	}
	return ran
}

// OfRan is Of for a container that starts again with the images that it ran: a tag may refer to
// another image by now. For images that are gone, and those that are pulled for each start, it does
// the same as Of.
func (g *Set) OfRan(p *v1.Pod, name string, ran Ran) func(ctx context.Context, c *v1.Container, sandbox *rt.PodSandboxConfig) (*Images, error) {
	asNamed := g.Of(p, name)
	return func(ctx context.Context, c *v1.Container, sandbox *rt.PodSandboxConfig) (*Images, error) {
		out, err := gather(podspec.WantedImages(p, c), func(i podspec.WantedImage) (img *rt.Image, ref string, err error) {
			defer g.Settings.Caught(&err, "image fetch", c.Name)
			if i.Policy == v1.PullAlways || ran[i.Volume] == "" {
				return nil, "", errNotAsRan
			}
			img, ref, err = g.Settings.Images.Present(ctx, ran[i.Volume], v1.PullIfNotPresent, sandbox)
			if err == nil && img == nil {
				err = errNotAsRan
			}
			return img, ref, err
		})
		if err != nil {
			return asNamed(ctx, c, sandbox)
		}
		g.Settings.Events.RecordPresent(events.AboutContainer(p, c.Name), c.Image)
		return out, nil
	}
}

// errNotAsRan reports that an image must not be used as before.
var errNotAsRan = errors.New("it is not as it was")
