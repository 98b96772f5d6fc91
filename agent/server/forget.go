package server

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// forgetTimeout is how long it may take to look through the manifests and to
// write down what was accepted.
const forgetTimeout = 20 * time.Second

// forget serves POST /forget/{namespace}/{pod} as restart serves its request.
func (s *Server) forget(w http.ResponseWriter, r *http.Request) bool {
	rest, is := strings.CutPrefix(r.URL.Path, "/forget/")
	if !is || r.Method != http.MethodPost || s.config.Forget == nil {
		return false
	}
	namespace, pod, two := strings.Cut(rest, "/")
	if !two || namespace == "" || pod == "" || strings.Contains(pod, "/") {
		http.NotFound(w, r)
		return true
	}
	ctx, cancel := context.WithTimeout(r.Context(), forgetTimeout)
	defer cancel()
	done, err := s.config.Forget(ctx, namespace, pod)
	answer(w, done, err, "the manifests could not be looked through within "+forgetTimeout.String()+": does their disk answer?")
	return true
}
