package plan

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/backoff"
	"monopod/manifests/annotations"
)

// BackOff is how long containers that crash wait: not at all the first time, then First, then twice
// as long each time up to Max. Zero means the kubelet's value: 10 s and 5 min.
type BackOff struct {
	First, Max time.Duration
	always     bool // the first restart waits, too, and no run resets it
}

// Or returns the back-off with zeros replaced by these values.
func (b BackOff) Or(first, most time.Duration) BackOff {
	return BackOff{First: cmp.Or(b.First, first), Max: cmp.Or(b.Max, most), always: b.always}
}

// forPod returns the back-off of a pod: its annotations have precedence. A first wait in them
// raises the node's maximum.
func (b BackOff) forPod(p *v1.Pod) BackOff {
	first, most := annotations.BackOffOf(p)
	node := b.Or(BackOffFirst, BackOffMax)
	if r, ok := annotations.JobRetriesOf(p); ok && r.Policy == v1.RestartPolicyNever {
		node = BackOff{jobBackOffFirst, jobBackOffMax, true}
	}
	if most == 0 {
		most = max(first, node.Max)
	}
	return BackOff{First: first, Max: most, always: node.always}.Or(node.First, node.Max)
}

// after returns the wait that follows last. A maximum below the first wait has precedence, as in
// the kubelet.
func (b BackOff) after(last time.Duration) time.Duration {
	return min(max(2*last, b.First), b.Max)
}

// Unexpected failures are retried after RetryFirst, then after twice as long
// each time up to RetryMax.
const (
	RetryFirst = 250 * time.Millisecond
	RetryMax   = 10 * time.Second
)

// RetryIn returns how long to wait after this number of failures in a row, one or more.
func RetryIn(failures int) time.Duration { return backoff.Between(RetryFirst, RetryMax, failures) }

// RetryAfter returns how long to wait after count failures in a row: not long, because what the
// runtime lacked may exist now.
func RetryAfter(count int) time.Duration {
	return RetryIn(count + 2)
}
