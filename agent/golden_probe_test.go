package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"monopod/cri/critest"
)

// goldenExec does what the few commands of the corpus do that are run in
// running containers.
func goldenExec(ctx context.Context, _ critest.Container, command []string) (string, int32, error) {
	switch command[0] {
	case "false":
		return "", 1, nil
	case "sleep":
		d, _ := time.ParseDuration(command[1] + "s")
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	return "", 0, nil
}

// goldenDial connects to the web server of the corpus, which has no pages, if
// the manifest runs one on that port.
func goldenDial(manifest, network, address string) (net.Conn, error) {
	_, port, _ := net.SplitHostPort(address)
	if !strings.Contains(manifest, "httpd -f -p "+port) {
		return nobodyListens(context.Background(), network, address)
	}
	return serveOnce(http.NotFoundHandler()), nil
}

// nobodyListens refuses all connections.
func nobodyListens(_ context.Context, network, address string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: errors.Join(syscall.ECONNREFUSED)}
}

// serveOnce returns a connection, in memory, to a web server.
func serveOnce(h http.Handler) net.Conn {
	theirs, ours := net.Pipe()
	l := &oneListener{conn: ours, done: make(chan struct{})}
	server := &http.Server{Handler: h, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(l.done)
		}
	}}
	go server.Serve(l)
	return theirs
}

// oneListener accepts one connection, then waits for its end.
type oneListener struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneListener) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return l.conn.LocalAddr() }
