package stats

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"monopod/cri/critest"
)

func TestPages(t *testing.T) {
	h := plant(t, "v2")
	rows := []struct {
		path, kind, has, lacks string
		code                   int
	}{
		{"/stats/summary", "application/json", `"process_stats":{"process_count":3}`, "", 200},
		{"/stats/summary?only_cpu_and_memory=true", "application/json", `"workingSetBytes":85000000`, "process_stats", 200},
		{"/stats/summary?only_cpu_and_memory=0", "application/json", `"process_stats"`, "", 200},
		{"/stats/summary?only_cpu_and_memory=maybe", "text/plain; charset=utf-8", "choose true or false", "", 400},
		{"/metrics/resource", textType, "\nnode_cpu_usage_seconds_total 9000 ", "", 200},
		{"/metrics/cadvisor", textType, "\nmachine_memory_bytes ", "", 200},
	}
	for _, row := range rows {
		t.Run(row.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := looker(t, h, critest.New(t), "systemd", parsePod(t, webPod))
				r := httptest.NewRequestWithContext(t.Context(), "GET", row.path, nil)
				w := httptest.NewRecorder()
				c.Pages()[r.URL.Path](w, r)
				body := w.Body.String()
				if w.Code != row.code || w.Header().Get("Content-Type") != row.kind || !strings.Contains(body, row.has) || row.lacks != "" && strings.Contains(body, row.lacks) {
					t.Errorf("%d %s:\n%s", w.Code, w.Header().Get("Content-Type"), body)
				}
			})
		})
	}
}

func TestTrendsAreServed(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		all, uid, _ := trendsOf(t, h)
		for _, used := range []int{0, 15_000_000} {
			spend(t, h, used)
			all.Sample()
			time.Sleep(PointEvery)
		}
		spend(t, h, 45_000_000)
		w := httptest.NewRecorder()
		all.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/stats/hour", nil))
		want := `[{"uid":"` + uid + `","cpu":500000000,"memory":85000000,"points":[{"cpu":250,"memory":83007}]}]` + "\n"
		if got := w.Body.String(); got != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A runtime that does not answer costs time, not the answer.
func TestAHangingRuntime(t *testing.T) {
	h := plant(t, "v2")
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.Fault(critest.On(critest.Any).Hang())
		c := looker(t, h, r, "systemd", parsePod(t, webPod))
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/stats/summary", nil)
		w := httptest.NewRecorder()
		c.Pages()[req.URL.Path](w, req)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"workingSetBytes":85000000`) || !strings.Contains(w.Body.String(), `"process_stats"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// A runtime that does not say when a container started does not say 1970.
func TestAStartThatIsNotKnownIsLeftOut(t *testing.T) {
	h := plant(t, "v2")
	for _, path := range []string{"/stats/summary", "/metrics/resource", "/metrics/cadvisor"} {
		synctest.Test(t, func(t *testing.T) {
			c := looker(t, h, critest.New(t), "systemd", parsePod(t, strings.Replace(webPod, "1999-12-31T23:00:05Z", "1970-01-01T00:00:00Z", 1)))
			w := httptest.NewRecorder()
			c.Pages()[path](w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			for line := range strings.Lines(w.Body.String()) {
				if strings.Contains(line, "1970") && !strings.HasPrefix(line, "#") || strings.HasPrefix(line, "container_start_time_seconds{") && strings.Contains(line, `"app"`) {
					t.Errorf("%s: %s", path, line)
				}
			}
		})
	}
}
