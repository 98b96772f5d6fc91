package fetch

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"

// server serves h, and returns its URL.
func server(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// once asks a URL once.
func once(t *testing.T, s Settings) manifests.Answer {
	t.Helper()
	f := New(s)
	defer f.client.CloseIdleConnections()
	a, _ := f.poll(t.Context())
	return a
}

func TestACommandAsksOnce(t *testing.T) {
	a, err := New(Settings{URL: server(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) })}).Ask(t.Context())
	if err != nil || string(a.Data) != pod {
		t.Errorf("%q (%v)", a.Data, err)
	}
	url := server(t, http.NotFound)
	_, err = New(Settings{URL: url + "/p?key=secret"}).Ask(t.Context())
	if want := url + "/p?...: answers 404 Not Found: correct staticPodURL"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// raw answers with these bytes and ends the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(c, text)
			c.Close()
		}
	}
}

// bomb answers with some MB of zeros, packed.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for range 64 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
}

func TestWhatIsNoAnswerIsAProblem(t *testing.T) {
	for _, r := range []struct {
		name, want string // the start of the problem; "": there is none
		h          http.HandlerFunc
	}{
		{"a pod", "", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) }},
		{"in chunks", "", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, pod)
			w.(http.Flusher).Flush()
		}},
		{"packed", "", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				w.WriteHeader(500)
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, pod)
			z.Close()
		}},
		{"empty", "the answer is empty, which removes nothing", func(http.ResponseWriter, *http.Request) {}},
		{"blank", "the answer is empty", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\xef\xbb\xbf \r\n") }},
		{"204", "answers 204 No Content: correct staticPodURL", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		{"304 without need", "answers 304 Not Modified", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }},
		{"401", "answers 401 Unauthorized: check staticPodURLHeader", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }},
		{"404", "answers 404 Not Found: correct staticPodURL", http.NotFound},
		{"503", "answers 503 Service Unavailable: see to the server", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, pod, http.StatusServiceUnavailable) }},
		{"an unknown code", "answers 799: see", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) }},
		{"a captive portal", "answers with a web page instead of manifests", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "\n<!DOCTYPE html><html>log in</html>")
		}},
		{"less than its length", "the answer was cut short after 5 bytes", raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nkind:")},
		{"a broken chunk", "the answer was cut short", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nkind:\r\n9\r\nab")},
		{"a chunk without a length", "the answer cannot be read", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nkind: Pod\r\n")},
		{"a cut gzip", "the answer was cut short",
			raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x02")},
		{"what is no gzip", "the answer cannot be read", raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nkind: Pod\n")},
		{"another encoding", `answers with the Content-Encoding "br"`, raw("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 10\r\n\r\nkind: Pod\n")},
		{"no answer", "ends the connection without an answer", raw("")},
		{"no HTTP", "net/http: HTTP/1.x transport connection broken", raw("SSH-2.0-x\r\n")},
		{"a large length", "answers with 99999999 bytes: manifests have less than 10 MiB", raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")},
		{"a bomb", "the answer cannot be read: larger than 10 MiB", bomb},
		{"a circle", "redirects more than 5 times", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }},
		{"another scheme", "redirects to https://elsewhere/x, which is not followed from http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere/x", http.StatusFound)
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			a := once(t, Settings{URL: server(t, r.h)})
			if r.want == "" && (a.Problem != "" || string(a.Data) != pod || a.Unproven) {
				t.Errorf("%+v", a)
			}
			if r.want != "" && (!strings.HasPrefix(a.Problem, r.want) || !strings.HasSuffix(a.Problem, "what it gave last counts until then") || a.Data != nil) {
				t.Errorf("%q, %d bytes", a.Problem, len(a.Data))
			}
		})
	}
}

// What has neither a length nor an end of its own may have been cut short.
func TestAnAnswerWithoutAnEndIsUnproven(t *testing.T) {
	a := once(t, Settings{URL: server(t, raw("HTTP/1.1 200 OK\r\n\r\n"+pod))})
	if !a.Unproven || string(a.Data) != pod {
		t.Errorf("%+v", a)
	}
}

// That an answer was whole is news though its text came before.
func TestAnAnswerThatProvesTheOneBeforeIsNews(t *testing.T) {
	length := ""
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		raw("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nConnection: close\r\n"+length+"\r\n"+pod)(w, r)
	})
	f := New(Settings{URL: url})
	defer f.client.CloseIdleConnections()
	for _, r := range []struct {
		name, length     string
		isNews, unproven bool
	}{
		{"first, without its length", "", true, true},
		{"the same", "", false, false},
		{"with its length", fmt.Sprintf("Content-Length: %d\r\n", len(pod)), true, false},
		{"the same again", "", false, false},
	} {
		length = r.length
		a, _ := f.poll(t.Context())
		if a.Problem != "" || (a.Data != nil) != r.isNews || a.Unproven != r.unproven {
			t.Errorf("%s: %+v", r.name, a)
		}
	}
}

