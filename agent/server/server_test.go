package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

// world is a running server, with a client for each of its addresses.
type world struct {
	*Server
	store        *status.Store
	socket       string
	local, other *http.Client
	done         chan error // what Run returned
	stop         func() error
}

// serve runs a server for the length of a test; adjust may change it first.
func serve(t *testing.T, adjust func(*Server), checks ...Check) *world {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: store, socket: filepath.Join(t.TempDir(), "s")}
	w.Server, err = Listen(Config{Listen: "127.0.0.1:0", Socket: w.socket, Store: store, Checks: checks, Version: "v1", Log: log,
		Images: func(context.Context) (*status.Images, error) { return &status.Images{Node: "n"}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if adjust != nil {
		adjust(w.Server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.done = make(chan error, 1)
	go func() { w.done <- w.Run(ctx) }()
	w.stop = func() error {
		cancel()
		err := <-w.done
		w.done <- err
		return err
	}
	w.local = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	}}}
	w.other = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		w.local.CloseIdleConnections()
		w.other.CloseIdleConnections()
		w.stop()
		store.Close(context.Background())
	})
	return w
}

// ask returns status code and body; local asks on the socket.
func (w *world) ask(t *testing.T, local bool, method, path string) (int, string, http.Header) {
	t.Helper()
	client := w.other
	if local {
		client = w.local
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func pod(name string) *v1.Pod {
	env := []v1.EnvVar{{Name: "SECRET", Value: "hunter2"}, {Name: "EMPTY"},
		{Name: "IP", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "init", Env: env}},
			Containers:     []v1.Container{{Name: "app", Env: env}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
}

func TestPodsAreAListLikeAKubelets(t *testing.T) {
	w := serve(t, nil)
	if _, body, _ := w.ask(t, true, "GET", "/pods"); body != `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`+"\n" {
		t.Errorf("no pods: %s", body)
	}
	w.store.SetPod("default/b", pod("b"))
	w.store.SetPod("default/a", pod("a"))
	for _, local := range []bool{true, false} {
		code, body, header := w.ask(t, local, "GET", "/pods")
		if code != 200 || header.Get("Content-Type") != "application/json" {
			t.Errorf("answer %d, %v", code, header)
		}
		if !strings.HasPrefix(body, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a",`) {
			t.Errorf("the list begins %.120s", body)
		}
		var list v1.PodList
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != 2 || list.Items[1].Name != "b" {
			t.Errorf("the list has %d pods, %v", len(list.Items), err)
		}
	}
}

func TestEnvValuesAreForTheSocketOnly(t *testing.T) {
	w := serve(t, nil)
	w.store.SetPod("default/a", pod("a"))
	rows := []struct {
		name          string
		local         bool
		hidden, value int
	}{{"socket", true, 0, 2}, {"TCP", false, 2, 0}}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			_, body, _ := w.ask(t, r.local, "GET", "/pods")
			if n := strings.Count(body, "hunter2"); n != r.value {
				t.Errorf("the value is shown %d times, want %d", n, r.value)
			}
			if n := strings.Count(body, `"name":"SECRET","value":"`+jsonElided+`"`); n != r.hidden {
				t.Errorf("it is elided %d times, want %d: %s", n, r.hidden, body)
			}
			if n := strings.Count(body, `{"name":"EMPTY"}`); n != 2 {
				t.Errorf("an empty value is shown as empty %d times, want 2", n)
			}
			if n := strings.Count(body, `"fieldPath":"status.podIP"`); n != 2 {
				t.Errorf("where a value comes from is shown %d times, want 2", n)
			}
		})
	}
	if p, _ := w.store.Pod("default/a"); p.Spec.Containers[0].Env[0].Value != "hunter2" || p.Kind != "Pod" {
		t.Error("showing a pod changed it")
	}
}

// jsonElided is <elided> as encoding/json writes it.
const jsonElided = `\u003celided\u003e`

func TestRoutes(t *testing.T) {
	w := serve(t, nil)
	w.store.SetRuntime(status.Runtime{Up: true, Name: "containerd"})
	w.store.SetManifests(status.Manifests{Dir: "/m", Problems: []status.Problem{{Message: "bad"}}})
	rows := []struct {
		name, method, path string
		local              bool
		code               int
		body               string
	}{
		{"manifests", "GET", "/manifests", true, 200, `{"dir":"/m","files":null,"problems":[{"message":"bad"}]}` + "\n"},
		{"manifests are not for TCP", "GET", "/manifests", false, 404, "404 page not found\n"},
		{"images", "GET", "/images", true, 200, `{"node":"n","images":null}` + "\n"},
		{"images are not for TCP", "GET", "/images", false, 404, "404 page not found\n"},
		{"runtime", "GET", "/runtime", true, 200, `{"up":true,"name":"containerd"}` + "\n"},
		{"runtime is not for TCP", "GET", "/runtime", false, 404, "404 page not found\n"},
		{"version", "GET", "/version", false, 200, `{"version":"v1"}` + "\n"},
		{"head", "HEAD", "/pods", false, 200, ""},
		{"post", "POST", "/pods", true, 405, "this endpoint is read-only\n"},
		{"delete on TCP", "DELETE", "/pods", false, 405, "this endpoint is read-only\n"},
		{"a method nobody knows, a path nobody knows", "BREW", "/coffee", false, 405, "this endpoint is read-only\n"},
		{"no slash", "GET", "/pods/", true, 404, "404 page not found\n"},
		{"nothing at the root", "GET", "/", true, 404, "404 page not found\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			code, body, header := w.ask(t, r.local, r.method, r.path)
			if code != r.code || body != r.body {
				t.Errorf("answer %d %q, want %d %q", code, body, r.code, r.body)
			}
			if code == 405 && header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %s", header.Get("Allow"))
			}
		})
	}
}

