package cri

import (
	"context"
	"sync"
	"time"
)

// The longest timeouts of calls that only ask, and of calls that change something.
const (
	asksMost    = time.Minute
	changesMost = 10 * time.Minute
)

// patience is what calls need, by name, so that a runtime on a slow or overloaded machine is waited
// for as long as it takes. A timeout that no call keeps would be worse than none: containerd undoes
// what its caller does not wait for, and begins from the start at the next try.
type patience struct {
	mu    sync.Mutex
	needs map[string]time.Duration
}

// ended notes the end of a call: one that met its deadline needs twice as long, and those that
// succeed tell how long at most.
func (p *patience) ended(ctx context.Context, call string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline, limited := ctx.Deadline()
	switch {
	case !limited:
	case err == nil:
		p.needs[call] = max(p.needs[call]/2, 2*took)
	case !time.Now().Before(deadline):
		p.needs[call] = max(p.needs[call], 2*took)
	}
}

func (p *patience) timeout(call string, first, most time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(first, min(p.needs[call], most))
}

// asks returns the timeout of a call that only asks.
func (c *Client) asks(call string) time.Duration {
	return c.patience.timeout(call, c.Timeouts.Query, asksMost)
}

// changes returns the timeout of a call that changes something.
func (c *Client) changes(call string, first time.Duration) time.Duration {
	return c.patience.timeout(call, first, changesMost)
}