func TestWhatCannotBeReachedIsAProblem(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	for url, want := range map[string]string{
		s.URL:                      "cannot be reached: connect: connection refused: see to the network",
		"http://no-host.invalid/x": "there is no host no-host.invalid",
	} {
		a := once(t, Settings{URL: url})
		if again := once(t, Settings{URL: url}); !strings.HasPrefix(a.Problem, want) && !strings.Contains(a.Problem, "cannot be looked up") || again.Problem != a.Problem {
			t.Errorf("%s: %q, again %q", url, a.Problem, again.Problem)
		}
	}
}

// Nothing new: one conditional request on the connection that is there.
func TestAPollWithNothingNewIsCheap(t *testing.T) {
	var connections, bytes atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Sun, 01 Feb 2026 00:00:00 GMT")
		if r.Header.Get("If-None-Match") == `"v1"` && r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(304)
			return
		}
		io.WriteString(w, pod)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	f := New(Settings{URL: s.URL})
	defer f.client.CloseIdleConnections()
	f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return counted{c, &bytes}, err
	}
	if a, _ := f.poll(t.Context()); string(a.Data) != pod || a.ETag != `"v1"` {
		t.Fatalf("%+v", a)
	}
	before := bytes.Load()
	const polls = 10
	for range polls {
		if a, _ := f.poll(t.Context()); a.Data != nil || a.Problem != "" {
			t.Fatalf("%+v", a)
		}
	}
	if n := (bytes.Load() - before) / polls; n > 1000 || connections.Load() != 1 {
		t.Errorf("%d bytes a poll, %d connections", n, connections.Load())
	}
}

// What changes twice in a second has one Last-Modified.
func TestABodyThatIsNewIsRequestedInFullAgain(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: false, time.Second: false, time.Minute: true} {
		a := once(t, Settings{URL: server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Last-Modified", time.Now().UTC().Add(-age).Format(http.TimeFormat))
			io.WriteString(w, pod)
		})})
		if (a.Modified != "") != want {
			t.Errorf("%v old: %q is sent back", age, a.Modified)
		}
	}
}

// A server without a clock sends no Date: this machine's clock takes its place.
func TestABodyWithoutADateMayBeNew(t *testing.T) {
	for age, want := range map[time.Duration]bool{-time.Minute: false, time.Minute: true} {
		a := once(t, Settings{URL: server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			w.Header().Set("Last-Modified", time.Now().UTC().Add(-age).Format(http.TimeFormat))
			io.WriteString(w, pod)
		})})
		if (a.Modified != "") != want {
			t.Errorf("%v old: %q is sent back", age, a.Modified)
		}
	}
}

// A refusal is read, so that the connection serves the next request, too.
func TestARefusalKeepsTheConnection(t *testing.T) {
	var from []string
	f := New(Settings{URL: server(t, func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		http.Error(w, strings.Repeat("x", 32<<10), http.StatusServiceUnavailable)
	})})
	defer f.client.CloseIdleConnections()
	f.poll(t.Context())
	f.poll(t.Context())
	if len(from) != 2 || from[0] != from[1] {
		t.Errorf("asked from %v", from)
	}
}

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// The next agent asks for what is newer than what it has.
func TestAKnownAnswerIsNotSentAgain(t *testing.T) {
	known := manifests.Answer{Data: []byte(pod), ETag: `"v1"`}
	for name, h := range map[string]http.HandlerFunc{
		"not modified": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-None-Match") != `"v1"` {
				t.Error("an unconditional request")
			}
			w.WriteHeader(304)
		},
		"the same again": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) },
	} {
		if a := once(t, Settings{URL: server(t, h), Known: &known}); a.Data != nil || a.Problem != "" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestRetryAfterIsSecondsOrATime(t *testing.T) {
	now := time.Unix(0, 0) // the clock of this machine is not set
	date := "Sun, 01 Feb 2026 00:00:00 GMT"
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-3": 0, "7": 7 * time.Second, "999999999": longestAsk, "99999999999999999999": 0,
		"Sun, 01 Feb 2026 00:01:30 GMT": 90 * time.Second, "Sat, 31 Jan 2026 00:00:00 GMT": 0, "Sun, 01 Feb 2027 00:00:00 GMT": longestAsk,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}, "Date": {date}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// world is a server and what a Fetcher tells of it.
type world struct {
	mu        sync.Mutex // guards all below
	body      string     // of answers
	signature string     // of the body
	failure   int        // their status; 0: 200
	after     string     // their Retry-After
	at        []time.Time
	answers   []manifests.Answer
}

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, ".sig") {
		io.WriteString(out, w.signature)
		return
	}
	if w.at = append(w.at, time.Now()); w.failure > 0 {
		out.Header().Set("Retry-After", w.after)
		out.WriteHeader(w.failure)
		return
	}
	io.WriteString(out, w.body)
}

