// Package server is the read-only endpoint: it shows what the status store
// holds, all of it on a unix socket for root, and what anybody on the machine
// may see on TCP loopback.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"monopod/agent/events"
	"monopod/agent/status"
)

// Limits of each listener. They are apart, so that nobody on TCP can lock root
// out of the socket.
const (
	maxConns          = 64
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 30 * time.Second
	shutdownTimeout   = 2 * time.Second
)

// Check is one line of /healthz. Func may be called from many goroutines at
// once and must not block.
type Check struct {
	Name string
	Func func() error
}

// Config says what is served and where.
type Config struct {
	Listen string // TCP address on loopback; "" for none
	Socket string // path of the unix socket; "" for none
	Store  *status.Store
	Events *events.Recorder
	Checks []Check // beside ping, runtime and manifests
	// Images asks the runtime for its images.
	Images  func(context.Context) (*status.Images, error)
	Version string
	Log     *slog.Logger
}

// Server serves a status store. Run must be called for what Listen bound to be
// released.
type Server struct {
	config Config
	ends   []*end
	socket os.FileInfo // the socket's file, to know it again; nil without a socket
}

// end is one listener with its own limits.
type end struct {
	listener net.Listener
	http     *http.Server
}

// Listen binds the addresses of c. Its errors are one sentence for the person
// who chose them.
func Listen(c Config) (*Server, error) {
	s := &Server{config: c}
	if c.Listen != "" {
		l, err := listenTCP(c.Listen)
		if err != nil {
			return nil, err
		}
		s.add(l, false)
	}
	if c.Socket != "" {
		l, err := listenUnix(c.Socket)
		if err != nil {
			s.close()
			return nil, err
		}
		s.add(l, true)
		if s.socket, err = os.Lstat(c.Socket); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) add(l net.Listener, local bool) {
	s.ends = append(s.ends, &end{
		listener: netutil.LimitListener(l, maxConns),
		http: &http.Server{
			Handler:           s.handler(local),
			MaxHeaderBytes:    maxHeaderBytes,
			ReadHeaderTimeout: readHeaderTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
		},
	})
}

// Addr returns the TCP address that is served, nil without one.
func (s *Server) Addr() net.Addr {
	if s.config.Listen == "" {
		return nil
	}
	return s.ends[0].listener.Addr()
}

// Run serves until ctx ends, gives requests under way a moment, and removes
// the socket. It returns an error only if serving ended by itself.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, len(s.ends))
	var wg sync.WaitGroup
	for _, e := range s.ends {
		s.config.Log.Info("serving status", "address", e.listener.Addr().String())
		wg.Go(func() { ended <- e.http.Serve(e.listener) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	s.shutdown()
	wg.Wait()
	return err
}

func (s *Server) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	for _, e := range s.ends {
		if e.http.Shutdown(ctx) != nil {
			e.http.Close()
		}
	}
	s.removeSocket()
}

// close releases what Listen bound before it went wrong.
func (s *Server) close() {
	for _, e := range s.ends {
		e.listener.Close()
	}
	s.removeSocket()
}

// removeSocket removes the socket's file unless another has taken its place.
func (s *Server) removeSocket() {
	if s.socket == nil {
		return
	}
	if now, err := os.Lstat(s.config.Socket); err == nil && os.SameFile(now, s.socket) {
		os.Remove(s.config.Socket)
	}
}
