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

// errCut: the runtime ended in the middle of a connection.
var errCut = errors.New("the runtime ended the connection before its end")

// quiet is how long the pod must have sent nothing before the end of this side's data is passed on
// to it. containerd and CRI-O end a connection a second after one of its sides has ended: an
// answer under way would be cut off, and look complete.
const quiet = time.Second

// settle is how long the end of the pod's data waits for the runtime's verdict: the streams end at
// once after an error, too.
const settle = 100 * time.Millisecond

// Forward passes a connection of this machine on to the port of a pod at the URL that the runtime
// gave for that pod, until both of its sides have ended, the runtime ends it, or ctx does. Each
// side may end before the other. It closes local, and resets it if the connection did not end
// properly. Each connection has one of its own to the runtime: on a common one, a reader that does
// not read would block all others.
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
	f.failure.Close() // only the server writes to it
	if f.data, err = f.open("data", port); err != nil {
		return err
	}
	came, judged, over := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
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
		if f.down(came, judged) != nil {
			left <- struct{}{}
		}
	})
	var failure error
	moving.Go(func() {
		defer close(judged)
		failure = f.verdict()
	})
	defer f.end()
	select {
	case <-judged: // the runtime has finished with it; what it has sent is passed on
		select {
		case <-down:
			return failure
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

// verdict waits until the runtime has finished with the connection, and returns its error. A
// runtime leaves the connection itself open then.
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

// up passes on the data of the client of this machine, and their end.
func (f *forward) up(came, over <-chan struct{}) error {
	w := &watched{to: f.data}
	_, err := io.Copy(w, struct{ io.Reader }{f.local})
	if w.err != nil {
		return nil // the runtime has ended it, and reports that
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

// down passes on the data of the pod, and their end.
func (f *forward) down(came chan<- struct{}, judged <-chan struct{}) error {
	w := &watched{to: f.local}
	io.Copy(w, &heard{f.data, came})
	if w.err != nil || f.conn.lost.Load() {
		return w.err
	}
	select {
	case <-judged: // then all of it is over
	case <-time.After(settle):
		f.local.CloseWrite()
	}
	return nil
}

// heard records that data arrived.
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
