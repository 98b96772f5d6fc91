// Package backoff has the waits between tries of what fails again and again.
package backoff

import "time"

// What is tried again in the background, without a user who waits for it, is tried
// after First, then after twice as long each time up to Most.
const (
	First = time.Second
	Most  = time.Minute
)

// After returns how long to wait after that many failures in a row, one or more.
func After(failures int) time.Duration { return Between(First, Most, failures) }

// Between is After with bounds of the caller's. A Most below First wins.
func Between(first, most time.Duration, failures int) time.Duration {
	wait := first
	for ; failures > 1 && wait < most; failures-- {
		wait *= 2
	}
	return min(wait, most)
}
