package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"monopod/agent/status"
)

// restartTimeout is how long a pod's worker may take to accept a restart request.
// It is below writeTimeout, so that the client gets an answer.
const restartTimeout = 20 * time.Second

// restart serves POST /restart/{namespace}/{pod}[/{container}], one of the two
// requests that change something, and reports whether the request was one. Callers
// make sure that it came over the unix socket, which only root can open.
func (s *Server) restart(w http.ResponseWriter, r *http.Request) bool {
	rest, is := strings.CutPrefix(r.URL.Path, "/restart/")
	if !is || r.Method != http.MethodPost || s.config.Restart == nil {
		return false
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(parts) > 3 {
		http.NotFound(w, r)
		return true
	}
	container := ""
	if len(parts) == 3 {
		container = parts[2]
	}
	ctx, cancel := context.WithTimeout(r.Context(), restartTimeout)
	defer cancel()
	done, err := s.config.Restart(ctx, parts[0], parts[1], container)
	answer(w, done, err, "the agent has not come to it within "+restartTimeout.String()+" and does not restart it: does the runtime answer?")
	return true
}

// answer answers a request that changes something; late says what it means
// that its time was over.
func answer(w http.ResponseWriter, done any, err error, late string) {
	var refusal *status.Refusal
	switch {
	case err == nil:
		writeJSON(w, done)
	case errors.As(err, &refusal) && refusal.Unknown:
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.As(err, &refusal):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, late, http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
