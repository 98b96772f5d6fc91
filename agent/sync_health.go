package agent

import (
	"errors"
	"fmt"
	"time"
)

// healthy is the health check of the loop.
func (l *syncLoop) healthy() error {
	if ago := time.Since(l.born) - time.Duration(l.turned.Load()); ago > syncOverdue {
		return fmt.Errorf("the sync loop has not turned for %s", ago.Round(time.Second))
	}
	return nil
}

// lastTurn returns when the loop last turned, by the present clock.
func (l *syncLoop) lastTurn() time.Time {
	return time.Now().Add(time.Duration(l.turned.Load()) - time.Since(l.born))
}

// read is the readiness check of the manifests: the folder was listed once, and
// each readable file in it was read. An invalid or unreadable file does not fail
// the check, as it is shown elsewhere and may stay so; a missing or unreadable
// folder does.
func (l *syncLoop) read() error {
	if !l.known.Load() {
		return errors.New("the manifests have not been read yet")
	}
	return nil
}
