package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/spdystream"
)

// connected returns both ends of a connection of this machine.
func connected(t *testing.T) (client, local *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), accepted.(*net.TCPConn)
}

// pod is what a runtime does with a connection: it closes its streams when it is through, and
// leaves the connection to the client.
type pod func(data *spdystream.Stream) (failure string)

// forwarded passes a connection on to a pod, and returns its client and what Forward returns.
func forwarded(t *testing.T, ctx context.Context, quiet time.Duration, p pod) (client *net.TCPConn, result <-chan error) {
	t.Helper()
	over, done := make(chan struct{}), make(chan error, 1)
	url := serve(t, 2, func(s map[string]*spdystream.Stream) {
		defer func() { <-over }()
		for _, kind := range []string{"data", "error"} {
			if h := s[kind].Headers(); h.Get("port") != "80" || h.Get("requestID") != "0" {
				t.Errorf("stream %s has the headers %v", kind, h)
			}
		}
		failure := p(s["data"])
		io.WriteString(s["error"], failure)
		if failure != "" { // as containerd does
			s["data"].Reset()
			s["error"].Reset()
			return
		}
		s["error"].Close()
		s["data"].Close()
	})
	client, local := connected(t)
	go func() {
		err := forwardTo(ctx, url, 80, local, quiet)
		close(over)
		done <- err
	}()
	return client, done
}

func TestAllThatIsSaidIsPassedOnBothWays(t *testing.T) {
	client, result := forwarded(t, t.Context(), 0, func(data *spdystream.Stream) string {
		io.Copy(data, data)
		return ""
	})
	said := bytes.Repeat([]byte("all that is said "), 1<<19)
	go func() {
		client.Write(said)
		client.CloseWrite()
	}()
	heard, err := io.ReadAll(client)
	if err != nil || sha256.Sum256(heard) != sha256.Sum256(said) {
		t.Errorf("%d bytes of %d: %v", len(heard), len(said), err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// The pod has ended, and is told more.
func TestThePodMayEndFirst(t *testing.T) {
	client, result := forwarded(t, t.Context(), 0, func(data *spdystream.Stream) string {
		io.WriteString(data, "bye")
		data.Close()
		if all, _ := io.ReadAll(data); string(all) != "one more thing" {
			t.Errorf("the pod heard %q", all)
		}
		return ""
	})
	if heard, err := io.ReadAll(client); string(heard) != "bye" || err != nil {
		t.Errorf("%q, %v", heard, err)
	}
	io.WriteString(client, "one more thing")
	client.CloseWrite()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// containerd cuts an answer off once it hears that the client has no more to say.
func TestAnAnswerUnderWayIsWhole(t *testing.T) {
	const parts = 2000
	client, result := forwarded(t, t.Context(), time.Hour, func(data *spdystream.Stream) string {
		ended := make(chan struct{})
		io.ReadFull(data, make([]byte, len("question")))
		go func() { io.ReadAll(data); close(ended) }()
		for range parts {
			select {
			case <-ended:
				return ""
			default:
				data.Write(make([]byte, 4<<10))
			}
		}
		return ""
	})
	io.WriteString(client, "question")
	client.CloseWrite()
	if heard, err := io.ReadAll(client); len(heard) != parts*4<<10 || err != nil {
		t.Errorf("%d bytes of %d, %v", len(heard), parts*4<<10, err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestWhatTheRuntimeSaysIsTheErrorAndNoClientTakesItForAnEnd(t *testing.T) {
	client, result := forwarded(t, t.Context(), 0, func(*spdystream.Stream) string { return "connection refused\n" })
	var said *ForwardError
	if err := <-result; !errors.As(err, &said) || said.Text != "connection refused" {
		t.Errorf("%v", err)
	}
	if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v", err)
	}
}

func TestARuntimeThatGoesIsNoEnd(t *testing.T) {
	url := serve(t, 2, func(s map[string]*spdystream.Stream) { io.WriteString(s["data"], "half of") })
	client, local := connected(t)
	if err := Forward(t.Context(), url, 80, local); !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
	if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v", err)
	}
}

func TestAClientThatLeavesIsNoError(t *testing.T) {
	client, result := forwarded(t, t.Context(), 0, func(data *spdystream.Stream) string {
		io.WriteString(data, "x")
		io.ReadAll(data)
		return ""
	})
	io.ReadFull(client, make([]byte, 1))
	client.SetLinger(0)
	client.Close()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestAForwardedConnectionEndsWithItsContext(t *testing.T) {
	asked := errors.New("asked for")
	ctx, cancel := context.WithCancelCause(t.Context())
	client, result := forwarded(t, ctx, 0, func(data *spdystream.Stream) string {
		cancel(asked)
		io.ReadAll(data)
		return ""
	})
	if err := <-result; !errors.Is(err, asked) {
		t.Errorf("%v", err)
	}
	if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reads %v", err)
	}
}

func TestAServerThatForwardsNothingIsSaid(t *testing.T) {
	_, local := connected(t)
	err := Forward(t.Context(), "http://192.0.2.1:1/x", 80, local)
	if err == nil || !strings.Contains(err.Error(), "not on a loopback address") {
		t.Errorf("%v", err)
	}
}
