package stats

import (
	"context"
	"time"
)

// cached is a value that is costly to compute: concurrent callers, and those soon after, share one
// result.
type cached[T any] struct {
	turn  chan struct{} // holds a token while one caller computes; guards what follows
	at    time.Time     // when value was computed
	value T
}

func newCached[T any]() *cached[T] { return &cached[T]{turn: make(chan struct{}, 1)} }

// get returns the value if it is younger than age and fits, or computes it. An error is not cached:
// the next caller tries again.
func (c *cached[T]) get(ctx context.Context, age time.Duration, fits func(T) bool, make func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if !c.at.IsZero() && time.Since(c.at) < age && fits(c.value) {
		return c.value, nil
	}
	v, err := make(ctx)
	if err != nil {
		return none, err
	}
	c.value, c.at = v, time.Now()
	return v, nil
}
