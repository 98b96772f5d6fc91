package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// web is a server that keeps what it was asked.
type web struct {
	mu    sync.Mutex
	asked []string
}

func (w *web) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	header := ""
	for _, k := range []string{"User-Agent", "Accept", "Authorization", "X-Mine"} {
		if v := in.Header.Values(k); len(v) > 0 {
			header += fmt.Sprintf(" %s=%s", k, strings.Join(v, "+"))
		}
	}
	host := in.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	w.asked = append(w.asked, in.Method+" "+host+" "+in.URL.RequestURI()+header)
	switch in.URL.Path {
	case "/here":
		http.Redirect(out, in, "/there", http.StatusFound)
	case "/away":
		http.Redirect(out, in, "http://192.0.2.1/", http.StatusFound)
	case "/round":
		http.Redirect(out, in, "/round", http.StatusFound)
	default:
		out.WriteHeader(http.StatusTeapot)
	}
}

func (w *web) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.asked, "; ")
}

func TestHTTPGet(t *testing.T) {
	const usual = " User-Agent=kube-lifecycle/1.36 Accept=*/*"
	header := func(pairs ...string) (out []v1.HTTPHeader) {
		for k := 0; k < len(pairs); k += 2 {
			out = append(out, v1.HTTPHeader{Name: pairs[k], Value: pairs[k+1]})
		}
		return out
	}
	for _, row := range []struct {
		name  string
		tls   bool
		get   v1.HTTPGetAction // its port is the server's unless it has one
		asked string
		err   string
	}{
		{"any answer is a success", false, v1.HTTPGetAction{Path: "/a?b=c"}, "GET 127.0.0.1 /a?b=c" + usual, ""},
		{"a path need not begin with a slash", false, v1.HTTPGetAction{Path: "a"}, "GET 127.0.0.1 /a" + usual, ""},
		{"its own headers win", false, v1.HTTPGetAction{Path: "/", HTTPHeaders: header("user-agent", "me", "Accept", "text/plain", "X-Mine", "1", "x-mine", "2", "Host", "a.example")},
			"GET a.example / User-Agent=me Accept=text/plain X-Mine=1+2", ""},
		{"an empty Accept is none", false, v1.HTTPGetAction{Path: "/", HTTPHeaders: header("Accept", "")}, "GET 127.0.0.1 / User-Agent=kube-lifecycle/1.36", ""},
		{"a host of its own", false, v1.HTTPGetAction{Path: "/", Host: "localhost"}, "GET localhost /" + usual, ""},
		{"a port by its name", false, v1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}, "GET 127.0.0.1 /" + usual, ""},
		{"a port that nobody has", false, v1.HTTPGetAction{Path: "/", Port: intstr.FromString("grpc")}, "", `there is no port "grpc"`},
		{"a redirect is followed", false, v1.HTTPGetAction{Path: "/here"}, "GET 127.0.0.1 /here" + usual + "; GET 127.0.0.1 /there" + usual, ""},
		{"but not to another host", false, v1.HTTPGetAction{Path: "/away"}, "GET 127.0.0.1 /away" + usual, ""},
		{"nor for ever", false, v1.HTTPGetAction{Path: "/round"}, "*", "too many redirects"},
		{"a certificate is not looked at", true, v1.HTTPGetAction{Path: "/", Scheme: v1.URISchemeHTTPS}, "GET 127.0.0.1 /" + usual, ""},
		{"a plain server is asked without the password", false, v1.HTTPGetAction{Path: "/", Scheme: v1.URISchemeHTTPS, HTTPHeaders: header("Authorization", "Basic secret", "X-Mine", "1")},
			"GET 127.0.0.1 /" + usual + " X-Mine=1", ""},
		{"nobody there is an error", false, v1.HTTPGetAction{Path: "/", Host: "127.0.0.1", Port: intstr.FromInt32(1)}, "", "connection refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &web{}
			s := httptest.NewUnstartedServer(w)
			s.Config.ErrorLog = nil
			if row.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			u, _ := url.Parse(s.URL)
			port := intstr.Parse(u.Port())
			if row.get.Port == (intstr.IntOrString{}) {
				row.get.Port = port
			}
			fallbacks := 0
			err := Run(t.Context(), &v1.LifecycleHandler{HTTPGet: &row.get},
				Target{Host: "127.0.0.1", Fallback: func() { fallbacks++ }, Ports: []v1.ContainerPort{{Name: "http", ContainerPort: port.IntVal}}})
			if row.err == "" && err != nil || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
				t.Errorf("error %v, want %q", err, row.err)
			}
			if fell := row.get.Scheme == v1.URISchemeHTTPS && !row.tls; fell != (fallbacks == 1) {
				t.Errorf("it fell back %d times", fallbacks)
			}
			if len(w.asked) > 10 {
				t.Errorf("it was asked %d times", len(w.asked))
			}
			if got := w.told(); row.asked != "*" && got != row.asked {
				t.Errorf("\nasked %s\n want %s", got, row.asked)
			}
		})
	}
}

// A server that never answers is left when ctx ends, and its connection with it.
func TestAnHTTPGetEndsWithItsContext(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		close(stop)
		<-in.Context().Done()
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-stop
		cancel()
	}()
	err := Run(ctx, &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.Parse(u.Port())}}, Target{Host: "127.0.0.1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAHeaderWithoutEndIsNotRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	err := Run(t.Context(), &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.Parse(u.Port())}}, Target{Host: "127.0.0.1"})
	if err == nil || !strings.Contains(err.Error(), "server response headers exceeded 65536 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestAnErrorIsCutAndStaysWhatItIs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+":x/"+strings.Repeat("y", 50<<10))
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	err := Run(t.Context(), &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.Parse(u.Port())}}, Target{Host: "127.0.0.1"})
	if err == nil || len(err.Error()) > outputLimit || !strings.HasPrefix(err.Error(), "httpGet: ") {
		t.Errorf("%d bytes: %.80v", len(err.Error()), err)
	}
	if text := Output(fmt.Errorf("preStop: %w", &ExitError{Code: 1, Output: strings.Repeat("\u00e9", outputLimit) + "last"})); len(text) > outputLimit || !strings.HasSuffix(text, "last") || !utf8.ValidString(text) {
		t.Errorf("%d bytes of output", len(text))
	}
}

func TestOtherHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		sleeps := &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}}
		if err := Run(t.Context(), sleeps, Target{}); err != nil || time.Since(started) != 5*time.Second {
			t.Errorf("sleep: %v after %s", err, time.Since(started))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Run(ctx, sleeps, Target{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a sleep that is broken off: %v", err)
		}
		failed := errors.New("no")
		exec := Target{Exec: func(_ context.Context, command []string) error {
			if strings.Join(command, " ") != "a b" {
				t.Errorf("command %q", command)
			}
			return failed
		}}
		if err := Run(t.Context(), &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"a", "b"}}}, exec); !errors.Is(err, failed) {
			t.Errorf("exec: %v", err)
		}
		for _, h := range []*v1.LifecycleHandler{{TCPSocket: &v1.TCPSocketAction{}}, {}} {
			if Run(t.Context(), h, Target{}) == nil {
				t.Errorf("%v was run", h)
			}
		}
	})
}
