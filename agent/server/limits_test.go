package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that a test has its
// own clock.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", f.address)
	return a
}

// dial returns the client's side of a new connection.
func (p *pipes) dial(address string) net.Conn {
	mine, theirs := net.Pipe()
	p.conns <- from{theirs, address}
	synctest.Wait()
	return mine
}

// piped serves h within a bubble.
func piped(t *testing.T, h http.Handler) *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	s := newConnLimit(p)
	web := s.server(h, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- web.Serve(s) }()
	t.Cleanup(func() {
		web.Close()
		<-done
	})
	return p
}

// ended returns how long it takes until the server closes the connection.
func ended(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	c.SetReadDeadline(began.Add(time.Hour))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
		t.Error("the connection stays open")
	}
	return time.Since(began)
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestAClientThatIsSlowIsCutOff(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	rows := []struct {
		name string
		act  func(t *testing.T, c net.Conn)
		want time.Duration
	}{
		{"says nothing", func(*testing.T, net.Conn) {}, readHeaderTimeout},
		{"says its header in small bits", func(t *testing.T, c net.Conn) {
			io.WriteString(c, "GET / HTTP/1.1\r\n")
			go func() {
				for _, err := io.WriteString(c, "X: y\r\n"); err == nil; _, err = io.WriteString(c, "X: y\r\n") {
					time.Sleep(time.Second)
				}
			}()
		}, readHeaderTimeout},
		{"asks nothing more", func(t *testing.T, c net.Conn) {
			go io.WriteString(c, get)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
		}, idleTimeout},
		{"does not read the answer", func(t *testing.T, c net.Conn) {
			io.WriteString(c, get)
			time.Sleep(writeTimeout)
			synctest.Wait()
		}, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := piped(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, big) }))
				c := p.dial("127.0.0.1:1")
				defer c.Close()
				r.act(t, c)
				if took := ended(t, c); took != r.want {
					t.Errorf("it is cut off after %s, want %s", took, r.want)
				}
				c.Close()
				time.Sleep(2 * time.Second) // whoever writes notices
			})
		})
	}
}

func TestAStreamHasNoLimitInAllButForEachPart(t *testing.T) {
	rows := []struct {
		name  string
		parts int // that are read, one each 20 s
		stop  bool
		want  time.Duration // until it is cut off, when nothing more is read
	}{
		{"as long as it is read", 20, false, streamWrite},
		{"until the server ends", 3, true, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{}
				s.ending, s.end = context.WithCancel(context.Background())
				over := make(chan struct{})
				p := piped(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					defer close(over)
					st, end, ok := s.stream(w, req)
					if !ok {
						t.Error("no stream")
						return
					}
					defer end()
					for {
						if _, err := io.WriteString(st, strings.Repeat("x", 1<<13)); err != nil {
							return
						}
						select {
						case <-st.ctx.Done():
							return
						case <-time.After(20 * time.Second):
						}
					}
				}))
				c := p.dial("127.0.0.1:1")
				defer c.Close()
				go io.WriteString(c, get)
				resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
				if err != nil {
					t.Fatal(err)
				}
				for k := range r.parts {
					if _, err := io.ReadFull(resp.Body, make([]byte, 1<<13)); err != nil {
						t.Fatalf("part %d: %v", k, err)
					}
				}
				began := time.Now()
				if r.stop {
					s.end()
					go io.Copy(io.Discard, resp.Body)
				}
				<-over
				if took := time.Since(began); took != r.want {
					t.Errorf("the stream ends after %s, want %s", took, r.want)
				}
			})
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		s.ending, s.end = context.WithCancel(context.Background())
		p := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if st, end, ok := s.stream(w, r); ok {
				defer end()
				st.Write([]byte("x"))
				<-st.ctx.Done()
			}
		}))
		ask := func() (net.Conn, int) {
			c := p.dial("127.0.0.1:1")
			go io.WriteString(c, get)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			return c, resp.StatusCode
		}
		var open []net.Conn
		for range maxStreams {
			c, code := ask()
			defer c.Close()
			if open = append(open, c); code != 200 {
				t.Fatalf("stream %d: %d", len(open), code)
			}
		}
		if c, code := ask(); code != http.StatusServiceUnavailable {
			t.Errorf("one stream too many: %d", code)
		} else {
			c.Close()
		}
		open[0].Close()
		synctest.Wait()
		if c, code := ask(); code != 200 {
			t.Errorf("no stream when there is room again: %d", code)
		} else {
			c.Close()
		}
		s.end()
		synctest.Wait()
	})
}

