package pleg

import (
	"context"
	"sync"
	"sync/atomic"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/manifests"
)

// Lister lists all the agent's pods in the runtime, as they are now. A list is
// expensive for the runtime, so callers that come while one is made share the
// next one. Any goroutine may use it.
type Lister struct {
	cri      *cri.Client
	instance string
	Counts   atomic.Pointer[counts] // of the last listing; nil: there was none

	sandboxes  cri.List[rt.PodSandbox] // of run's goroutine, of which there is one at a time
	containers cri.List[rt.Container]  // likewise
	version    uint64                  // of the last listing; likewise

	mu   sync.Mutex
	busy bool               // a list is being made
	next *listing           // requested and not started; nil: no caller waits
	end  context.CancelFunc // of the lists, nil before the first
	ctx  context.Context    // that end ends
	runs sync.WaitGroup
}

// Close breaks off the list that is being made and waits for its end. What is
// asked for afterwards fails.
func (l *Lister) Close() {
	l.mu.Lock()
	l.start()
	l.end()
	l.mu.Unlock()
	l.runs.Wait()
}

// start makes the context of the lists, once. l.mu is held.
func (l *Lister) start() {
	if l.ctx == nil {
		l.ctx, l.end = context.WithCancel(context.Background())
	}
}

// listing is the result of two list calls, by pod name. It must not be changed.
type listing struct {
	done chan struct{} // closed when the other fields are set
	err  error
	Pods map[manifests.Key]*Listed

	version uint64 // another one when anything differs from the listing before
	seen    uint64 // by all callers; 0: they have seen several, or one needs Pods. Guarded by the Lister until it is made

	index sync.Once
	names map[string][]manifests.Key // by uid; made on the first use
}

// NamesOf returns the pod names that have anything with the uid; none if n is
// nil. Any goroutine may call it.
func (n *listing) NamesOf(uid string) []manifests.Key {
	if n == nil {
		return nil
	}
	n.index.Do(func() {
		n.names = map[string][]manifests.Key{}
		for key, p := range n.Pods {
			for uid := range p.Uids() {
				n.names[uid] = append(n.names[uid], key)
			}
		}
	})
	return n.names[uid]
}

// Uids returns the uids of everything listed under a name.
func (p *Listed) Uids() map[string]bool {
	uids := map[string]bool{}
	for _, s := range p.Sandboxes {
		uids[s.Labels[podspec.LabelPodUID]] = true
	}
	for _, c := range p.Containers {
		uids[c.Labels[podspec.LabelPodUID]] = true
	}
	return uids
}

// Listed is the part of a listing with one pod name.
type Listed struct {
	Sandboxes  []*rt.PodSandbox
	Containers []*rt.Container
}

// List returns a listing that was started after List was called.
func (l *Lister) List(ctx context.Context) (*listing, error) { return l.ask(ctx, 0) }

// look is List for a caller that has seen a version: a listing of the same version may
// lack Pods.
func (l *Lister) look(ctx context.Context, seen uint64) (*listing, error) { return l.ask(ctx, seen) }

func (l *Lister) ask(ctx context.Context, seen uint64) (*listing, error) {
	l.mu.Lock()
	l.start()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return nil, context.Cause(l.ctx)
	}
	n := l.next
	if n == nil {
		n = &listing{done: make(chan struct{}), seen: seen}
		l.next = n
		if !l.busy {
			l.busy = true
			l.runs.Go(l.run)
		}
	}
	if n.seen != seen {
		n.seen = 0
	}
	l.mu.Unlock()
	select {
	case <-n.done:
		return n, n.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run makes listings as long as a caller waits for one. The calls have deadlines
// of their own.
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

// fill makes a listing. What earlier ones decoded stays, also while the node is at rest: else one
// change would have all decoded again.
func (l *Lister) fill(n *listing) {
	look := n.seen != 0 && n.seen == l.version
	sandboxes, containers, changed, err := l.lists(look)
	n.err = err
	if err != nil || changed {
		l.version++
	}
	n.version = l.version
	if err == nil && (!look || changed) {
		n.Pods = byName(sandboxes, containers)
		l.Counts.Store(countListed(n.Pods))
	}
}

// lists makes the two calls. A look returns nothing if nothing has changed.
func (l *Lister) lists(look bool) (sandboxes []*rt.PodSandbox, containers []*rt.Container, changed bool, err error) {
	labels := map[string]string{podspec.LabelInstance: l.instance}
	sandboxes, changed, err = l.cri.ListSandboxes(l.ctx, labels, &l.sandboxes, look)
	if err != nil {
		return nil, nil, false, err
	}
	containers, more, err := l.cri.ListContainers(l.ctx, labels, &l.containers, look && !changed)
	if look && !changed && more && err == nil { // the sandboxes were not decoded
		sandboxes, containers, _, err = l.lists(false)
	}
	return sandboxes, containers, changed || more, err
}

// byName sorts what is listed by pod names. It drops what no pod of the agent can be.
func byName(sandboxes []*rt.PodSandbox, containers []*rt.Container) map[manifests.Key]*Listed {
	pods := map[manifests.Key]*Listed{}
	of := func(labels map[string]string) *Listed {
		if !wellFormed(labels) {
			return &Listed{}
		}
		key := KeyOf(labels)
		if pods[key] == nil {
			pods[key] = &Listed{}
		}
		return pods[key]
	}
	for _, s := range sandboxes {
		p := of(s.Labels)
		p.Sandboxes = append(p.Sandboxes, s)
	}
	for _, c := range containers {
		if !isFileName(c.Metadata.GetName()) {
			continue // no pod of the agent has such a name, which must not lead to other files
		}
		p := of(c.Labels)
		p.Containers = append(p.Containers, c)
	}
	return pods
}
