package agent

import (
	"context"
	"sync"
	"sync/atomic"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/manifests"
)

// lister lists all that is ours in the runtime for whoever must see it as it
// is now. A list costs the runtime a look at everything it has, so those who
// ask meanwhile share the next one. Any goroutine may use it.
type lister struct {
	cri      *cri.Client
	instance string
	tally    atomic.Pointer[tally] // of the last listing; nil: there was none

	mu   sync.Mutex
	busy bool     // a list is being made
	next *listing // asked for and not begun; nil: nobody waits
}

// listing is what two list calls returned, by pod name. Nobody may change it.
type listing struct {
	done chan struct{} // closed when the rest is there
	err  error
	pods map[manifests.Key]*listed

	index sync.Once
	names map[string][]manifests.Key // that have each uid; made when somebody asks
}

// namesOf returns the pod names that have anything with the uid. Of nil, there
// are none. Any goroutine may call it.
func (n *listing) namesOf(uid string) []manifests.Key {
	if n == nil {
		return nil
	}
	n.index.Do(func() {
		n.names = map[string][]manifests.Key{}
		for key, p := range n.pods {
			for uid := range p.uids() {
				n.names[uid] = append(n.names[uid], key)
			}
		}
	})
	return n.names[uid]
}

// uids returns the uids of all that is listed under a name.
func (p *listed) uids() map[string]bool {
	uids := map[string]bool{}
	for _, s := range p.sandboxes {
		uids[s.Labels[labelPodUID]] = true
	}
	for _, c := range p.containers {
		uids[c.Labels[labelPodUID]] = true
	}
	return uids
}

// listed is what a listing has of one pod name.
type listed struct {
	sandboxes  []*rt.PodSandbox
	containers []*rt.Container
}

// list returns a listing that was begun after list was called.
func (l *lister) list(ctx context.Context) (*listing, error) {
	l.mu.Lock()
	n := l.next
	if n == nil {
		n = &listing{done: make(chan struct{})}
		l.next = n
		if !l.busy {
			l.busy = true
			go l.run()
		}
	}
	l.mu.Unlock()
	select {
	case <-n.done:
		return n, n.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run makes listings as long as somebody waits for one. The deadlines of the
// calls end it.
func (l *lister) run() {
	for {
		l.mu.Lock()
		n := l.next
		l.next, l.busy = nil, n != nil
		l.mu.Unlock()
		if n == nil {
			return
		}
		if n.pods, n.err = l.make(context.Background()); n.err == nil {
			l.tally.Store(tallyOf(n.pods))
		}
		close(n.done)
	}
}

func (l *lister) make(ctx context.Context) (map[manifests.Key]*listed, error) {
	labels := map[string]string{labelInstance: l.instance}
	sandboxes, err := l.cri.Sandboxes(ctx, labels)
	if err != nil {
		return nil, err
	}
	containers, err := l.cri.Containers(ctx, labels)
	if err != nil {
		return nil, err
	}
	pods := map[manifests.Key]*listed{}
	of := func(labels map[string]string) *listed {
		if !wellFormed(labels) {
			return &listed{}
		}
		key := keyOf(labels)
		if pods[key] == nil {
			pods[key] = &listed{}
		}
		return pods[key]
	}
	for _, s := range sandboxes {
		p := of(s.Labels)
		p.sandboxes = append(p.sandboxes, s)
	}
	for _, c := range containers {
		if !fileName.MatchString(c.Metadata.GetName()) {
			continue // no pod of ours has it, and its logs are not where the name leads
		}
		p := of(c.Labels)
		p.containers = append(p.containers, c)
	}
	return pods, nil
}
