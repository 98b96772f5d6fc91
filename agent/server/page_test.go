package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"sigs.k8s.io/yaml"

	"monopod/agent/message"
	"monopod/agent/status"
)

// browse is ask as a browser that opens a page.
func (w *world) browse(t *testing.T, local bool, path string) (int, string, http.Header) {
	t.Helper()
	return w.send(t, local, http.MethodGet, path, map[string]string{"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"})
}

// send sends a request with headers.
func (w *world) send(t *testing.T, local bool, method, path string, header map[string]string) (int, string, http.Header) {
	t.Helper()
	client := w.other
	if local {
		client = w.local
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if host := header["Host"]; host != "" {
		req.Host = host
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

func TestABrowserGetsAPageAndOthersTheListOfPaths(t *testing.T) {
	w := serve(t, nil)
	w.store.SetPod("default/a", pod("a"))
	for _, local := range []bool{true, false} {
		code, body, h := w.browse(t, local, "/")
		if code != 200 || h.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(body, `href="/page/pod/default/a"`) {
			t.Errorf("a browser gets %d %v\n%s", code, h, body)
		}
		for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; ", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Vary": "Accept"} {
			if !strings.HasPrefix(h.Get(name), want) {
				t.Errorf("%s is %q", name, h.Get(name))
			}
		}
		code, body, h = w.ask(t, local, "GET", "/")
		if code != 200 || h.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(body, "monopod v1\n\n/healthz\n") || strings.Contains(body, "page") {
			t.Errorf("others get %d %v\n%s", code, h, body)
		}
	}
}

func TestEachPageIsServedToItsReaders(t *testing.T) {
	w := serve(t, func(c *Config) {
		c.ManifestText = func(_ context.Context, path string) ([]byte, string) { return []byte("text of " + path), "" }
	})
	w.store.SetPod("default/a", pod("a"))
	w.store.SetNode(&v1.Node{})
	w.store.SetManifests(status.Manifests{Dir: "/m", Files: []status.File{{Path: "/m/a.yaml"}}})
	for _, row := range []struct {
		path        string
		root, other int
		has         string
	}{
		{"/page/pod/default/a", 200, 200, "Containers"},
		{"/page/pod/default/b", 404, 404, "There is no pod default/b."},
		{"/page/node", 200, 200, "Resources"},
		{"/page/manifests", 200, 404, "/m/a.yaml"},
		{"/page/manifest?path=/m/a.yaml", 200, 404, "text of /m/a.yaml"},
		{"/page/manifest?path=/etc/shadow", 404, 404, "There is no manifest /etc/shadow."},
		{"/page/style.css", 200, 200, "prefers-color-scheme"},
		{"/page/page.html", 404, 404, "404"},
	} {
		for local, want := range map[bool]int{true: row.root, false: row.other} {
			code, body, _ := w.browse(t, local, row.path)
			if code != want || (local || !strings.HasPrefix(row.path, "/page/manifest")) && !strings.Contains(body, row.has) {
				t.Errorf("%s, local %v: %d\n%s", row.path, local, code, body)
			}
		}
	}
}

// The pages are made of what the other paths show the same reader.
func TestPagesShowOverTCPOnlyWhatTheAgentMadeForAll(t *testing.T) {
	w := serve(t, nil)
	var p v1.Pod
	if err := yaml.Unmarshal([]byte(talkative), &p); err != nil {
		t.Fatal(err)
	}
	w.store.SetReport("b/a", status.Report{Pod: &p})
	w.store.SetNodeReport(&v1.Node{Status: v1.NodeStatus{NodeInfo: v1.NodeSystemInfo{MachineID: "id-4711"},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "the runtime says fish"}}}}, nil)
	w.store.SetManifests(status.Manifests{Dir: "/secret-folder", Files: []status.File{{Path: "/secret-folder/fish.yaml"}}})
	w.store.SetRuntime(status.Runtime{Endpoint: "unix:///fish.sock", Error: "fish"})
	about := v1.ObjectReference{Kind: "Pod", Namespace: "b", Name: "a"}
	w.config.Events.Record(about, v1.EventTypeWarning, "Unhealthy", message.Private("probe said tok-4711"))
	w.config.Events.Record(v1.ObjectReference{Kind: "Node", Name: "n"}, v1.EventTypeWarning, "Rebooted", message.Private("fish"))
	hidden := slices.Concat(secrets, []string{"id-4711", "secret-folder", "containerLogs"})
	for _, path := range []string{"/", "/page/pod/b/a", "/page/node"} {
		_, open, _ := w.browse(t, false, path)
		for _, secret := range hidden {
			if strings.Contains(open, secret) {
				t.Errorf("TCP shows %q at %s:\n%s", secret, path, open)
			}
		}
	}
	for path, want := range map[string]string{"/": "refused because of tok-4711", "/page/pod/b/a": "probe said tok-4711", "/page/node": "the runtime says fish"} {
		if _, all, _ := w.browse(t, true, path); !strings.Contains(all, want) {
			t.Errorf("the socket lacks %q at %s:\n%s", want, path, all)
		}
	}
	if _, all, _ := w.browse(t, true, "/"); strings.Contains(all, "hunter2") {
		t.Error("a page shows values of variables")
	}
}

