package pleg

import (
	"context"
	"errors"
	"slices"
	"sync"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri"
	"monopod/manifests"
)

// Lister lists all the agent's pods in the runtime. A list is expensive for the runtime, so callers
// that come while one is being made share the next one. Any goroutine may use it.
type Lister struct {
	cri     *cri.Client
	marks   *checkpoint.Marks // of the agent's pods
	PodLogs string            // the folder of pods' logs; set before the first listing
	index   index             // the last listing

	sandboxes  cri.List[rt.PodSandbox] // of run's goroutine, of which there is one at a time
	containers cri.List[rt.Container]  // of run's goroutine
	version    uint64                  // of the index; of run's goroutine

	mu   sync.Mutex
	busy bool               // a list is being made
	next *listing           // requested and not started; nil: no caller waits
	end  context.CancelFunc // ends the lists; nil before the first
	ctx  context.Context    // the context that end cancels
	runs sync.WaitGroup
}

// Close cancels the list that is being made and waits for its end. Later requests fail.
func (l *Lister) Close() {
	l.mu.Lock()
	l.start()
	l.end()
	l.mu.Unlock()
	l.runs.Wait()
}

// start creates the context of the lists, once. l.mu is held.
func (l *Lister) start() {
	if l.ctx == nil {
		l.ctx, l.end = context.WithCancel(context.Background())
	}
}

// listError is why a listing failed.
type listError struct{ error }

func (e listError) Unwrap() error { return e.error }

// IsListing reports whether a listing failed. All who shared it have the same error, which is no pod's:
// the watch lists, too, and tells of a runtime that does not answer.
func IsListing(err error) bool { return errors.As(err, new(listError)) }

// listing is two list calls whose results go into the index.
type listing struct {
	done    chan struct{} // closed when the other fields are set
	err     error
	version uint64 // of the index; changes when anything differs from before
}

// List updates the index by a listing that starts after List was called. It returns the version
// that the index has then; a reader may find a later one.
func (l *Lister) List(ctx context.Context) (version uint64, err error) {
	l.mu.Lock()
	l.start()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return 0, context.Cause(l.ctx)
	}
	n := l.next
	if n == nil {
		n = &listing{done: make(chan struct{})}
		l.next = n
		if !l.busy {
			l.busy = true
			l.runs.Go(l.run)
		}
	}
	l.mu.Unlock()
	select {
	case <-n.done:
		return n.version, n.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Pods returns all pods of a new listing, see List. The caller owns the map.
func (l *Lister) Pods(ctx context.Context) (map[manifests.Key]*Listed, error) {
	_, err := l.List(ctx)
	if err != nil {
		return nil, err
	}
	return l.index.all(), nil
}

// run makes listings as long as a caller waits for one. The calls have deadlines of their own.
func (l *Lister) run() {
	for {
		l.mu.Lock()
		n := l.next
		l.next, l.busy = nil, n != nil
		l.mu.Unlock()
		if n == nil {
			return
		}
		l.fill(n)
		close(n.done)
	}
}

// fill makes a listing. The decoded results of earlier ones are kept even while the node is idle:
// otherwise one change would decode everything again.
func (l *Lister) fill(n *listing) {
	isOther, err := l.update()
	if err != nil {
		n.err = listError{err}
	}
	if isOther {
		l.version++
	}
	n.version = l.version
}

// update makes the two calls and updates the index, if both succeed. It reports whether anything
// has changed.
func (l *Lister) update() (isOther bool, err error) {
	labels := l.marks.Selector()
	sandboxes, err := l.cri.ListSandboxes(l.ctx, labels, &l.sandboxes)
	if err != nil {
		return false, err
	}
	containers, err := l.cri.ListContainers(l.ctx, labels, &l.containers)
	if err != nil {
		return false, err
	}
	sandboxes.Keep()
	containers.Keep()
	isOther = sandboxes.Any || containers.Any
	if isOther {
		l.leaveOthers(sandboxes, containers)
		l.index.change(l.PodLogs, sandboxes, containers)
	}
	return isOther, nil
}

// leaveOthers drops what is not the agent's: it is listed, too, while the agent has sandboxes
// without its label.
func (l *Lister) leaveOthers(sandboxes *cri.Changes[rt.PodSandbox], containers *cri.Changes[rt.Container]) {
	sandboxes.Added = slices.DeleteFunc(sandboxes.Added, func(s *rt.PodSandbox) bool { return !l.marks.Has(s.Id, s.Labels) })
	containers.Added = slices.DeleteFunc(containers.Added, func(c *rt.Container) bool { return !l.marks.Has(c.PodSandboxId, c.Labels) })
}

// IsGone asks the runtime of one sandbox, and reports whether it has none with this id: a listing
// alone proves little, as one of a runtime that has just started may lack some.
func (l *Lister) IsGone(ctx context.Context, sandbox string) bool {
	_, err := l.cri.SandboxStatus(ctx, sandbox)
	return cri.NotFound(err)
}

// AllUids returns the uids of the pods that the runtime has, also of those that other agents made.
func (l *Lister) AllUids(ctx context.Context) (map[string]bool, error) {
	sandboxes, err := l.cri.Sandboxes(ctx, nil)
	if err != nil {
		return nil, err
	}
	containers, err := l.cri.Containers(ctx, nil)
	if err != nil {
		return nil, err
	}
	return (&Listed{Sandboxes: sandboxes, Containers: containers}).Uids(), nil
}
