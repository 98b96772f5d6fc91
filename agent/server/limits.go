package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of each listener. They are separate, so that no client on TCP can lock root out of the
// socket. Requests have no bodies, so that headers bound them.
const (
	maxConns          = 64
	maxConnsOfOne     = 16 // from one address other than this machine's
	maxStreams        = maxConns / 2
	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 5 * time.Second // a TLS handshake has as long
	writeTimeout      = 30 * time.Second
	idleTimeout       = 30 * time.Second
	shutdownTimeout   = 2 * time.Second
)

const (
	// stalls is how long a client may send no request, or not read what is written to it, before a
	// new one replaces it rather than another.
	stalls = 100 * time.Millisecond
	// breath is how long the next one waits while all connections were just opened, so that these
	// can send their requests.
	breath = time.Millisecond
	// unsentMax is how many bytes may be prepared and not sent yet.
	unsentMax = 64 << 20
)

// connLimit is a listener with a bounded number of connections. When it is full, a new one
// replaces the oldest idle one, else the one that has not read its answer for longest, else one
// that sends request after request: a client that opens many blocks only itself.
type connLimit struct {
	net.Listener
	most, ofOne int

	mu      sync.Mutex
	open    []*client // oldest first
	streams int
	unsent  int // bytes prepared for clients and not sent
}

// client is one connection.
type client struct {
	net.Conn
	crowd *connLimit
	from  netip.Addr // zero: from this machine

	// guarded by crowd.mu
	idle    time.Time // since when it has no request
	busy    bool      // a request is being answered
	queued  bool      // that request waits for its turn
	answers int       // requests answered before
	writing time.Time // since when a write has not ended; zero: none is in progress
	kept    int       // bytes of an answer prepared and not sent yet
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
		n := &client{Conn: conn, crowd: c, idle: time.Now()}
		if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && !from.Addr().Unmap().IsLoopback() {
			n.from = from.Addr().Unmap()
		}
		admitted, crowded := c.admit(n)
		if crowded {
			time.Sleep(breath)
		}
		if admitted {
			return n, nil
		}
		conn.Close()
	}
}

// admit makes room for n, and reports whether it could, and whether a connection that was just
// opened was closed for it.
func (c *connLimit) admit(n *client) (admitted, crowded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var his []*client
	if n.from.IsValid() {
		his = slices.DeleteFunc(slices.Clone(c.open), func(o *client) bool { return o.from != n.from })
	}
	leaves := replaceable(c.open)
	switch {
	case len(his) >= c.ofOne:
		leaves = replaceable(his)
	case len(c.open) < c.most:
		c.open = append(c.open, n)
		return true, false
	}
	if leaves == nil {
		return false, false
	}
	crowded = !leaves.busy && time.Since(leaves.idle) < stalls
	c.cut(leaves)
	c.open = append(c.open, n)
	return true, crowded
}

// replaceable returns which of the clients, oldest first, a new one may replace: one that has no
// request, does not read, or waits for its turn and has had one; nil: none.
func replaceable(all []*client) *client {
	first := func(is func(o *client) bool) *client {
		if k := slices.IndexFunc(all, is); k >= 0 {
			return all[k]
		}
		return nil
	}
	if o := first(func(o *client) bool { return !o.busy && time.Since(o.idle) >= stalls }); o != nil {
		return o
	}
	if o := slowest(all); o != nil && time.Since(o.writing) >= stalls {
		return o
	}
	if o := first(func(o *client) bool { return o.queued && o.answers > 0 }); o != nil {
		return o
	}
	return first(func(o *client) bool { return !o.busy }) // which may be about to send a request
}

// slowest returns the client whose write has been in progress for longest; nil: none is.
func slowest(all []*client) (slow *client) {
	for _, o := range all {
		if !o.writing.IsZero() && (slow == nil || o.writing.Before(slow.writing)) {
			slow = o
		}
	}
	return slow
}

// cut ends a connection: its reads and writes fail, and its handler returns. c.mu is held.
func (c *connLimit) cut(n *client) {
	n.Conn.Close()
	c.remove(n)
}

// keep records how many bytes of an answer are prepared for a client and not sent yet; 0: all are
// sent. If all clients keep too much, the slowest readers are cut.
func (n *client) keep(bytes int) {
	c := n.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.open, n) { // it was cut off
		return
	}
	c.unsent += bytes - n.kept
	n.kept = bytes
	for c.unsent > unsentMax {
		slow := slowest(slices.DeleteFunc(slices.Clone(c.open), func(o *client) bool { return o == n || o.kept == 0 }))
		if slow == nil {
			return
		}
		c.cut(slow)
	}
}

// Write records how long it takes.
func (n *client) Write(data []byte) (int, error) {
	n.writes(time.Now())
	defer n.writes(time.Time{})
	return n.Conn.Write(data)
}

func (n *client) writes(since time.Time) {
	n.crowd.mu.Lock()
	n.writing = since
	n.crowd.mu.Unlock()
}

// remove forgets a connection, and what it keeps. c.mu is held.
func (c *connLimit) remove(n *client) {
	c.unsent -= n.kept
	n.kept = 0
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
	if !busy {
		n.idle = time.Now()
		n.answers++
	}
	n.crowd.mu.Unlock()
}

// queue records whether the request of a client waits for its turn.
func (n *client) queue(waits bool) {
	n.crowd.mu.Lock()
	n.queued = waits
	n.crowd.mu.Unlock()
}

// clientKey is the key of the *client in the context of a request.
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

// logFilter logs net/http's messages. What any stranger can cause is at level debug: it must not
// fill the log.
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