// Where the socket is forwarded to a port, a page from elsewhere can send requests, too.
func TestBrowsersOnlyReadOnTheSocket(t *testing.T) {
	stopped := false
	w := serve(t, func(c *Config) {
		c.Requests = []Request{{method: http.MethodPost, paths: []string{"/stop/{pod}"}, do: func(context.Context, *http.Request) (any, error) {
			stopped = true
			return struct{}{}, nil
		}}}
	})
	for _, row := range []struct {
		name, method, path string
		header             map[string]string
		code               int
	}{
		{"a form of another site", "POST", "/stop/a", map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, 403},
		{"a script under a name that leads here", "POST", "/stop/a", map[string]string{"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}, 421},
		{"and what it reads", "GET", "/pods", map[string]string{"Host": "evil.example:8080", "Accept-Language": "en"}, 421},
		{"which leaves out what it can", "GET", "/pods", map[string]string{"Host": "evil.example:8080", "Accept-Language": "", "User-Agent": ""}, 421},
		{"a client that is no browser", "GET", "/pods", map[string]string{"Host": "edge7.example.com"}, 200},
		{"a form of an old browser", "POST", "/stop/a", map[string]string{"Origin": "null"}, 403},
		{"a person who opens a page", "GET", "/", map[string]string{"Host": "localhost:8080", "Sec-Fetch-Site": "none"}, 200},
		{"the script of the page", "GET", "/", map[string]string{"Host": "127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}, 200},
		{"a command", "GET", "/pods", map[string]string{"Host": "monopod"}, 200},
	} {
		if code, body, _ := w.send(t, true, row.method, row.path, row.header); code != row.code {
			t.Errorf("%s: %d %s", row.name, code, body)
		}
	}
	if stopped {
		t.Error("a browser stopped a pod")
	}
	if code, _, _ := w.send(t, true, "POST", "/stop/a", map[string]string{"Host": "monopod"}); code != 200 || !stopped {
		t.Errorf("the command: %d", code)
	}
}

func TestTheAddressOfThePageLeadsToThisMachine(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.writePair(t, "server", dir+"/cert", dir+"/key")
	a.write(t, dir+"/ca")
	for _, row := range []struct {
		listen, cert, want string
	}{{"127.0.0.1:0", "", "http://127.0.0.1:PORT/"}, {"[::1]:0", "", "http://[::1]:PORT/"}, {"0.0.0.0:0", dir + "/cert", "https://localhost:PORT/"}, {"", "", ""}} {
		w := serve(t, func(c *Config) {
			if c.Listen = row.listen; row.cert != "" {
				c.Access = Access{Cert: row.cert, Key: dir + "/key", ClientCA: dir + "/ca"}
			}
		})
		want := row.want
		if w.Addr() != nil {
			_, port, _ := net.SplitHostPort(w.Addr().String())
			want = strings.Replace(want, "PORT", port, 1)
		}
		if got := w.Page(); got != want {
			t.Errorf("%q: %q, want %q", row.listen, got, want)
		}
	}
}

// Clients on TCP have stats made for four of them at a time.
func TestThePageOfTheNodeTakesItsTurn(t *testing.T) {
	var now, most atomic.Int64
	w := serve(t, func(c *Config) {
		c.Usage = func(context.Context) (*statsapi.NodeStats, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(300 * time.Millisecond)
			return nil, nil
		}
	})
	w.store.SetNode(&v1.Node{})
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() { w.browse(t, false, "/page/node") })
	}
	all.Wait()
	if most.Load() > 4 {
		t.Errorf("stats are made for %d clients at a time", most.Load())
	}
}
