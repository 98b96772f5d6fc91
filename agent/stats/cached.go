package stats

import (
	"context"
	"time"
)

// cached is something that is costly to find out: those who ask at the same time,
// or soon after, share one answer.
type cached[T any] struct {
	turn  chan struct{} // holds a token while somebody finds out; guards what follows
	at    time.Time     // when value was found out
	value T
}

func newCached[T any]() *cached[T] { return &cached[T]{turn: make(chan struct{}, 1)} }

// get returns an answer that is younger than age and that fits, or makes one. An
// error is not kept: whoever asks next tries again.
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
