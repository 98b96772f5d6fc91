package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"monopod/agent/metrics"
)

// Clients on TCP take all that they get, and the socket has its own.
func TestWatchesOverTCPLeaveTheSocketItsOwn(t *testing.T) {
	_, socket, tcp, address := tellers(t)
	watch := func(c *http.Client, base string) int {
		resp, err := c.Get(base + "/events?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	open := 0
	for ; open < maxConns && watch(tcp, address) == http.StatusOK; open++ {
	}
	if open == 0 || open == maxConns {
		t.Fatalf("%d watches are open over TCP: that is no limit", open)
	}
	if code := watch(socket, "http://x"); code != http.StatusOK {
		t.Errorf("a watch on the socket is answered with %d while %d are open over TCP", code, open)
	}
}

// gathers is a gatherer.
type gathers func() ([]*dto.MetricFamily, error)

func (g gathers) Gather() ([]*dto.MetricFamily, error) { return g() }

func TestScrapesOverTCPLeaveTheSocketItsOwn(t *testing.T) {
	under, release := make(chan struct{}, 100), make(chan struct{})
	h := metrics.Handler(gathers(func() ([]*dto.MetricFamily, error) {
		under <- struct{}{}
		<-release
		return nil, nil
	}))
	w := serve(t, func(c *Config) { c.Handlers = []Handler{{Path: "/metrics", AtOnce: metrics.AtOnce, Handler: h}} })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ended := make(chan error, 100)
	scrape := func(c *http.Client, base string) {
		r, _ := http.NewRequestWithContext(ctx, "GET", base+"/metrics", nil)
		go func() {
			resp, err := c.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			ended <- err
		}()
	}
	for range metrics.AtOnce {
		scrape(w.other, "http://"+w.Addr().String())
		<-under
	}
	for range metrics.AtOnce {
		scrape(w.other, "http://"+w.Addr().String())
	}
	scrape(w.local, "http://x")
	select {
	case <-under:
	case <-ctx.Done():
		t.Error("a scrape on the socket waits for those over TCP")
	}
	close(release)
	for range 2*metrics.AtOnce + 1 {
		<-ended
	}
}

func TestRequestsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const atOnce = 4
		release, under := make(chan struct{}), make(chan struct{}, 100)
		h := inTurn(atOnce, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			under <- struct{}{}
			<-release
		}))
		ask := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
			return w.Code
		}
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() { ask(t.Context()) })
		}
		gone, leave := context.WithCancel(t.Context())
		all.Go(func() { ask(gone) })
		synctest.Wait()
		leave() // a client that waits no longer is not kept
		if code := ask(t.Context()); code != http.StatusServiceUnavailable || len(under) != atOnce {
			t.Errorf("%d, and %d requests at once", code, len(under))
		}
		close(release)
		all.Wait()
		if code := ask(t.Context()); code != http.StatusOK {
			t.Errorf("%d when there is room again", code)
		}
	})
}
