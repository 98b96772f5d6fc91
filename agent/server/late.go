package server

import (
	"context"
	"time"

	"monopod/agent/backoff"
)

// late is the TCP address that could not be bound when the server was made. Pods can run
// without it: it is tried again until it can be.
type late struct {
	guard *guard
	why   error // of the last try
}

// bind binds the TCP address.
func (s *Server) bind(g *guard) error {
	l, err := listenTCP(s.config.Listen, g.asks() && g.certs != nil, s.config.Access)
	if err != nil {
		return err
	}
	s.add(l, g)
	return nil
}

// bindLater tries until the TCP address is bound, or ctx ends. It says so when it begins
// and when it is over, and reports whether the address is bound.
func (s *Server) bindLater(ctx context.Context) bool {
	s.tellLate(s.late.why)
	for tries := 1; ; tries++ {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(backoff.After(tries)):
		}
		err := s.bind(s.late.guard)
		if err == nil {
			s.tellLate(nil)
			return true
		}
		if err.Error() != s.late.why.Error() {
			s.late.why = err
			s.tellLate(err)
		}
	}
}

// tellLate tells why TCP is not served; nil: it is from now on.
func (s *Server) tellLate(err error) {
	if err != nil {
		s.config.Log.Error("TCP is not served; the agent goes on without and tries again", "err", err)
	}
	s.config.NoTCP(err)
}
