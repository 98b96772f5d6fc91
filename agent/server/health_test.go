package server

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"monopod/agent/status"
)

func TestHealth(t *testing.T) {
	var stuck error
	w := serve(t, nil, Check{"syncloop", func() error { return stuck }})
	up := status.Runtime{Up: true}
	down := status.Runtime{Endpoint: "unix:///r.sock", Error: "connection refused", Since: time.Now().Add(-12 * time.Second)}
	bad, unseen := errors.New("last pass 3m ago"), errors.New("not seen yet")
	rows := []struct {
		name, path string
		runtime    status.Runtime
		syncloop   error
		unready    error
		manifests  []status.Problem
		code       int
		body       string
	}{
		{"ok", "/healthz", up, nil, nil, nil, 200, "ok"},
		{"verbose", "/healthz?verbose", up, nil, nil, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]manifests ok\nhealthz check passed\n"},
		{"bad manifests are no failure", "/healthz?verbose=1", up, nil, nil, []status.Problem{{}, {}}, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]manifests ok: 2 problems\nhealthz check passed\n"},
		{"runtime not asked yet", "/healthz/runtime", status.Runtime{}, nil, nil, nil, 500, "internal server error: not asked yet\n"},
		{"runtime down", "/healthz", down, nil, nil, nil, 500,
			"[+]ping ok\n[-]runtime failed: unix:///r.sock does not answer for 12s: connection refused\n" +
				"[+]syncloop ok\n[+]manifests ok\nhealthz check failed\n"},
		{"sync loop stuck", "/healthz", up, bad, nil, nil, 500,
			"[+]ping ok\n[+]runtime ok\n[-]syncloop failed: last pass 3m ago\n[+]manifests ok\nhealthz check failed\n"},
		{"excluded", "/healthz?verbose&exclude=syncloop", up, bad, nil, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop excluded: ok\n[+]manifests ok\nhealthz check passed\n"},
		{"one check", "/healthz/ping", down, bad, nil, nil, 200, "ok"},
		{"one failing check", "/healthz/syncloop", up, bad, nil, nil, 500, "internal server error: last pass 3m ago\n"},
		{"manifests never fail", "/healthz/manifests", up, nil, nil, []status.Problem{{}}, 200, "ok"},
		{"nobody knows what is excluded", "/healthz?verbose&exclude=coffee", up, nil, nil, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]manifests ok\n" +
				"warn: some health checks cannot be excluded: no matches for [\"coffee\"]\nhealthz check passed\n"},
		{"health does not wait to be ready", "/healthz", up, nil, unseen, nil, 200, "ok"},
		{"alive without a runtime", "/livez?verbose", down, nil, unseen, nil, 200, "[+]ping ok\n[+]syncloop ok\nlivez check passed\n"},
		{"not alive", "/livez", up, bad, nil, nil, 500, "[+]ping ok\n[-]syncloop failed: last pass 3m ago\nlivez check failed\n"},
		{"one check of life", "/livez/syncloop", up, bad, nil, nil, 500, "internal server error: last pass 3m ago\n"},
		{"no check of life", "/livez/runtime", down, nil, nil, nil, 404, "404 page not found\n"},
		{"ready", "/readyz", up, nil, nil, nil, 200, "ok"},
		{"ready, in words", "/readyz?verbose", up, nil, nil, nil, 200,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[+]seen ok\n[+]manifests ok\nreadyz check passed\n"},
		{"not ready yet", "/readyz", up, nil, unseen, nil, 500,
			"[+]ping ok\n[+]runtime ok\n[+]syncloop ok\n[-]seen failed: not seen yet\n[+]manifests ok\nreadyz check failed\n"},
		{"not ready without a runtime", "/readyz/runtime", down, nil, nil, nil, 500,
			"internal server error: unix:///r.sock does not answer for 12s: connection refused\n"},
		{"one check of readiness", "/readyz/seen", up, nil, unseen, nil, 500, "internal server error: not seen yet\n"},
		{"that is none of health", "/healthz/seen", up, nil, nil, nil, 404, "404 page not found\n"},
		{"no such check", "/healthz/coffee", up, nil, nil, nil, 404, "404 page not found\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			stuck, w.unready = r.syncloop, r.unready
			w.store.SetRuntime(r.runtime)
			w.store.SetManifests(status.Manifests{Files: []status.File{{Problems: r.manifests}}})
			for _, local := range []bool{true, false} {
				want := r.body
				if !local { // the words may be those of the runtime
					want = regexp.MustCompile(`(failed|internal server error): .*`).ReplaceAllString(want, "$1: reason withheld")
				}
				if code, body, _ := w.ask(t, local, "GET", r.path); code != r.code || body != want {
					t.Errorf("answer %d\n%s\nwant %d\n%s", code, body, r.code, want)
				}
			}
		})
	}
}

// What a kubelet has on its healthzPort.
func TestAServerOfHealthAloneHasNothingElse(t *testing.T) {
	w := serve(t, func(c *Config) { c.HealthOnly = true })
	w.store.SetRuntime(status.Runtime{Up: true})
	for path, want := range map[string]int{"/healthz": 200, "/healthz/ping": 200, "/healthz/coffee": 404, "/livez": 404, "/pods": 404, "/metrics": 404, "/events": 404, "/": 404} {
		if code, _, body := w.ask(t, false, "GET", path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
}
