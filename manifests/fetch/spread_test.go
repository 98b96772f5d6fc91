package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

// boxes is how many nodes the tests start together.
const boxes = 1000

// together runs the Fetchers of many nodes that have a saved answer, and a server for them. It
// returns when each request came, from the start on, of those in this time.
func together(t *testing.T, d time.Duration, h http.HandlerFunc) (came []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		start := time.Now()
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			came = append(came, time.Since(start))
			mu.Unlock()
			h(w, r)
		})}
		go srv.Serve(l)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for k := range boxes {
			f := New(Settings{URL: "http://h/x", Node: fmt.Sprint("edge", k), Known: &manifests.Answer{Data: []byte(pod)}})
			f.Dial = l.dial
			all.Go(func() { f.Run(ctx) })
			all.Go(func() {
				for ctx.Err() == nil {
					select {
					case <-f.Answers():
					case <-ctx.Done():
					}
				}
			})
		}
		time.Sleep(d)
		cancel()
		all.Wait()
		srv.Close()
	})
	return came
}

// most returns the most requests of one second.
func most(came []time.Duration) (n int) {
	each := map[time.Duration]int{}
	for _, at := range came {
		each[at/time.Second]++
		n = max(n, each[at/time.Second])
	}
	return n
}

func TestNodesThatStartTogetherAskOneAfterTheOther(t *testing.T) {
	const every = 20 * time.Second
	came := together(t, every, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) })
	mean := boxes / int(every/time.Second)
	if n := most(came); n > 2*mean || len(came) < boxes {
		t.Errorf("%d requests in all, %d in one second, want %d", len(came), n, mean)
	}
}

// A server that tells all the same time is not asked by all at that time.
func TestNodesComeBackOneAfterTheOther(t *testing.T) {
	const every, back = 20 * time.Second, 10 * time.Minute
	var open time.Time
	var once sync.Once
	came := together(t, back+3*every, func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { open = time.Now().Add(back).UTC() })
		if time.Now().Before(open) {
			w.Header().Set("Retry-After", open.Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, pod)
	})
	mean := boxes / int(every/time.Second)
	if n := most(came); n > 2*mean || len(came) < 3*boxes {
		t.Errorf("%d requests in all, %d in one second, want %d", len(came), n, mean)
	}
}

// A node that has nothing to run does not wait for its turn.
func TestANodeWithoutASavedAnswerAsksAtOnce(t *testing.T) {
	w := &world{body: pod}
	bubble(t, w, nil, func() {
		w.later(0, func() {
			if len(w.at) != 1 {
				t.Errorf("asked %d times", len(w.at))
			}
		})
	})
}
