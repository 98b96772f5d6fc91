// Package stream connects this machine's streams with those of containers, at the URLs that a CRI
// runtime gives for that: commands, the processes of containers, and ports of pods. It speaks what
// all runtimes' streaming servers have in common, the kubelet's remote command protocol v4 and its
// port forwarding over SPDY/3.1: over WebSocket, their other one, there is no way to end standard
// input.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/moby/spdystream"
)

// Streams are those of a command. In may be nil for none; Err is not used with a TTY.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	TTY      bool
	Sizes    <-chan Size // of the terminal, with a TTY; may be nil
}

// Size is that of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Names of the protocol's streams, in the order in which they are made.
const (
	streamError  = "error"
	streamIn     = "stdin"
	streamOut    = "stdout"
	streamErr    = "stderr"
	streamResize = "resize"
)

// replyTimeout is how long the server may take to accept a stream. Its own
// limit for all of them together is 30 s in all runtimes.
const replyTimeout = 30 * time.Second

// replyLook is how often the connection is checked meanwhile.
const replyLook = 50 * time.Millisecond

// OutputError is that this machine's side did not take the output of a command.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// Run runs the command behind the URL and returns its exit code once it has ended and all of its
// output is passed on. Behind the URL of an attachment is what the container already runs, and the
// exit code is 0 however that ended. ctx's end closes the connection; the runtime decides what
// happens to the command then. A failed read of In ends it likewise, and is the error; so does a
// failed write to Out or Err, with an *OutputError. A read of In that waits when the command ends, or
// a write that waits when ctx does, is left behind: a file cannot be interrupted.
func Run(ctx context.Context, url string, s Streams) (code int, err error) {
	conn, err := connect(ctx, url, commandProtocol)
	if err != nil {
		return 0, err
	}
	spdy, err := spdystream.NewConnection(conn, false)
	if err != nil {
		conn.Close()
		return 0, fmt.Errorf("speak SPDY: %w", err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { spdy.Serve(spdystream.NoOpStreamHandler) })
	defer serving.Wait()
	r := &run{conn: conn, spdy: spdy, streams: s, made: map[string]*spdystream.Stream{}}
	defer r.end()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	code, err = r.run(ctx)
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return code, err
}

// run is a running command.
type run struct {
	conn    *upgraded
	spdy    *spdystream.Connection
	streams Streams
	made    map[string]*spdystream.Stream // by name; not changed once output flows

	mu   sync.Mutex
	lost error // reads of the input and writes of the output that failed
}

// end closes the connection. Each stream is closed separately, as one that is not read any more
// would block all others.
func (r *run) end() {
	r.conn.Close()
	for _, s := range r.made {
		s.Reset()
	}
}

func (r *run) run(ctx context.Context) (int, error) {
	if err := r.open(); err != nil {
		return 0, err
	}
	if in := r.made[streamIn]; in != nil {
		go r.feed(in)
	}
	over := make(chan struct{})
	var resizing, outputs sync.WaitGroup
	if to := r.made[streamResize]; to != nil {
		resizing.Go(func() { r.resize(to, over) })
	}
	outputs.Go(func() { r.drain(r.streams.Out, r.made[streamOut]) })
	if from := r.made[streamErr]; from != nil {
		outputs.Go(func() { r.drain(r.streams.Err, from) })
	}
	defer resizing.Wait()
	defer close(over)
	passed := make(chan struct{})
	go func() { outputs.Wait(); close(passed) }()
	select {
	case <-passed:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	status, err := io.ReadAll(io.LimitReader(r.made[streamError], statusLimit))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return 0, r.lost
	}
	if err != nil {
		return 0, fmt.Errorf("read how the command ended: %w", err)
	}
	return ended(status)
}

// open makes the streams that the server waits for.
func (r *run) open() error {
	for _, name := range r.names() {
		s, err := r.spdy.CreateStream(http.Header{"streamType": {name}}, nil, false)
		if err == nil {
			r.made[name] = s
			err = accepted(s, r.conn)
		}
		if err != nil {
			return fmt.Errorf("open the stream %s: %w", name, err)
		}
	}
	return nil
}

// accepted waits until the server has accepted a stream. The library does not notice that the
// connection is lost meanwhile.
func accepted(s *spdystream.Stream, conn *upgraded) (err error) {
	for waited := time.Duration(0); waited < replyTimeout; waited += replyLook {
		if err = s.WaitTimeout(replyLook); err != spdystream.ErrTimeout {
			return err
		}
		if conn.lost.Load() {
			return io.ErrUnexpectedEOF
		}
	}
	return err
}

// names returns the streams that the server waits for.
func (r *run) names() []string {
	names := []string{streamError}
	if r.streams.In != nil {
		names = append(names, streamIn)
	}
	names = append(names, streamOut)
	if r.streams.TTY {
		return append(names, streamResize)
	}
	return append(names, streamErr)
}

// feed passes the input on, and its end. Input that cannot be read has none: the command must not
// take a part of it for the whole.
func (r *run) feed(to *spdystream.Stream) {
	w := &watched{to: to}
	_, err := io.Copy(w, struct{ io.Reader }{r.streams.In})
	if err != nil && w.err == nil { // a failed write means that the command has ended
		r.giveUp(fmt.Errorf("standard input: %w", err))
		return
	}
	to.Close()
}

// drain passes output on. If that fails, the command is given up.
func (r *run) drain(to io.Writer, from io.Reader) {
	w := &watched{to: to}
	io.Copy(w, from)
	if w.err != nil {
		r.giveUp(&OutputError{w.err})
	}
}

// giveUp ends the command because one of this machine's streams has failed.
func (r *run) giveUp(err error) {
	r.mu.Lock()
	r.lost = errors.Join(r.lost, err)
	r.mu.Unlock()
	r.end()
}

// watched records write errors, apart from read errors.
type watched struct {
	to  io.Writer
	err error
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.err = err
	return n, err
}

// resize sends the server each size until the command is over.
func (r *run) resize(to io.WriteCloser, over <-chan struct{}) {
	defer to.Close()
	encode := json.NewEncoder(to)
	for {
		select {
		case size, ok := <-r.streams.Sizes:
			if !ok || encode.Encode(size) != nil {
				return
			}
		case <-over:
			return
		}
	}
}
