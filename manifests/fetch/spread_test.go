package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

// boxes is how many nodes the tests start together, and away how long a server is away: make fleet
// wants more of both.
var boxes, away = func() (int, time.Duration) {
	if n, err := strconv.Atoi(os.Getenv("MONOPOD_FLEET")); err == nil {
		return n, time.Hour
	}
	return 1000, 10 * time.Minute
}()

// every is the time between two requests of a node.
const every = 20 * time.Second

// together runs the Fetchers of many nodes that have a saved answer, and a server for them. It
// returns when each request came, from the start on, of those in this time. The server is away at
// first, for as long as that.
func together(t *testing.T, away, d time.Duration, h http.HandlerFunc) (came []time.Duration) {
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
			f.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if time.Since(start) < away {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return l.dial(ctx, network, address)
			}
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

// isEven checks that no second has more than twice the requests that come in a second on average.
func isEven(t *testing.T, came []time.Duration) {
	t.Helper()
	each, most := map[time.Duration]int{}, 0
	for _, at := range came {
		each[at/time.Second]++
		most = max(most, each[at/time.Second])
	}
	mean := boxes / int(every/time.Second)
	t.Logf("%d nodes: %d requests a second on average, %d at most", boxes, mean, most)
	if most > 2*mean {
		t.Errorf("%d requests in one second, more than twice %d", most, mean)
	}
}

func give(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) }

func TestNodesThatStartTogetherAskOneAfterTheOther(t *testing.T) {
	came := together(t, 0, 3*every, give)
	isEven(t, came)
	if len(came) < 2*boxes {
		t.Errorf("%d requests", len(came))
	}
}

// A server that tells all the same time is not asked by all at that time.
func TestNodesThatAreToldATimeComeBackOneAfterTheOther(t *testing.T) {
	const back = 10 * time.Minute
	var open time.Time
	var once sync.Once
	came := together(t, 0, back+3*every, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { open = time.Now().Add(back).UTC() })
		if time.Now().Before(open) {
			w.Header().Set("Retry-After", open.Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		give(w, r)
	})
	isEven(t, came)
	if len(came) < 3*boxes {
		t.Errorf("%d requests", len(came))
	}
}

// A bad upload, and the good one after it, are found as any other: no node asks more often meanwhile.
func TestNodesFindABadUploadAndTheNextOneAfterTheOther(t *testing.T) {
	var found atomic.Int64 // the good one, by nodes
	const good = pod + "# good\n"
	start := time.Time{}
	var once sync.Once
	came := together(t, 0, 6*every, func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { start = time.Now() })
		switch at := time.Since(start); {
		case at < every:
			w.Header().Set("ETag", `"v1"`)
			give(w, r)
		case at < 4*every: // a body that is empty
		case r.Header.Get("If-None-Match") == `"v2"`:
			w.WriteHeader(http.StatusNotModified)
		default:
			found.Add(1)
			w.Header().Set("ETag", `"v2"`)
			io.WriteString(w, good)
		}
	})
	isEven(t, came)
	if found.Load() != int64(boxes) {
		t.Errorf("%d of %d nodes found the good upload", found.Load(), boxes)
	}
}

// Once the server is there again all ask within lastRetry, and not at once.
func TestNodesFindAServerThatWasAwayOneAfterTheOther(t *testing.T) {
	var first atomic.Int64 // requests of nodes that had no answer before
	came := together(t, away, away+lastRetry+lastRetry/5, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "" {
			first.Add(1)
		}
		w.Header().Set("ETag", `"v1"`)
		give(w, r)
	})
	isEven(t, came)
	if first.Load() != int64(boxes) {
		t.Errorf("%d nodes have asked", first.Load())
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
