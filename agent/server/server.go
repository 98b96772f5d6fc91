// Package server is the read-only endpoint: it serves the content of the status store, all of it
// on a unix socket for root, and without secrets on TCP, to clients on this machine or, from
// elsewhere, to authenticated ones.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/disk"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/socket"
	"monopod/agent/status"
)

// Config is what is served, on which addresses and to which clients. Its functions are optional.
type Config struct {
	Listen string // TCP address; "" for none. One that is not loopback needs Access
	Socket string // path of the unix socket; "" for none
	Access Access // to TCP
	// HealthOnly serves nothing but /healthz: what a kubelet serves on its healthzPort.
	HealthOnly bool
	// NoTCP is called, while Run serves, with why the TCP address cannot be bound, and with nil
	// once it is bound. It is not called if the address was bound at once.
	NoTCP  func(err error)
	Store  *status.Store
	Events *events.Recorder

	Checks []Check // failures that only a restart of the agent cures; added to ping
	Ready  []Check // further conditions for the agent to count as ready

	PodLogs string // the folder of the containers' logs

	// Images requests the runtime's images.
	Images func(context.Context) (*status.Images, error)
	// Running requests from the runtime the pods that run in it.
	Running func(context.Context) ([]v1.Pod, error)
	// Settings returns the settings in force, by the names of KubeletConfiguration.
	Settings func() map[string]any
	// Held returns why and until when a pod, "namespace/name", or for "" the node is held;
	// nothing: it is not.
	Held func(pod string) message.Text
	// Trends returns what pods use and have used in the last hour, by uid.
	Trends func() map[string]status.Trend
	// Usage returns what the node uses, and how full its disks are.
	Usage func(context.Context) (*statsapi.NodeStats, error)
	// ManifestText returns the text of a file of the manifests, or why it is not shown.
	ManifestText func(ctx context.Context, path string) (text []byte, why string)
	// Requests are the owner's requests that the agent takes.
	Requests []Request
	// PodsKnown is closed once the agent knows what pods there are to be, which requests wait for, but
	// those about images; nil: it does.
	PodsKnown <-chan struct{}

	// Handlers are more paths, added to the server's own.
	Handlers []Handler
	// Watch may wrap what one listener serves, to count requests. paths are all paths that it
	// serves.
	Watch   func(local bool, paths []string, next http.Handler) http.Handler
	Version string
	Log     *slog.Logger
}

// filled replaces each missing function by one that does nothing.
func (c Config) filled() Config {
	if c.NoTCP == nil {
		c.NoTCP = func(error) {}
	}
	if c.PodsKnown == nil {
		known := make(chan struct{})
		close(known)
		c.PodsKnown = known
	}
	if c.Images == nil {
		c.Images = func(context.Context) (*status.Images, error) { return &status.Images{}, nil }
	}
	if c.Running == nil {
		c.Running = func(context.Context) ([]v1.Pod, error) { return nil, nil }
	}
	if c.Settings == nil {
		c.Settings = func() map[string]any { return nil }
	}
	if c.Held == nil {
		c.Held = func(string) message.Text { return message.Text{} }
	}
	if c.Trends == nil {
		c.Trends = func() map[string]status.Trend { return nil }
	}
	if c.Usage == nil {
		c.Usage = func(context.Context) (*statsapi.NodeStats, error) { return nil, nil }
	}
	if c.ManifestText == nil {
		c.ManifestText = func(context.Context, string) ([]byte, string) { return nil, "" }
	}
	if c.Watch == nil {
		c.Watch = func(_ bool, _ []string, next http.Handler) http.Handler { return next }
	}
	return c
}

// Handler is a path that another package serves. It gets GET and HEAD requests
// only.
type Handler struct {
	Path  string
	Local bool // on the unix socket only
	// AtOnce is how many requests each listener serves at a time; the others wait.
	// 0: any number.
	AtOnce int
	http.Handler
}

