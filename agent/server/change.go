package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/status"
)

// changeTimeout is how long a request that changes something may take. It is below
// writeTimeout, so that the client gets an answer.
const changeTimeout = 20 * time.Second

// outlookMax bounds the manifests of which a request asks what they would change, in bytes.
const outlookMax = 64 << 20

// outlook serves POST /outlook, which changes nothing, and reports whether the request was one.
// Callers make sure that it came over the unix socket: it tells of what only root may read.
func (s *Server) outlook(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || r.URL.Path != "/outlook" || s.config.Outlook == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	said, err := s.config.Outlook(ctx, http.MaxBytesReader(w, r.Body, outlookMax))
	answer(w, said, err, "the agent has not come to it within "+changeTimeout.String()+": is it stuck?")
	return true
}

// change serves POST /restart/{namespace}/{pod}[/{container}], POST
// /forget/{namespace}/{pod} and /forget/{namespace}/{configmap|secret}/{name}, and what Config.Owner has: the only requests that change
// something. It reports whether the request was one. Callers make sure that it came over
// the unix socket, which only root can open.
func (s *Server) change(w http.ResponseWriter, r *http.Request) bool {
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	parts := strings.Split(rest, "/")
	restart := what == "restart" && s.config.Restart != nil
	forget := what == "forget" && s.config.Forget != nil
	switch {
	case r.Method == http.MethodPost && s.config.Owner[what].Do != nil:
		s.ownerAsks(w, r, s.config.Owner[what], parts)
		return true
	case r.Method != http.MethodPost || !restart && !forget:
		return false
	case len(parts) < 2 || len(parts) > 3 || forget && !forgettable(parts[1:]) || parts[0] == "" || parts[1] == "":
		http.NotFound(w, r)
		return true
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	if forget {
		done, err := s.config.Forget(ctx, parts[0], strings.Join(parts[1:], "/"))
		answer(w, done, err, "the manifests could not be looked through within "+changeTimeout.String()+": does their disk answer?")
		return true
	}
	done, err := s.config.Restart(ctx, parts[0], parts[1], append(parts, "")[2])
	answer(w, done, err, "the agent has not come to it within "+changeTimeout.String()+" and does not restart it: does the runtime answer?")
	return true
}

// forgettable reports whether a path says a pod, or an object by kind and name.
func forgettable(parts []string) bool {
	return len(parts) == 1 || (parts[0] == "configmap" || parts[0] == "secret") && parts[1] != ""
}

// ownerAsks serves a request of Config.Owner.
func (s *Server) ownerAsks(w http.ResponseWriter, r *http.Request, q Request, parts []string) {
	var pod types.NamespacedName
	switch {
	case q.Node && len(parts) == 1 && parts[0] == "":
	case len(parts) != 2 || parts[0] == "" || parts[1] == "":
		http.NotFound(w, r)
		return
	default:
		pod = types.NamespacedName{Namespace: parts[0], Name: parts[1]}
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	err := q.Do(ctx, pod, r.URL.Query())
	answer(w, struct{}{}, err, "it could not be recorded within "+changeTimeout.String()+": does the disk of the root dir answer?")
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
