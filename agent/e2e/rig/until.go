package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Poll is how often Until looks.
const Poll = 20 * time.Millisecond

// Slow is how many times slower this machine is than a usual one: MONOPOD_SLOW, for
// emulators. Until looks less often there and gives up later.
func Slow() time.Duration {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("MONOPOD_SLOW"), "1"))
	if err != nil || n < 1 {
		panic("MONOPOD_SLOW: want a number above 0")
	}
	return time.Duration(n)
}

// final marks an error that no waiting can cure.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final makes Until give up at once with err.
func Final(err error) error { return final{err} }

// Until calls cond each Poll until it returns nil. After limit, or when ctx ends,
// it returns the last error: what was still missing. Both are longer on a Slow machine.
func Until(ctx context.Context, limit time.Duration, cond func() error) error {
	poll := Poll * Slow()
	limit *= Slow()
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
		case <-time.After(poll):
		}
	}
}
