package server

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a client that asks and reads nothing of the answer.
func slow(t *testing.T, p *pipes) net.Conn {
	c := p.dial("127.0.0.1:1")
	t.Cleanup(func() { c.Close() })
	go io.WriteString(c, strings.Repeat(get, 60))
	synctest.Wait()
	return c
}

// answered asks for an answer of an honest client, and returns its code and how long it
// took; 0: there was none.
func answered(p *pipes) (code int, took time.Duration) {
	began := time.Now()
	c := p.dial("127.0.0.1:1")
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	go io.WriteString(c, get)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, time.Since(began)
	}
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, time.Since(began)
}

// A client that does not read its answer takes no turn.
func TestWhoDoesNotReadTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := piped(t, inTurn(4, says(strings.Repeat("x", 1<<20))))
		for range 40 {
			slow(t, p)
		}
		if code, took := answered(p); code != http.StatusOK || took > time.Second {
			t.Errorf("beside 40 who do not read: %d after %s", code, took)
		}
	})
}

// Nor a place, once all are taken.
func TestWhoDoesNotReadMakesRoom(t *testing.T) {
	for name, h := range map[string]http.Handler{"made in turn": inTurn(4, says(strings.Repeat("x", 1<<20))), "sent as it is made": says(strings.Repeat("x", 1<<20))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := piped(t, h)
				for range maxConns {
					slow(t, p)
				}
				time.Sleep(stalls)
				for k := range 3 {
					if code, took := answered(p); code != http.StatusOK || took > time.Second {
						t.Errorf("try %d in a full house of those who do not read: %d after %s", k, code, took)
					}
				}
			})
		})
	}
}

// What is made and not read is bounded, over all clients.
func TestWhatIsNotReadTakesLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16 << 20
		body := strings.Repeat("x", size)
		l := &pipes{conns: make(chan net.Conn)}
		p := newConnLimit(l)
		web := p.server(inTurn(4, says(body)), slog.New(slog.DiscardHandler))
		done := make(chan error, 1)
		go func() { done <- web.Serve(p) }()
		defer func() { web.Close(); <-done }()
		for range 20 {
			slow(t, l)
			p.mu.Lock()
			if p.unsent > unsentMax {
				t.Errorf("%d MB are made and not sent", p.unsent>>20)
			}
			p.mu.Unlock()
		}
		if n := p.size(); n > unsentMax/size {
			t.Errorf("%d clients keep answers of %d MB", n, size>>20)
		}
		time.Sleep(2 * turnTimeout)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.unsent != 0 {
			t.Errorf("%d bytes are counted of clients that are gone", p.unsent)
		}
	})
}

func TestAnAnswerIsSentAsItWasMade(t *testing.T) {
	for name, row := range map[string]struct {
		make func(http.ResponseWriter)
		code int
		body string
	}{
		"with its code": {func(w http.ResponseWriter) { http.Error(w, "sorry", http.StatusServiceUnavailable) }, http.StatusServiceUnavailable, "sorry\n"},
		"in parts":      {func(w http.ResponseWriter) { io.WriteString(w, "a"); io.WriteString(w, "b") }, http.StatusOK, "ab"},
		"too large": {func(w http.ResponseWriter) {
			for range answerMax>>20 + 1 {
				w.Write(make([]byte, 1<<20))
			}
		}, http.StatusInternalServerError, "the answer is too large\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, func(c *Config) {
				c.Handlers = []Handler{{Path: "/x", AtOnce: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/x-own")
					row.make(w)
				})}}
			})
			code, body, header := w.ask(t, false, "GET", "/x")
			if code != row.code || body != row.body || row.code == http.StatusOK && header.Get("Content-Type") != "text/x-own" {
				t.Errorf("%d %.40q %v", code, body, header)
			}
		})
	}
}

// One that asks again and again, and has had its turn, makes room for one that had none.
func TestWhoAsksAgainAndAgainMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := piped(t, inTurn(1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(50 * time.Millisecond)
			io.WriteString(w, "x")
		})))
		var all []net.Conn
		for range maxConns {
			c := p.dial("127.0.0.1:1")
			all = append(all, c)
			go io.WriteString(c, strings.Repeat(get, 60))
			go io.Copy(io.Discard, c)
		}
		time.Sleep(5 * time.Second) // each has had a turn
		for k := range 3 {
			if code, took := answered(p); code != http.StatusOK || took > turnTimeout/2 {
				t.Errorf("try %d among those who ask again and again: %d after %s", k, code, took)
			}
		}
		for _, c := range all {
			c.Close()
		}
		time.Sleep(turnTimeout) // the handlers notice
	})
}
