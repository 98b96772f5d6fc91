package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/moby/spdystream"
)

const (
	success = `{"metadata":{},"status":"Success"}`
	seven   = `{"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with non-zero exit code: exit status 7",` +
		`"details":{"causes":[{"reason":"Other","message":"9"},{"reason":"ExitCode","message":"7"}]}}`
)

// command is what the server under test runs with the streams of a client.
type command func(s map[string]*spdystream.Stream)

// serve is a runtime's streaming server for one command with so many streams;
// it returns its URL.
func serve(t *testing.T, streams int, run command) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil || req.Method != "POST" || req.URL.Path != "/exec/token" || req.Header.Get("Upgrade") != upgrade {
			t.Errorf("request %v, %v", req, err)
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n%s: %s\r\n\r\n", protocolHeader, req.Header.Get(protocolHeader))
		spdy, err := spdystream.NewConnection(conn, true)
		if err != nil {
			t.Error(err)
			return
		}
		came := make(chan *spdystream.Stream, streams)
		var serving sync.WaitGroup
		serving.Go(func() {
			spdy.Serve(func(s *spdystream.Stream) {
				s.SendReply(http.Header{}, false)
				came <- s
			})
		})
		made := map[string]*spdystream.Stream{}
		for range streams {
			s := <-came
			made[s.Headers().Get("streamType")] = s
		}
		run(made)
		conn.Close()
		for _, s := range made {
			s.Reset()
		}
		serving.Wait()
	})
	return "http://" + l.Addr().String() + "/exec/token"
}

func end(s map[string]*spdystream.Stream, status string) {
	for _, name := range []string{streamOut, streamErr} {
		if s[name] != nil {
			s[name].Close()
		}
	}
	io.WriteString(s[streamError], status)
	s[streamError].Close()
}

func TestOutputIsKeptApartAndTheExitCodePassedOn(t *testing.T) {
	url := serve(t, 3, func(s map[string]*spdystream.Stream) {
		io.WriteString(s[streamOut], "to out")
		io.WriteString(s[streamErr], "to err")
		end(s, seven)
	})
	var out, errs bytes.Buffer
	code, err := Run(t.Context(), url, Streams{Out: &out, Err: &errs})
	if code != 7 || err != nil || out.String() != "to out" || errs.String() != "to err" {
		t.Errorf("code %d, err %v, out %q, err %q", code, err, &out, &errs)
	}
}

func TestInputEndsWithoutEndingOutput(t *testing.T) {
	url := serve(t, 4, func(s map[string]*spdystream.Stream) {
		all, _ := io.ReadAll(s[streamIn])
		fmt.Fprintf(s[streamOut], "%d bytes", len(all))
		end(s, success)
	})
	var out bytes.Buffer
	in := strings.NewReader(strings.Repeat("x", 1<<20))
	code, err := Run(t.Context(), url, Streams{In: in, Out: &out, Err: io.Discard})
	if code != 0 || err != nil || out.String() != "1048576 bytes" {
		t.Errorf("code %d, err %v, out %q", code, err, &out)
	}
}

func TestNothingOfMuchOutputIsLost(t *testing.T) {
	chunk := bytes.Repeat([]byte("y"), 8<<10)
	url := serve(t, 3, func(s map[string]*spdystream.Stream) {
		for range 1000 {
			s[streamOut].Write(chunk)
			s[streamErr].Write(chunk)
		}
		end(s, success)
	})
	var out, errs bytes.Buffer
	code, err := Run(t.Context(), url, Streams{Out: &out, Err: &errs})
	if want := 1000 * len(chunk); code != 0 || err != nil || out.Len() != want || errs.Len() != want {
		t.Errorf("code %d, err %v, %d and %d bytes of %d", code, err, out.Len(), errs.Len(), want)
	}
}

func TestATerminalHasASizeAndNoErrors(t *testing.T) {
	sizes := make(chan Size, 1)
	url := serve(t, 4, func(s map[string]*spdystream.Stream) {
		r := bufio.NewReader(s[streamResize])
		for _, next := range []Size{{132, 43}, {}} {
			line, _ := r.ReadString('\n')
			io.WriteString(s[streamOut], line)
			if next != (Size{}) {
				sizes <- next
			}
		}
		end(s, success)
	})
	sizes <- Size{80, 24}
	var out bytes.Buffer
	quiet, _ := io.Pipe() // a terminal at which nobody types
	code, err := Run(t.Context(), url, Streams{In: quiet, Out: &out, TTY: true, Sizes: sizes})
	if want := `{"Width":80,"Height":24}` + "\n" + `{"Width":132,"Height":43}` + "\n"; code != 0 || err != nil || out.String() != want {
		t.Errorf("code %d, err %v, out %q", code, err, &out)
	}
}

type full struct{ after int }

func (f *full) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestAFailedWriteEndsIt(t *testing.T) {
	url := serve(t, 3, func(s map[string]*spdystream.Stream) {
		for {
			if _, err := io.WriteString(s[streamOut], strings.Repeat("y\n", 2000)); err != nil {
				return
			}
		}
	})
	_, err := Run(t.Context(), url, Streams{Out: &full{3}, Err: io.Discard})
	if output := (*OutputError)(nil); !errors.As(err, &output) || !errors.Is(output, io.ErrClosedPipe) {
		t.Errorf("err %v", err)
	}
}

