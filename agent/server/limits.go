package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits of each listener. They are separate, so that no client on TCP can lock
// root out of the socket. Requests have no bodies, so that headers bound them.
const (
	maxConns          = 64
	maxConnsOfOne     = 16 // from one address that is not this machine's
	maxStreams        = maxConns / 2
	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 5 * time.Second // a TLS handshake has as long
	writeTimeout      = 30 * time.Second
	idleTimeout       = 30 * time.Second
	shutdownTimeout   = 2 * time.Second
)

// connLimit is a listener with a bounded number of connections. When it is full,
// a new one replaces the oldest idle one: a client that opens many and sends
// nothing blocks only itself.
type connLimit struct {
	net.Listener
	most, ofOne int

	mu      sync.Mutex
	open    []*client // oldest first
	streams int
}

// client is one connection.
type client struct {
	net.Conn
	crowd *connLimit
	from  netip.Addr // zero: from this machine
	busy  bool       // a request is answered; guarded by crowd.mu
}

func newConnLimit(l net.Listener) *connLimit {
	return &connLimit{Listener: l, most: maxConns, ofOne: maxConnsOfOne}
}

// Accept returns the next connection that there is room for.
func (c *connLimit) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := &client{Conn: conn, crowd: c}
		if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && !from.Addr().Unmap().IsLoopback() {
			n.from = from.Addr().Unmap()
		}
		if c.admit(n) {
			return n, nil
		}
		conn.Close()
	}
}

// admit makes room for n, and reports whether it could.
func (c *connLimit) admit(n *client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest, hisOldest *client
	his := 0
	for _, o := range c.open {
		if !o.busy && oldest == nil {
			oldest = o
		}
		if !n.from.IsValid() || o.from != n.from {
			continue
		}
		if his++; !o.busy && hisOldest == nil {
			hisOldest = o
		}
	}
	leaves := oldest
	switch {
	case his >= c.ofOne:
		leaves = hisOldest
	case len(c.open) < c.most:
		c.open = append(c.open, n)
		return true
	}
	if leaves == nil {
		return false
	}
	leaves.Conn.Close() // its reads and writes fail, and its handler returns
	c.remove(leaves)
	c.open = append(c.open, n)
	return true
}

func (c *connLimit) remove(n *client) {
	for k, o := range c.open {
		if o == n {
			c.open = append(c.open[:k], c.open[k+1:]...)
			return
		}
	}
}

// Close frees a place for another connection.
func (n *client) Close() error {
	n.crowd.mu.Lock()
	n.crowd.remove(n)
	n.crowd.mu.Unlock()
	return n.Conn.Close()
}

func (n *client) occupy(busy bool) {
	n.crowd.mu.Lock()
	n.busy = busy
	n.crowd.mu.Unlock()
}

// clientKey is where the context of a request has its *client.
type clientKey struct{}

// server returns what serves the crowd, HTTP/1.1 only: with HTTP/2 one
// connection would have many requests at once.
func (c *connLimit) server(h http.Handler, log *slog.Logger) *http.Server {
	s := &http.Server{
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		Protocols:         &http.Protocols{},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if t, ok := conn.(*tls.Conn); ok {
				conn = t.NetConn()
			}
			return context.WithValue(ctx, clientKey{}, conn)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n, ok := r.Context().Value(clientKey{}).(*client); ok {
				n.occupy(true)
				defer n.occupy(false)
			}
			h.ServeHTTP(w, r)
		}),
	}
	s.Protocols.SetHTTP1(true)
	s.ErrorLog.SetOutput(logFilter{log})
	return s
}

// logFilter logs what net/http complains of. What any stranger can bring about is
// for debugging: it must not fill the log.
type logFilter struct{ log *slog.Logger }

func (q logFilter) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	q.log.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}

// refuseBody answers a request that has a body, and reports whether it did. It
// closes the connection, so that the body is not read.
func refuseBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 && len(r.TransferEncoding) == 0 {
		return false
	}
	w.Header().Set("Connection", "close")
	http.Error(w, "requests have no body here", http.StatusRequestEntityTooLarge)
	return true
}
