package image

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Refused is why the owner's request about an image is refused.
type Refused struct {
	Unknown bool // there is no such image
	Why     string
}

func (r *Refused) Error() string { return r.Why }

// RemoveNamed removes an image, with all its names, that nothing needs. Errors are *Refused, or the
// runtime's.
func (c *Collector) RemoveNamed(ctx context.Context, name string) (*Entry, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	l, err := c.lookAtAll(ctx)
	if err != nil {
		return nil, err
	}
	e := l.find(name)
	if e == nil {
		return nil, &Refused{true, fmt.Sprintf("the runtime has no image %s: monopod images lists them", name)}
	}
	why := e.needed()
	if why != "" {
		return nil, &Refused{false, fmt.Sprintf("image %s is not removed: it is %s", name, why)}
	}
	return e, c.removeByRequest(ctx, l, e)
}

// lookAtAll returns all images, with those that containers have mounted. c.turn is held.
func (c *Collector) lookAtAll(ctx context.Context) (*look, error) {
	l, err := c.look(ctx, false)
	if err != nil {
		return nil, err
	}
	return l, c.addMounted(ctx, l.survey)
}

// needed returns what needs the image; "": nothing.
func (e *Entry) needed() string {
	switch {
	case len(e.Users) > 0:
		return "used by " + strings.Join(e.Users, ", ")
	case e.Archive != "":
		return "in archive " + e.Archive + ": remove that first"
	case e.Pinned:
		return "pinned by the runtime"
	}
	return ""
}

func (c *Collector) removeByRequest(ctx context.Context, l *look, e *Entry) error {
	gone, err := c.remove(ctx, l.survey, e, ForRequest, "the owner requested it")
	if err == nil && !gone {
		return &Refused{false, fmt.Sprintf("image %s is not removed: it is needed by now", e.Name())}
	}
	return err
}

// Pruned is what one request to prune has done.
type Pruned struct {
	Removed []*Entry // or would be
	Failed  []error  // of images that the runtime does not remove
	More    bool     // its time was over before it had tried all
}

// Prune removes all images that nothing needs. kept has the names and ids of others that stay. dry:
// nothing is removed. It begins no removal once within is over, as those of many images may take
// longer than a request may.
func (c *Collector) Prune(ctx context.Context, kept []string, dry bool, within time.Duration) (*Pruned, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	l, err := c.lookAtAll(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range kept {
		l.use(ref, "a former version")
	}
	done, began := &Pruned{}, time.Now()
	for _, e := range l.entries {
		if e.needed() != "" {
			continue
		}
		if time.Since(began) > within || ctx.Err() != nil {
			done.More = true
			break
		}
		gone := dry
		if !dry {
			gone, err = c.remove(ctx, l.survey, e, ForRequest, "the owner requested it")
		}
		switch {
		case err != nil:
			done.Failed = append(done.Failed, fmt.Errorf("remove image %s: %w", e.Name(), err))
		case gone: // else a pod needs it by now
			done.Removed = append(done.Removed, e)
		}
	}
	return done, nil
}

// Orders are pulls that the owner requested. They go on when the request that ordered one ends.
type Orders struct {
	Puller *Puller
	Until  context.Context // bounds all of them

	mu  sync.Mutex
	all map[string]*order // by image
}

// order is a pull that runs. Its goroutine closes done last.
type order struct {
	done chan struct{}
	err  error
}

// Pull pulls an image, or joins the pull of it that runs. It returns false if ctx ends first; the
// pull continues.
func (o *Orders) Pull(ctx context.Context, name string) (done bool, err error) {
	now := o.of(name)
	select {
	case <-now.done:
	case <-ctx.Done():
		return false, nil
	}
	return true, now.err
}

func (o *Orders) of(name string) *order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.all[name]; now != nil {
		return now
	}
	if o.all == nil {
		o.all = map[string]*order{}
	}
	now := &order{done: make(chan struct{})}
	o.all[name] = now
	o.Puller.running.Go(func() {
		defer close(now.done)
		o.Puller.Forget("") // the owner does not wait for a back-off
		_, _, now.err = o.Puller.Pull(o.Until, Request{Image: name, Policy: v1.PullAlways})
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.all, name) // what has ended is not the answer to a later request
	})
	return now
}
