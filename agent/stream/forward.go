package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
)

// ForwardError is why a runtime did not pass a connection on, or not to its end, in its own words.
type ForwardError struct{ Text string }

func (e *ForwardError) Error() string { return e.Text }

// errCut is that the runtime went away in the middle of a connection.
var errCut = errors.New("the runtime ended the connection before its end")

// quiet is how long nothing must have come from the pod before it is told that this side has
// no more to say. containerd and CRI-O end a connection a second after one of its sides has
// ended: an answer that is under way would be cut off, and look as if it were whole.
const quiet = time.Second

// settle is how long an end of what the pod says waits for what the runtime says of it: the
// streams end at once where something went wrong, too.
const settle = 100 * time.Millisecond

// Forward passes a connection of this machine on to the port of a pod at the URL that the
// runtime gave for that pod, until both of its sides have ended, the runtime ends it, or ctx
// does. Each side may end before the other. It closes local, and resets it where the
// connection came to no proper end. Each connection has one of its own to the runtime: on a
// common one, a reader that does not read would keep up all others.
func Forward(ctx context.Context, url string, port uint16, local *net.TCPConn) error {
	return forwardTo(ctx, url, port, local, quiet)
}

func forwardTo(ctx context.Context, url string, port uint16, local *net.TCPConn, quiet time.Duration) (err error) {
	defer func() { closeLocal(local, err) }()
	conn, err := connect(ctx, url, forwardProtocol)
	if err != nil {
		return err
	}
	spdy, err := spdystream.NewConnection(conn, false)
	if err != nil {
		conn.Close()
		return fmt.Errorf("speak SPDY: %w", err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { spdy.Serve(spdystream.NoOpStreamHandler) })
	defer serving.Wait()
	f := &forward{conn: conn, spdy: spdy, local: local, quiet: quiet}
	defer f.end()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	err = f.run(ctx, port)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// closeLocal closes a connection of this machine, so that no client takes a part for the whole.
func closeLocal(local *net.TCPConn, err error) {
	if err != nil {
		local.SetLinger(0)
	}
	local.Close()
}

// forward is a connection that is passed on.
type forward struct {
	conn  *upgraded
	spdy  *spdystream.Connection
	local *net.TCPConn
	quiet time.Duration

	failure, data *spdystream.Stream
}

// end closes the connection to the runtime; see run.end for the streams.
func (f *forward) end() {
	f.conn.Close()
	for _, s := range []*spdystream.Stream{f.failure, f.data} {
		if s != nil {
			s.Reset()
		}
	}
}

func (f *forward) run(ctx context.Context, port uint16) (err error) {
	if f.failure, err = f.open(streamError, port); err != nil {
		return err
	}
	f.failure.Close() // of which the server is the only one that writes
	if f.data, err = f.open("data", port); err != nil {
		return err
	}
	came, told, over := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	var moving sync.WaitGroup
	defer moving.Wait()
	defer func() { closeLocal(f.local, err) }()
	defer close(over)
	left := make(chan struct{}, 2) // the client of this machine has left
	moving.Go(func() {
		if f.up(came, over) != nil {
			left <- struct{}{}
		}
	})
	down := make(chan struct{})
	moving.Go(func() {
		defer close(down)
		if f.down(came, told) != nil {
			left <- struct{}{}
		}
	})
	var said error
	moving.Go(func() {
		defer close(told)
		said = f.verdict()
	})
	defer f.end()
	select {
	case <-told: // the runtime is through with it; what it has sent is passed on
		select {
		case <-down:
			return said
		case <-left:
			return nil
		case <-ctx.Done():
		}
	case <-left:
		return nil
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// open makes one of the two streams that the server waits for.
func (f *forward) open(name string, port uint16) (*spdystream.Stream, error) {
	s, err := f.spdy.CreateStream(http.Header{"streamType": {name}, "port": {strconv.Itoa(int(port))}, "requestID": {"0"}}, nil, false)
	if err == nil {
		err = accepted(s, f.conn)
	}
	if err != nil {
		return s, fmt.Errorf("open the stream %s: %w", name, err)
	}
	return s, nil
}

// verdict waits until the runtime is through with the connection, and returns what went wrong.
// A runtime leaves the connection itself open then.
func (f *forward) verdict() error {
	text, _ := io.ReadAll(io.LimitReader(f.failure, statusLimit))
	io.Copy(io.Discard, f.failure)
	switch {
	case len(text) > 0:
		return &ForwardError{strings.TrimSpace(string(text))}
	case f.conn.lost.Load():
		return errCut
	}
	return nil
}

// up passes on what the client of this machine says, and that it has no more to say.
func (f *forward) up(came, over <-chan struct{}) error {
	w := &watched{to: f.data}
	_, err := io.Copy(w, struct{ io.Reader }{f.local})
	if w.err != nil {
		return nil // the runtime has ended it, and says so
	}
	if err != nil {
		return err
	}
	for silent := time.NewTimer(f.quiet); ; {
		select {
		case <-came:
			silent.Reset(f.quiet)
		case <-silent.C:
			return f.data.Close()
		case <-over:
			return nil
		}
	}
}

// down passes on what the pod says, and that it has no more to say.
func (f *forward) down(came chan<- struct{}, told <-chan struct{}) error {
	w := &watched{to: f.local}
	io.Copy(w, &heard{f.data, came})
	if w.err != nil || f.conn.lost.Load() {
		return w.err
	}
	select {
	case <-told: // then all of it is over
	case <-time.After(settle):
		f.local.CloseWrite()
	}
	return nil
}

// heard notes that something came.
type heard struct {
	io.Reader
	came chan<- struct{}
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	select {
	case h.came <- struct{}{}:
	default:
	}
	return n, err
}