type stuck struct{ started, free chan struct{} }

func (s stuck) Write(b []byte) (int, error) { close(s.started); <-s.free; return 0, io.ErrClosedPipe }

func TestAnEndThatIsAskedForDoesNotWait(t *testing.T) {
	asked := errors.New("asked for")
	out := stuck{make(chan struct{}), make(chan struct{})}
	defer close(out.free)
	url := serve(t, 3, func(s map[string]*spdystream.Stream) {
		io.WriteString(s[streamOut], "nobody reads this")
		io.ReadAll(s[streamError]) // until the client is gone
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer context.AfterFunc(ctx, func() {})()
	go func() { <-out.started; cancel(asked) }()
	if _, err := Run(ctx, url, Streams{Out: out, Err: io.Discard}); !errors.Is(err, asked) {
		t.Errorf("err %v", err)
	}
}

func TestALostConnectionIsSaid(t *testing.T) {
	url := serve(t, 3, func(map[string]*spdystream.Stream) {})
	_, err := Run(t.Context(), url, Streams{Out: io.Discard, Err: io.Discard})
	if want := "the runtime ended the connection and did not say how the command ended"; err == nil || err.Error() != want {
		t.Errorf("err %v", err)
	}
}

func TestHowACommandEnded(t *testing.T) {
	failure := func(text string) string {
		return `{"status":"Failure","reason":"InternalError","message":"` + text + `"}`
	}
	for _, r := range []struct {
		status    string
		code, not int // the exit code, and the one of a command that does not start
		err       string
	}{
		{success, 0, 0, ""},
		{seven, 7, 0, ""},
		{failure(`OCI runtime exec failed: exec: \"nosuch\": executable file not found in $PATH: unknown`), 0, 127, `OCI runtime exec failed: exec: "nosuch": executable file not found in $PATH: unknown`},
		{failure("stat /nosuch: no such file or directory"), 0, 127, "stat /nosuch: no such file or directory"},
		{failure("exec /etc/passwd: permission denied"), 0, 126, "exec /etc/passwd: permission denied"},
		{failure("task is paused"), 0, 0, "task is paused"},
		{`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"many"}]}}`, 0, 0, `how the command ended: exit code "many"`},
		{"ended badly", 0, 0, "how the command ended: invalid character 'e' looking for beginning of value"},
	} {
		code, err := ended([]byte(r.status))
		text, not := "", 0
		if err != nil {
			text = err.Error()
		}
		if e := (*StartError)(nil); errors.As(err, &e) {
			not = e.Code
		}
		if code != r.code || text != r.err || not != r.not {
			t.Errorf("%s: code %d, err %q with %d", r.status, code, text, not)
		}
	}
}

func TestOnlyLoopbackIsAsked(t *testing.T) {
	for url, want := range map[string]string{
		"http://192.0.2.1:1234/exec/x":   "the runtime's streaming server is at 192.0.2.1:1234 and not on a loopback address: set its address to 127.0.0.1",
		"http://example.com:80/exec/x":   "the runtime's streaming server is at example.com:80 and not on a loopback address: set its address to 127.0.0.1",
		"ftp://127.0.0.1:21/exec/x":      "the runtime's streaming URL is ftp://127.0.0.1:21: want http or https and a port",
		"http://[::1%25lo]/x":            "the runtime's streaming URL is http://[::1%lo]: want http or https and a port",
		"http://[::ffff:192.0.2.1]:80/x": "the runtime's streaming server is at [::ffff:192.0.2.1]:80 and not on a loopback address: set its address to 127.0.0.1",
		"":                               "the runtime's streaming server is at  and not on a loopback address: set its address to 127.0.0.1",
	} {
		if _, err := Run(t.Context(), url, Streams{Out: io.Discard, Err: io.Discard}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAServerThatRefuses(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot there":              "it answers 404 Not Found: not there",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n":            `it speaks websocket with "", want SPDY/3.1 with v4.channel.k8s.io`,
		"HTTP/1.1 101 S\r\nUpgrade: spdy/3.1\r\n" + protocolHeader + ": v1\r\n\r\n": `it speaks spdy/3.1 with "v1", want SPDY/3.1 with v4.channel.k8s.io`,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var answering sync.WaitGroup
		answering.Go(func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, answer)
		})
		_, err = Run(t.Context(), "http://"+l.Addr().String()+"/exec/x", Streams{Out: io.Discard, Err: io.Discard})
		if err == nil || err.Error() != "the runtime's streaming server at "+l.Addr().String()+": "+want {
			t.Errorf("%q: %v", answer, err)
		}
		l.Close()
		answering.Wait()
	}
}

// Input that cannot be read is not at its end: a command that takes a part for the whole is not done.
func TestInputThatCannotBeReadIsAnError(t *testing.T) {
	url := serve(t, 4, func(s map[string]*spdystream.Stream) {
		all, _ := io.ReadAll(s[streamIn])
		fmt.Fprintf(s[streamOut], "%d bytes", len(all))
		end(s, success)
	})
	in := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(syscall.EIO))
	_, err := Run(t.Context(), url, Streams{In: in, Out: io.Discard, Err: io.Discard})
	if !errors.Is(err, syscall.EIO) || err.Error() != "standard input: input/output error" {
		t.Errorf("err %v", err)
	}
}
