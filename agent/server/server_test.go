package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
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
	unready      error // what the check "seen" says
}

var running = v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "1"},
	Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "i"}}}}

// serve runs a server for the length of a test; adjust may change it first.
func serve(t *testing.T, adjust func(*Config), checks ...Check) *world {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: store, socket: filepath.Join(t.TempDir(), "s")}
	c := Config{Listen: "127.0.0.1:0", Socket: w.socket, Store: store, Checks: checks, Version: "v1", Log: log, Events: events.Open(events.Config{Log: log}),
		Handlers: []Handler{{Path: "/more", Handler: says("more")}, {Path: "/more/local", Local: true, Handler: says("local")}},
		Watch: func(local bool, paths []string, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Watched", fmt.Sprint(local, slices.Contains(paths, "/pods"), slices.Contains(paths, "/more/local")))
				next.ServeHTTP(w, r)
			})
		},
		Images:   func(context.Context) (*status.Images, error) { return &status.Images{Node: "n"}, nil },
		Running:  func(context.Context) ([]v1.Pod, error) { return []v1.Pod{running}, nil },
		Settings: func() map[string]any { return map[string]any{"maxPods": 7} },
		Ready:    []Check{{"seen", func() error { return w.unready }}}}
	if adjust != nil {
		adjust(&c)
	}
	if w.Server, err = Listen(c); err != nil {
		t.Fatal(err)
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

// says is a handler that says one thing.
func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
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

// What else of a manifest holds secrets: the headers that probes and hooks send,
// and the copy of the whole that kubectl leaves.
func TestWhatElseIsSecretIsForTheSocketOnly(t *testing.T) {
	w := serve(t, nil)
	p := pod("a")
	p.Annotations = map[string]string{v1.LastAppliedConfigAnnotation: "hunter2", "team": "blue"}
	get := &v1.HTTPGetAction{Path: "/x", HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "hunter2"}}}
	probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get}}
	c := &p.Spec.Containers[0]
	c.Env, p.Spec.InitContainers = nil, nil
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = probe, probe, probe
	c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{HTTPGet: get}, PreStop: &v1.LifecycleHandler{HTTPGet: get}}
	w.store.SetPod("default/a", p)
	for local, want := range map[bool]int{true: 6, false: 0} {
		_, body, _ := w.ask(t, local, "GET", "/pods")
		if n := strings.Count(body, "hunter2"); n != want {
			t.Errorf("socket %v: the secret is shown %d times, want %d", local, n, want)
		}
		if !strings.Contains(body, `"team":"blue"`) || strings.Count(body, "Authorization") != 5 || strings.Count(body, `"path":"/x"`) != 5 {
			t.Errorf("socket %v: too much is left out: %s", local, body)
		}
	}
	if get.HTTPHeaders[0].Value != "hunter2" || p.Annotations[v1.LastAppliedConfigAnnotation] != "hunter2" {
		t.Error("showing a pod changed it")
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

// The paths that / lists.
const (
	openPaths = "/healthz\n/healthz/{check}\n/livez\n/livez/{check}\n/readyz\n/readyz/{check}\n/pods\n/events\n/version\n/node\n"
	rootPaths = "/runningpods\n/containerLogs/{namespace}/{pod}/{container}\n/configz\n/images\n/manifests\n/runtime\n/history/{namespace}/{pod}\n"
	runs      = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a","namespace":"default","uid":"1"},` +
		`"spec":{"containers":[{"name":"app","image":"i","resources":{}}]},"status":{}}]}` + "\n"
)

func TestRoutes(t *testing.T) {
	w := serve(t, func(c *Config) {
		c.Requests = []Request{History(nil), Restart(nil)} // what only reads is listed
	})
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
		{"what there is", "GET", "/", false, 200, "monopod v1\n\n" + openPaths + "/more\n"},
		{"what there is for root", "GET", "/", true, 200, "monopod v1\n\n" + openPaths + rootPaths + "/more\n/more/local\n"},
		{"settings", "GET", "/configz", true, 200, `{"kubeletconfig":{"maxPods":7}}` + "\n"},
		{"settings are not for TCP", "GET", "/configz", false, 404, "404 page not found\n"},
		{"what runs", "GET", "/runningpods", true, 200, runs},
		{"what runs, as a kubelet is asked", "GET", "/runningpods/", true, 200, runs},
		{"what runs is not for TCP", "GET", "/runningpods", false, 405, "Debug endpoints are disabled.\n"},
		{"logs are not for TCP", "GET", "/containerLogs/default/a/app", false, 405, "Debug endpoints are disabled.\n"},
		{"nothing is executed over TCP", "POST", "/exec/default/a/app", false, 405, "Debug endpoints are disabled.\n"},
		{"no profiles over TCP", "GET", "/debug/pprof/heap", false, 405, "Debug endpoints are disabled.\n"},
		{"only a beginning of such a path", "GET", "/runs", false, 404, "404 page not found\n"},
		{"what somebody else serves", "GET", "/more", false, 200, "more"},
		{"to local clients, too", "GET", "/more", true, 200, "more"},
		{"or to those only", "GET", "/more/local", true, 200, "local"},
		{"and not to others", "GET", "/more/local", false, 404, "404 page not found\n"},
		{"to be read only", "POST", "/more", true, 405, "this endpoint is read-only\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			code, body, header := w.ask(t, r.local, r.method, r.path)
			if code != r.code || body != r.body {
				t.Errorf("answer %d %q, want %d %q", code, body, r.code, r.body)
			}
			if strings.Contains(body, "read-only") && header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %s", header.Get("Allow"))
			}
			if got, want := header.Get("Watched"), fmt.Sprint(r.local, true, r.local); got != want {
				t.Errorf("watched as %q, want %q", got, want)
			}
		})
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
