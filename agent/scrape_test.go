package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"monopod/agent/metrics"
	"monopod/agent/podspec"
	"monopod/cri/critest"
	"monopod/manifests"
)

func TestMetricsOfLogs(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().Logs("hello"))
		r.want(manifest("a", "img:1"))
		r.after(10 * time.Second)
		p := r.pod("default/a-n")
		dir := filepath.Join(podspec.LogDir(filepath.Join(r.dir, "logs"), manifests.KeyOf(p), string(p.UID)), "c")
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			r.Fatalf("logs %v, %v", entries, err)
		}
		fi, _ := entries[0].Info()
		if err := os.WriteFile(filepath.Join(dir, "0.log.20260101-000000"), make([]byte, 1000), 0o640); err != nil {
			r.Fatal(err)
		}
		name := fmt.Sprintf("kubelet_container_log_filesystem_used_bytes{container=%q,namespace=%q,pod=%q,uid=%q}", "c", "default", "a-n", p.UID)
		r.shows(map[string]float64{name: float64(fi.Size() + 1000)})
	})
}

// A file that changed while the agent was there tells when its pod was asked for.
func TestTheChangeOfAManifestIsKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if at := metrics.ChangeOf(file, before); at.IsZero() || at.After(time.Now()) {
		t.Errorf("it changed at %s", at)
	}
	for name, at := range map[string]time.Time{"before the agent": metrics.ChangeOf(file, time.Now().Add(time.Hour)), "no file": metrics.ChangeOf(file+"x", before)} {
		if !at.IsZero() {
			t.Errorf("%s: %s", name, at)
		}
	}
}

// What a scrape of a node with 100 pods costs: a number of allocations, which
// unlike time is the same on every machine. The time is for who reads the log.
func TestAScrapeOfAHundredPodsIsCheap(t *testing.T) {
	live(t, func(r *rig) {
		answers(r)
		var docs []string
		for k := range 100 {
			docs = append(docs, probedManifest(fmt.Sprintf("p%d", k), byExec("liveness")+", "+byExec("readiness")))
		}
		r.want(docs...)
		r.after(time.Minute)
		r.shows(map[string]float64{"kubelet_running_pods": 100, "kubelet_pod_start_duration_seconds": 100})
		for name, most := range map[string]float64{"/metrics": 10_000, "/metrics/probes": 20_000} {
			h := http.Handler(metricPaths(r.metrics)[0])
			if name != "/metrics" {
				h = metricPaths(r.metrics)[1]
			}
			size := 0
			scrape := func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", name, nil))
				size = w.Body.Len()
			}
			before := cpuTime(r)
			n := testing.AllocsPerRun(20, scrape) // and once before
			r.Logf("%s: %.0f allocations, %d bytes, %s of a processor", name, n, size, (cpuTime(r)-before)/21)
			if n > most || size < 50_000 {
				r.Errorf("%s allocates %.0f times for %d bytes", name, n, size)
			}
		}
	})
}
