package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"monopod/manifests/decode"
)

// site is what is behind the URL.
type site struct {
	server *http.Server
	conns  chan net.Conn
	over   chan struct{}

	mu      sync.Mutex
	paper   *paper
	trouble string // how it misbehaves; "": it does not
}

// siteTroubles are how a site misbehaves. What is last gives what it should, but no length.
var siteTroubles = []string{"empty", "500", "404", "204", "hangs", siteGarbage, "a web page", "too large", "redirects to another scheme", "redirects in a circle",
	"is cut", "no connection", "ends at once", "another encoding", siteUnproven}

const (
	siteGarbage  = "garbage"
	siteUnproven = "does not say its length"
)

func newSite() *site {
	s := &site{conns: make(chan net.Conn), over: make(chan struct{}), paper: newPaper(nil)}
	s.server = &http.Server{Handler: http.HandlerFunc(s.answer)}
	go func() { _ = s.server.Serve(s) }()
	return s
}

func (s *site) close() {
	_ = s.server.Close()
}

func (s *site) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if _, trouble := s.now(); trouble == "no connection" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	here, there := net.Pipe()
	select {
	case s.conns <- there:
		return here, nil
	case <-s.over:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

// Accept, Close and Addr are those of a net.Listener.
func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.over:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error {
	close(s.over)
	return nil
}

func (s *site) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (s *site) now() (*paper, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paper, s.trouble
}

func (s *site) set(p *paper, trouble string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paper, s.trouble = p, trouble
}

// body is what the site gives: never nothing.
func (p *paper) body() string { return "apiVersion: v1\nkind: List\nitems: []\n---\n" + p.text }

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	p, trouble := s.now()
	body := p.body()
	switch trouble {
	case "":
		tag := fmt.Sprintf(`"%x"`, body)
		w.Header().Set("ETag", tag[:min(len(tag), 400)]+`"`)
		if len(body)%2 == 0 {
			w.Header().Set("Content-Type", "image/png")
		}
		_, _ = io.WriteString(w, body)
	case "empty":
	case "500":
		w.Header().Set("Retry-After", "30")
		http.Error(w, body, http.StatusInternalServerError)
	case "404":
		http.NotFound(w, r)
	case "204":
		w.WriteHeader(http.StatusNoContent)
	case "hangs":
		<-r.Context().Done()
	case siteGarbage:
		_, _ = io.WriteString(w, "{{{ kind: [")
	case "a web page":
		_, _ = io.WriteString(w, "<!DOCTYPE html><html>log in</html>")
	case "too large":
		_, _ = io.WriteString(w, "# "+strings.Repeat("x", decode.MaxSize))
	case "redirects to another scheme":
		http.Redirect(w, r, "https://127.0.0.1/", http.StatusFound)
	case "redirects in a circle":
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	case "another encoding":
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, body)
	case "is cut":
		raw(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body)+1, body))
	case "ends at once":
		raw(w, "")
	case siteUnproven:
		raw(w, "HTTP/1.1 200 OK\r\n\r\n"+body)
	}
}

// raw writes a text and ends the connection.
func raw(w http.ResponseWriter, text string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

func (w *inputWalk) changeSite() string {
	_, trouble := w.site.now()
	p := newPaper(w.someDocuments())
	if w.rand.IntN(4) == 0 {
		p = newPaper(nil)
	}
	w.site.set(p, trouble)
	w.gives(p)
	return fmt.Sprintf("the URL has %s", p)
}

// gives records what the site has or had.
func (w *inputWalk) gives(p *paper) {
	for _, d := range p.docs {
		w.sited[d.name] = true
	}
}

func (w *inputWalk) spoilSite() string {
	p, _ := w.site.now()
	trouble := pick(w.rand, siteTroubles...)
	w.site.set(p, trouble)
	w.siteFell = true
	return "the URL: " + trouble
}

func (w *inputWalk) mendSite() string {
	p, trouble := w.site.now()
	if trouble == "" {
		return ""
	}
	w.site.set(p, "")
	return "the URL is well"
}