func TestHealth(t *testing.T) {
	var stuck error
	w := serve(t, nil, Check{"syncloop", func() error { return stuck }})
	up := status.Runtime{Up: true}
	down := status.Runtime{Endpoint: "unix:///r.sock", Error: "connection refused", Since: time.Now().Add(-12 * time.Second)}
	bad := errors.New("last pass 3m ago")
	rows := []struct {
		name, path string
		runtime    status.Runtime
		syncloop   error
		manifests  []status.Problem
		code       int
		body       string
	}{
		{"ok", "/healthz", up, nil, nil, 200, "ok"},
		{"verbose", "/healthz?verbose", up, nil, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]manifests ok\nhealthz check passed\n"},
		{"bad manifests are no failure", "/healthz?verbose=1", up, nil, []status.Problem{{}, {}}, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]manifests ok: 2 problems\nhealthz check passed\n"},
		{"runtime not asked yet", "/healthz/runtime", status.Runtime{}, nil, nil, 500, "internal server error: not asked yet\n"},
		{"runtime down", "/healthz", down, nil, nil, 500,
			"[+]ping ok\n[-]runtime failed: unix:///r.sock does not answer for 12s: connection refused\n" +
				"[+]syncloop ok\n[+]manifests ok\nhealthz check failed\n"},
		{"sync loop stuck", "/healthz", up, bad, nil, 500,
			"[+]ping ok\n[+]runtime ok\n[-]syncloop failed: last pass 3m ago\n[+]manifests ok\nhealthz check failed\n"},
		{"excluded", "/healthz?verbose&exclude=syncloop", up, bad, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop excluded: ok\n[+]manifests ok\nhealthz check passed\n"},
		{"one check", "/healthz/ping", down, bad, nil, 200, "ok"},
		{"one failing check", "/healthz/syncloop", up, bad, nil, 500, "internal server error: last pass 3m ago\n"},
		{"manifests never fail", "/healthz/manifests", up, nil, []status.Problem{{}}, 200, "ok"},
		{"no such check", "/healthz/coffee", up, nil, nil, 404, "404 page not found\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			stuck = r.syncloop
			w.store.SetRuntime(r.runtime)
			w.store.SetManifests(status.Manifests{Files: []status.File{{Problems: r.manifests}}})
			for _, local := range []bool{true, false} {
				if code, body, _ := w.ask(t, local, "GET", r.path); code != r.code || body != r.body {
					t.Errorf("answer %d\n%s\nwant %d\n%s", code, body, r.code, r.body)
				}
			}
		})
	}
}

func TestAClientThatIsSlowIsCutOff(t *testing.T) {
	w := serve(t, func(s *Server) {
		for _, e := range s.ends {
			h := e.http
			if h.ReadHeaderTimeout <= 0 || h.ReadTimeout <= 0 || h.WriteTimeout <= 0 || h.IdleTimeout <= 0 {
				t.Errorf("%s waits for ever: %+v", e.listener.Addr(), h)
			}
			e.http.ReadHeaderTimeout = 50 * time.Millisecond
		}
	})
	for _, addr := range []net.Addr{w.Addr(), &net.UnixAddr{Name: w.socket, Net: "unix"}} {
		c, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET /pods HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("%s: the connection is not closed: %v", addr, err)
		}
	}
}

func TestAGiantHeaderIsRefused(t *testing.T) {
	w := serve(t, nil)
	for size, want := range map[int]int{60 << 10: 200, 80 << 10: 431} {
		c, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, "GET /version HTTP/1.1\r\nHost: x\r\nX-Big: "+strings.Repeat("x", size)+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != want {
			t.Errorf("a header of %d bytes: %v, %v; want %d", size, resp, err, want)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := serve(t, nil)
	tcp := w.Addr().String()
	var open []net.Conn
	for range maxConns {
		c, err := net.Dial("tcp", tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	extra, err := net.Dial("tcp", tcp) // waits in the kernel's queue
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	io.WriteString(extra, "GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
	extra.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := extra.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one connection too many is served: %d, %v", n, err)
	}
	if code, _, _ := w.ask(t, true, "GET", "/version"); code != 200 {
		t.Error("the socket is shut because TCP is full")
	}
	open[0].Close()
	extra.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := extra.Read(make([]byte, 1)); err != nil {
		t.Errorf("not served when there is room again: %v", err)
	}
}

func TestRunEndsAndRemovesTheSocket(t *testing.T) {
	w := serve(t, nil)
	if err := w.stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if _, err := os.Lstat(w.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := net.Dial("tcp", w.Addr().String()); err == nil {
		t.Error("TCP still answers")
	}
}

func TestRunLeavesASocketThatTookItsPlace(t *testing.T) {
	w := serve(t, nil)
	os.Remove(w.socket)
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.stop()
	if _, err := os.Lstat(w.socket); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWhenServingDoes(t *testing.T) {
	w := serve(t, nil)
	w.ask(t, false, "GET", "/version")
	w.ends[0].listener.Close()
	err := <-w.done
	w.done <- err
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run = %v", err)
	}
	if _, err := os.Lstat(w.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