func TestAFullHouseMakesRoom(t *testing.T) {
	rows := []struct {
		name   string
		open   int                // connections before
		from   func(k int) string // where each comes from
		busy   func(k int) bool   // it is being answered
		next   string             // where the next one comes from
		leaves int                // who makes room; -1: nobody
		served bool               // the next one is
	}{
		{"room", maxConns - 1, local, never, local(0), -1, true},
		{"the oldest goes", maxConns, local, never, local(0), 0, true},
		{"not one that is answered", maxConns, local, func(k int) bool { return k < 3 }, local(0), 3, true},
		{"all are answered", maxConns, local, func(int) bool { return true }, local(0), -1, false},
		{"one address has no more than its share", maxConnsOfOne, far, never, far(0), 0, true},
		{"and goes into its own way only", 40 + maxConnsOfOne, func(k int) string {
			if k < 40 {
				return local(k)
			}
			return far(k)
		}, never, far(0), 40, true},
		{"while all of its own are answered", maxConnsOfOne, far, func(int) bool { return true }, far(0), -1, false},
		{"another address has room", maxConnsOfOne, far, never, "198.51.100.1:1", -1, true},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				p := piped(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
				defer close(hold)
				left := make(chan int, r.open)
				for k := range r.open {
					c := p.dial(r.from(k))
					defer c.Close()
					if r.busy(k) {
						io.WriteString(c, get)
						synctest.Wait()
						continue
					}
					go func() {
						c.Read(make([]byte, 1))
						left <- k
					}()
				}
				c := p.dial(r.next)
				defer c.Close()
				synctest.Wait()
				gone := -1
				if len(left) > 0 {
					gone = <-left
				}
				if gone != r.leaves || len(left) > 0 {
					t.Errorf("%d left and %d more, want %d", gone, len(left), r.leaves)
				}
				c.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := io.WriteString(c, get); (err == nil) != r.served {
					t.Errorf("the next one: %v", err)
				}
			})
		})
	}
}

func local(int) string { return "127.0.0.1:1" }
func far(int) string   { return "192.0.2.1:1" }
func never(int) bool   { return false }

// raw sends text to the server and returns the status line of the answer, once
// the connection is closed.
func raw(t *testing.T, addr net.Addr, text string) string {
	t.Helper()
	c, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	go io.WriteString(c, text)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// hostile is what no client would say.
func hostile() map[string]struct{ text, answer string } {
	head := "GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	return map[string]struct{ text, answer string }{
		"a large header":                {head + "X: " + strings.Repeat("x", 12<<10) + "\r\n\r\n", "HTTP/1.1 200 OK"},
		"a giant header":                {head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"giant many headers":            {head + strings.Repeat("X: y\r\n", 1<<16) + "\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a giant path":                  {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a body":                        {head + "Content-Length: 5\r\n\r\nhello", "HTTP/1.1 413 Request Entity Too Large"},
		"a giant body that never comes": {head + "Content-Length: 99999999999\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large"},
		"a body without an end":         {head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "HTTP/1.1 413 Request Entity Too Large"},
		"two lengths":                   {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", "HTTP/1.1 400 Bad Request"},
		"a length and chunks":           {head + "Content-Length: 1\r\nTransfer-Encoding: nonsense\r\n\r\nx", "HTTP/1.1 501 Not Implemented"},
		"no HTTP at all":                {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"HTTP of the future":            {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version"},
		"HTTP/2 without asking":         {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large"},
		"no host":                       {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request: missing required Host header"},
		"a header without a name":       {"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a path out of the tree":        {"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 307 Temporary Redirect"},
		"the name of another place":     {"GET /pods HTTP/1.1\r\nHost: evil.example:10255\r\n\r\n", "HTTP/1.1 421 Misdirected Request"},
	}
}

func TestWhatNoClientWouldSayIsRefused(t *testing.T) {
	w := serve(t, nil)
	for name, r := range hostile() {
		t.Run(name, func(t *testing.T) {
			if got := raw(t, w.Addr(), r.text); got != r.answer {
				t.Errorf("answer %q, want %q", got, r.answer)
			}
		})
	}
}

// Many clients that are slow, giant and malformed, all at once: the server
// stays as small as it was, and serves others.
func TestHostileClientsTakeNothingFromOthers(t *testing.T) {
	w := serve(t, nil)
	for k := range 20 {
		p := pod(fmt.Sprintf("p%d", k))
		w.store.SetPod("default/"+p.Name, p)
	}
	tcp := w.Addr().String()
	before, goroutines := heap(), runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for k := range 200 {
		clients.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", tcp)
				if err != nil {
					continue
				}
				if k%2 == 0 {
					io.WriteString(c, "GET /pods HTTP/1.1\r\nHost: x\r\nX-Slow: "+strings.Repeat("x", 8<<10)) // and stops
				}
				c.SetReadDeadline(time.Now().Add(time.Second))
				c.Read(make([]byte, 1))
				c.Close()
			}
		})
	}
	for _, r := range hostile() {
		clients.Go(func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", tcp); err == nil {
					c.SetDeadline(time.Now().Add(time.Second))
					io.WriteString(c, r.text)
					c.Close()
				}
			}
		})
	}
	for k := range 30 {
		if code, _, _ := w.ask(t, true, "GET", "/pods"); code != 200 {
			t.Errorf("the socket answers %d", code)
		}
		if k%10 == 9 {
			w.patient(t, "/healthz/ping")
		}
		for _, e := range w.ends {
			if n := e.crowd.size(); n > maxConns {
				t.Errorf("%d connections on %s", n, e.listener.Addr())
			}
		}
	}
	stop()
	clients.Wait()
	w.local.CloseIdleConnections()
	w.other.CloseIdleConnections()
	for range 1000 { // connections that were closed are let go by goroutines of their own
		if runtime.NumGoroutine() <= goroutines+5 {
			break
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines+5 {
		t.Errorf("%d goroutines, before there were %d", n, goroutines)
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("%d KB of heap, before there were %d KB", after>>10, before>>10)
	}
}

// patient asks on TCP until it is answered: a well-behaved client may be thrown
// out by a flood and asks again.
func (w *world) patient(t *testing.T, path string) {
	t.Helper()
	for k := range 60 {
		resp, err := w.other.Get("http://" + w.Addr().String() + path)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return
			}
		}
		t.Logf("try %d: %v", k, err)
	}
	t.Error("a good client is not served among bad ones")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (c *connLimit) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