// later lets time pass, and looks at what came of it.
func (w *world) later(d time.Duration, look func()) {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	look()
}

// bubble runs a Fetcher without sockets. h serves in place of w; nil: w does.
func bubble(t *testing.T, w *world, h http.Handler, test func()) {
	if h == nil {
		h = w
	}
	bubbleOf(t, w, h, Settings{URL: "http://h/x"}, test)
}

// bubbleOf is bubble with other settings.
func bubbleOf(t *testing.T, w *world, h http.Handler, s Settings, test func()) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: h}
		go srv.Serve(l)
		f := New(s)
		f.Dial = l.dial
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.Run(ctx); close(done) }()
		go func() {
			for {
				select {
				case a := <-f.Answers():
					w.mu.Lock()
					w.answers = append(w.answers, a)
					w.mu.Unlock()
				case <-done:
					return
				}
			}
		}()
		test()
		cancel()
		<-done
		srv.Close()
	})
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestItAsksEachPeriodAndTellsWhatIsNew(t *testing.T) {
	w := &world{body: pod}
	bubble(t, w, nil, func() {
		w.later(200*time.Second, func() {
			if n := len(w.at); n < 9 || n > 12 || len(w.answers) != 1 {
				t.Errorf("asked %d times in 200 s, told %d times", n, len(w.answers))
			}
			w.body = pod + "# more\n"
		})
		w.later(25*time.Second, func() {
			if len(w.answers) != 2 || string(w.answers[1].Data) != w.body {
				t.Errorf("told %+v", w.answers)
			}
		})
	})
}

func TestFailuresAreAskedAgainEverMoreRarely(t *testing.T) {
	w := &world{body: pod, failure: 503}
	bubble(t, w, nil, func() {
		w.later(20*time.Minute, func() {
			for k := 1; k < len(w.at); k++ {
				want := min(time.Second<<(k-1), lastRetry)
				if wait := w.at[k].Sub(w.at[k-1]); wait < want*9/10 || wait > want*11/10+time.Millisecond {
					t.Errorf("wait %d is %v, want about %v", k, wait, want)
				}
			}
			if len(w.at) < 12 || len(w.answers) != 1 {
				t.Errorf("asked %d times, told %d times", len(w.at), len(w.answers))
			}
			w.failure = 0
		})
		w.later(2*lastRetry, func() {
			if n := len(w.answers); n != 2 || w.answers[1].Data == nil {
				t.Errorf("told %+v", w.answers)
			}
		})
	})
}

// A node that has an answer asks no sooner than usual.
func TestWithAnAnswerFailuresAreAskedAgainNoSoonerThanUsual(t *testing.T) {
	for _, row := range []struct {
		name  string
		every time.Duration
		body  string // of the answers that fail
		code  int    // their status; 0: 200
		waits []time.Duration
	}{
		{"the server is out of order", 20 * time.Second, "", 503,
			[]time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute}},
		{"what it has is wrong", 20 * time.Second, "<html>", 0,
			[]time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second}},
		{"it is asked each hour", time.Hour, "", 503,
			[]time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &world{body: pod}
			bubbleOf(t, w, w, Settings{URL: "http://h/x", Every: row.every}, func() {
				w.later(time.Second, func() { w.body, w.failure = row.body, row.code })
				w.later(6*time.Hour, func() {
					for k, want := range row.waits { // the first is after the answer
						if wait := w.at[k+2].Sub(w.at[k+1]); wait < want*9/10 || wait > want*11/10+time.Millisecond {
							t.Errorf("wait %d is %v, want about %v", k, wait, want)
						}
					}
				})
			})
		})
	}
}

func TestTheServerIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	w := &world{failure: 429, after: "600"}
	bubble(t, w, nil, func() {
		for n := 1; n <= 2; n++ {
			w.later(599*time.Second, func() {
				if len(w.at) != n {
					t.Errorf("asked %d times, want %d", len(w.at), n)
				}
			})
		}
	})
}

// A server that is silent, or sends a byte now and then, is given up.
func TestEachRequestHasADeadline(t *testing.T) {
	for name, each := range map[string]time.Duration{"silent": time.Hour, "slow": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					select {
					case <-time.After(each):
						fmt.Fprint(w, "#")
						w.(http.Flusher).Flush()
					case <-r.Context().Done():
					}
				}
			})
			bubble(t, w, h, func() {
				w.later(deadline+time.Second, func() {
					if len(w.answers) != 1 || !strings.HasPrefix(w.answers[0].Problem, "does not answer in time") {
						t.Errorf("%+v", w.answers)
					}
				})
			})
		})
	}
}
