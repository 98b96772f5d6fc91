package image

import (
	"maps"
	"sync"
	"time"

	"monopod/agent/backoff"
)

// The waits between pulls that fail, with the kubelet's figures.
const (
	backOffFirst = 10 * time.Second
	backOffMax   = 5 * time.Minute
)

// backOffs are the waits of each pod for each of its images: the first is 10 s, each next one
// twice as long up to 5 min. A wait is forgotten when its pod is removed, and when nothing has
// failed for twice the longest wait.
type backOffs struct {
	first, max time.Duration

	mu  sync.Mutex
	all map[string]map[string]*Error // by pod's uid and reference: the last failure
}

// pending returns why a pod's image must not be pulled now, nil if it may be.
func (b *backOffs) pending(pod, ref string) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.all[pod][ref]
	if last == nil || !time.Now().Before(last.Retry) || time.Until(last.Retry) > b.max { // the clock was set back
		return nil
	}
	return last.BackOff()
}

// failed records a failure and fills in when to try again.
func (b *backOffs) failed(pod, ref string, e *Error) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	e.Count = 1
	if last := b.all[pod][ref]; last != nil && now.Sub(last.Retry.Add(-b.wait(last.Count))) <= 2*b.max {
		e.Count = last.Count + 1
	}
	e.Retry = now.Add(b.wait(e.Count))
	if b.all[pod] == nil {
		b.all[pod] = map[string]*Error{}
	}
	b.all[pod][ref] = e
	return e
}

// wait returns how long to wait after that many failures in a row.
func (b *backOffs) wait(count int) time.Duration {
	return backoff.Between(b.first, b.max, count)
}

// forgetImages forgets the failures of images.
func (b *backOffs) forgetImages(are func(ref string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, refs := range b.all {
		maps.DeleteFunc(refs, func(ref string, _ *Error) bool { return are(ref) })
	}
}

func (b *backOffs) forget(pod string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, pod)
}
