package rig

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Poll is how often Until looks.
const Poll = 20 * time.Millisecond

// final marks an error that no waiting can cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final makes Until give up at once with err.
func Final(err error) error { return final{err} }

// Until calls cond each Poll until it returns nil. After limit, or when ctx ends,
// it returns the last error: what was still missing.
func Until(ctx context.Context, limit time.Duration, cond func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := cond()
		var f final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &f):
			return f.error
		case time.Now().After(deadline):
			return fmt.Errorf("after %v: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(Poll):
		}
	}
}
