package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hearsay is what the runtime says that is not so, and how often it is asked.
type hearsay struct {
	mu      sync.Mutex
	clocks  []clock // oldest first
	network string  // of sandboxes: "", as it is; "none": they have none; "unknown"
	calls   map[string]int
	since   time.Time // when counting began; the walk's
}

// clock is how far the runtime's clock has been ahead of the agent's since then.
type clock struct {
	since time.Time
	ahead time.Duration
}

// mangle is called as life says.
func (a *hearsay) mangle(args, reply any) {
	if reply == nil && a.tooMany() {
		time.Sleep(time.Minute) // a loop without a pause would never end
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r := reply.(type) {
	case nil:
		a.calls[strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", args), "*v1."), "Request")]++
	case *rt.ContainerStatusResponse:
		if s := r.Status; s != nil {
			a.stamp(&s.CreatedAt, &s.StartedAt, &s.FinishedAt)
		}
	case *rt.ListContainersResponse:
		for _, c := range r.Containers {
			a.stamp(&c.CreatedAt)
		}
	case *rt.ListPodSandboxResponse:
		for _, b := range r.Items {
			a.stamp(&b.CreatedAt)
		}
	case *rt.PodSandboxStatusResponse:
		if r.Status != nil {
			a.stamp(&r.Status.CreatedAt)
			a.hide(r.Status)
		}
	}
}

// tooMany reports whether no check of what was asked can pass any more.
func (a *hearsay) tooMany() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.calls {
		if n > 5*modelNodeCalls {
			return true
		}
	}
	return false
}

// stamp makes times what the runtime's clock said then. a.mu is held.
func (a *hearsay) stamp(times ...*int64) {
	for _, t := range times {
		for _, c := range slices.Backward(a.clocks) {
			if *t != 0 && *t >= c.since.UnixNano() {
				*t += int64(c.ahead)
				break
			}
		}
	}
}

// hide: a.mu is held.
func (a *hearsay) hide(b *rt.PodSandboxStatus) {
	switch a.network {
	case "none":
		b.Network = &rt.PodSandboxNetworkStatus{}
	case "unknown":
		b.Network = nil
	}
}

func (a *hearsay) setNetwork(to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.network = to
}

func (a *hearsay) setClock(ahead time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clocks = append(a.clocks, clock{time.Now(), ahead})
}

// take returns how often the runtime was asked what since the last time.
func (a *hearsay) take() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.calls
	a.calls, a.since = map[string]int{}, time.Now()
	return was
}

// What the agent may ask about the whole node; the rest is about one pod.
var ofTheNode = []string{"ListPodSandbox", "ListContainers", "Status", "Version", "RuntimeConfig", "ListImages", "ImageFsInfo"}

// The most calls in an hour: each of those about the node, and all others for each pod.
const (
	modelNodeCalls = 5 * 3600
	modelPodCalls  = 2000
	modelProbes    = 6 * 2000 // six containers are probed every two seconds
	modelLines     = 400      // in the log of an hour: a sandbox that dies at once is three lines a minute
)

// frugal checks how often the runtime was asked in an hour.
func (w *walk) frugal(calls map[string]int) {
	w.Helper()
	sum := 0
	for method, n := range calls {
		switch {
		case method == "ExecSync": // the manifest says how often it is probed
			if n > modelProbes*len(modelPods) {
				w.Fatalf("%d probes in an hour", n)
			}
		case !slices.Contains(ofTheNode, method):
			sum += n
		case n > modelNodeCalls:
			w.Fatalf("%d calls of %s in an hour", n, method)
		}
	}
	if sum > modelPodCalls*len(modelPods) {
		var all []string
		for _, method := range slices.Sorted(maps.Keys(calls)) {
			all = append(all, fmt.Sprintf("%s %d", method, calls[method]))
		}
		w.Fatalf("%d calls about %d pods in an hour: %s", sum, len(modelPods), strings.Join(all, ", "))
	}
}

// frugalSoFar checks how often the runtime was asked since the last time.
func (w *walk) frugalSoFar() {
	w.Helper()
	hours := int(time.Since(w.answers.since)/time.Hour) + 1
	for method, n := range w.answers.take() {
		if n > hours*modelNodeCalls*2 {
			w.Fatalf("%d calls of %s in %d hours at most", n, method, hours)
		}
	}
}