// Server serves a status store. Run must be called to release what Listen bound.
type Server struct {
	config Config
	socket *socket.Socket // nil: there is none
	late   *late          // nil: the TCP address, if any, was bound at once. Run's goroutine's

	mu   sync.Mutex // guards what follows
	ends []*end
	tcp  net.Addr // that is served; nil: none

	ending context.Context // ends when streams must end
	end    context.CancelFunc
}

// end is one listener with its own limits.
type end struct {
	listener net.Listener
	crowd    *connLimit
	http     *http.Server
}

// Listen binds the addresses of c. Its errors are one sentence for the user who
// chose them.
func Listen(c Config) (*Server, error) {
	s := &Server{config: c.filled()}
	s.ending, s.end = context.WithCancel(context.Background())
	if c.Listen != "" {
		g, err := newGuard(c.Access, c.Log)
		if err != nil {
			return nil, err
		}
		var busy *busyError
		err = s.bind(g)
		switch {
		case errors.As(err, &busy):
			s.late = &late{guard: g, why: err}
		case err != nil:
			return nil, err
		}
	}
	if c.Socket != "" {
		l, err := socket.Listen(c.Socket)
		if disk.Unwritable(err) { // pods can run without the endpoint
			c.Log.Error("no command can reach this agent: make room on the disk of its socket, or choose another with --socket, and start it again", "err", err)
			return s, nil
		}
		if err != nil {
			s.Close()
			return nil, err
		}
		s.socket = l
		s.add(l, nil)
	}
	return s, nil
}

// add serves l; no guard is the unix socket.
func (s *Server) add(l net.Listener, g *guard) {
	e := &end{crowd: newConnLimit(l)}
	e.listener, e.http = e.crowd, e.crowd.server(s.handler(g), s.config.Log)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g != nil {
		e.listener, s.tcp = g.wrap(e.listener), l.Addr()
	}
	s.ends = append(s.ends, e)
}

// all returns the listeners in use.
func (s *Server) all() []*end {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ends)
}

// Addr returns the TCP address that is served now, nil without one.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tcp
}

// Port returns the TCP port that is served now, 0 without one.
func (s *Server) Port() int32 {
	if tcp, ok := s.Addr().(*net.TCPAddr); ok {
		return int32(tcp.Port)
	}
	return 0
}

// Page returns the address of the pages for browsers on this machine, "" if TCP is not served.
func (s *Server) Page() string {
	tcp, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	at := url.URL{Scheme: "http", Host: tcp.String(), Path: "/"}
	if tcp.IP.IsUnspecified() {
		at.Host = net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	if s.config.Access.Cert != "" {
		at.Scheme = "https"
	}
	return at.String()
}

// Run serves until ctx ends, gives requests under way a moment, and removes
// the socket. It returns an error only if serving ended by itself.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, len(s.ends)+1)
	var served, binds sync.WaitGroup
	serve := func(e *end) {
		s.config.Log.Info("serving status", "address", e.listener.Addr().String())
		served.Go(func() { ended <- e.http.Serve(e.listener) })
	}
	for _, e := range s.all() {
		serve(e)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.late != nil {
		binds.Go(func() {
			if s.bindLater(ctx) {
				serve(s.all()[len(s.all())-1])
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	cancel()
	binds.Wait()
	s.shutdown()
	served.Wait()
	return err
}

func (s *Server) shutdown() {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	for _, e := range s.all() {
		if e.http.Shutdown(ctx) != nil {
			e.http.Close()
		}
	}
	s.removeSocket()
}

// Close releases what Listen bound, for a server that is not run.
func (s *Server) Close() {
	s.end()
	for _, e := range s.all() {
		e.listener.Close()
	}
	s.removeSocket()
}

// removeSocket removes the file of the socket, if there is one.
func (s *Server) removeSocket() {
	if s.socket != nil {
		s.socket.Remove()
	}
}
