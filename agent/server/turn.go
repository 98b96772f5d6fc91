package server

import (
	"net/http"
	"time"
)

// turnTimeout is how long a request waits for its turn at most, and then how long
// its client may take to read the answer. Prometheus itself gives up after 10 s.
const turnTimeout = 10 * time.Second

// inTurn serves few requests at a time; the others wait. 0: any number. It is for
// one listener: two that shared it could lock each other's clients out.
func inTurn(atOnce int, next http.Handler) http.Handler {
	if atOnce == 0 {
		return next
	}
	slots := make(chan struct{}, atOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until := time.NewTimer(turnTimeout)
		defer until.Stop()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-until.C:
			http.Error(w, "too many requests at once: try again", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		// Not every writer can do this: others have the server's own limit.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(turnTimeout))
		next.ServeHTTP(w, r)
	})
}
