package prepare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/backoff"
	"monopod/agent/image"
	"monopod/agent/podimages"
	"monopod/agent/podspec"
)

// images are those of a pod that does not start yet: a fetch that failed is tried again.
type images struct {
	set   *podimages.Set
	tries map[string]*try // by container
}

// try is the state of the fetches of one container.
type try struct {
	failed error     // why the last one that ended failed; nil: none has failed
	count  int       // failures
	retry  time.Time // of the next fetch; zero: one runs
	next   time.Time // as retry was after the last failure
}

// look starts the fetches that are due. lack is the first missing image, without a text if there
// is none; failed: a fetch of it has failed. again is when to look again; zero: when a fetch has
// ended.
func (g *images) look(ctx context.Context, p *v1.Pod, sandbox *rt.PodSandboxConfig) (lack Lack, failed bool, again time.Time) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		g.set.Start(ctx, p, &c, sandbox)
		_, err, ended := g.set.Ended(c.Name)
		if ended && err == nil {
			delete(g.tries, c.Name)
			continue
		}
		t := g.of(c.Name)
		if ended {
			t.ended(err)
			if time.Now().Before(t.retry) {
				again = earlier(again, t.retry)
			} else {
				t.retry = time.Time{}
				g.set.Again(ctx, p, &c, sandbox)
			}
		}
		if lack.Text == "" || !failed && t.failed != nil {
			lack, failed = Lack{g.textOf(podspec.WantedImages(p, &c)[0].Name, t.failed), t.next}, t.failed != nil
		}
	}
	return lack, failed, again
}

// dropMissing forgets fetched images that are gone: they are fetched again.
func (g *images) dropMissing(ctx context.Context, p *v1.Pod, sandbox *rt.PodSandboxConfig) error {
	there := map[string]bool{}
	for name, got := range g.ready(p) {
		for _, ref := range append(slices.Collect(maps.Values(got.Volumes)), got.Image.GetId()) {
			if ref == "" || there[ref] {
				continue
			}
			has, err := g.set.Settings.Images.Has(ctx, ref, sandbox)
			if err != nil {
				return fmt.Errorf("image %q: %w", ref, err)
			}
			if !has {
				g.set.Drop(p, name)
				break
			}
			there[ref] = true
		}
	}
	return nil
}

func (g *images) of(container string) *try {
	if g.tries == nil {
		g.tries = map[string]*try{}
	}
	t := g.tries[container]
	if t == nil {
		t = &try{}
		g.tries[container] = t
	}
	return t
}

// retry has fetches that failed tried again at once.
func (g *images) retry() {
	for _, t := range g.tries {
		if !t.retry.IsZero() {
			t.retry = time.Now()
		}
	}
}

// ended records, once, how a fetch failed.
func (t *try) ended(err error) {
	if !t.retry.IsZero() {
		return
	}
	t.failed, t.retry = err, time.Now().Add(backoff.After(t.count+1))
	var i *image.Error
	if errors.As(err, &i) {
		t.retry = i.Retry
	}
	t.next = t.retry
	t.count++
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// textOf returns what a container lacks whose image is missing. err: why the last fetch failed;
// nil: the first one runs.
func textOf(name string, err error) string {
	var i *image.Error
	switch {
	case err == nil:
		return fmt.Sprintf("image %s is being pulled", name)
	case errors.As(err, &i):
		return i.Words()
	}
	return fmt.Sprintf("image %s: %s", name, err)
}

// textOf returns what a container lacks whose image is missing.
func (g *images) textOf(name string, err error) string {
	archive := g.set.Settings.Images.Pending(name)
	if archive != "" {
		return fmt.Sprintf("image %s is in archive %s, which is being imported", name, archive)
	}
	return textOf(name, err)
}

// ready returns what was fetched.
func (g *images) ready(p *v1.Pod) podimages.Ready {
	out := podimages.Ready{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if got, err, ended := g.set.Ended(c.Name); ended && err == nil {
			out[c.Name] = got
		}
	}
	return out
}
