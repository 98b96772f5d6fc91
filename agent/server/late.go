package server

import (
	"context"
	"time"

	"monopod/agent/backoff"
)

// late is the TCP address that could not be bound when the server was made. Pods can run without
// it: binding is retried until it succeeds.
type late struct {
	guard *guard
	why   error // of the last try
}

// bind binds the TCP address.
func (s *Server) bind(g *guard) error {
	l, err := listenTCP(s.config.Listen, s.config.Access)
	if err != nil {
		return err
	}
	s.add(l, g)
	return nil
}

// bindLater tries until the TCP address is bound, or ctx ends. It reports when it starts and when
// the address is bound, and returns whether it is.
func (s *Server) bindLater(ctx context.Context) bool {
	s.reportLate(s.late.why)
	for tries := 1; ; tries++ {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(backoff.After(tries)):
		}
		err := s.bind(s.late.guard)
		if err == nil {
			s.reportLate(nil)
			return true
		}
		if err.Error() != s.late.why.Error() {
			s.late.why = err
			s.reportLate(err)
		}
	}
}

// reportLate logs and reports why TCP is not served; nil: it is from now on.
func (s *Server) reportLate(err error) {
	if err != nil {
		s.config.Log.Error("TCP is not served; the agent goes on without and tries again", "err", err)
	}
	s.config.NoTCP(err)
}
