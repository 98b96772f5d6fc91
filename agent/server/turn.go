package server

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"time"
)

const (
	// turnTimeout is how long a request waits for its turn at most, and then how long its client
	// may take to read the answer. Prometheus itself gives up after 10 s.
	turnTimeout = 10 * time.Second
	// answerMax is how large an answer may be that is made in turn, in bytes: more than the
	// metrics of a thousand pods take.
	answerMax = 64 << 20
)

// inTurn makes few answers at a time; the other requests wait. 0: any number. It is for one
// listener: two that shared it could lock each other's clients out. An answer is complete before
// any of it is sent, so that a client that does not read takes no turn.
func inTurn(atOnce int, next http.Handler) http.Handler {
	if atOnce == 0 {
		return next
	}
	slots := make(chan struct{}, atOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, known := r.Context().Value(clientKey{}).(*client)
		if !known { // not from a connLimit: its state is not tracked
			n = &client{crowd: &connLimit{}}
		}
		if !await(slots, n, w, r) {
			return
		}
		a := prepare(slots, next, r)
		n.keep(a.body.Len())
		defer n.keep(0)
		// Not every writer supports this: others have the server's own limit.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(turnTimeout))
		a.send(w)
	})
}

// await waits for a slot, and reports whether it got one: if not, the request is answered.
func await(slots chan struct{}, n *client, w http.ResponseWriter, r *http.Request) bool {
	n.queue(true)
	defer n.queue(false)
	until := time.NewTimer(turnTimeout)
	defer until.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-until.C:
		http.Error(w, "too many requests at once: try again", http.StatusServiceUnavailable)
	case <-r.Context().Done():
	}
	return false
}

// prepare makes the answer to one request, and releases the slot.
func prepare(slots chan struct{}, next http.Handler, r *http.Request) *answerInTurn {
	defer func() { <-slots }()
	a := &answerInTurn{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(a, r)
	return a
}

// answerInTurn is an answer that is complete and not sent yet.
type answerInTurn struct {
	header http.Header
	code   int
	body   bytes.Buffer
	large  bool // it is larger than answerMax
}

var errLarge = errors.New("the answer is too large")

func (a *answerInTurn) Header() http.Header  { return a.header }
func (a *answerInTurn) WriteHeader(code int) { a.code = code }

func (a *answerInTurn) Write(data []byte) (int, error) {
	if a.large = a.large || a.body.Len()+len(data) > answerMax; a.large {
		return 0, errLarge
	}
	return a.body.Write(data)
}

func (a *answerInTurn) send(w http.ResponseWriter) {
	if a.large {
		http.Error(w, errLarge.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()) // an error means that the client is gone
}
