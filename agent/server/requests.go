package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/status"
)

// changeTimeout is how long a Request may take. It is below writeTimeout, so that the client gets
// an answer.
const changeTimeout = 20 * time.Second

// outlookMax bounds the manifests whose effects a request asks for, in bytes.
const outlookMax = 64 << 20

// Request is a request of the owner to the agent, on the unix socket alone, which only root can
// open. A new verb is mostly a row of requests in agent/wiring.go, by OfPod or OfPodOrNode. Errors
// of do may be a *status.Refusal. An agent that lacks one answers as one that does not know its
// paths.
type Request struct {
	method string
	paths  []string // as in http.ServeMux
	body   int64    // how long its body may be, in bytes; 0: it has none
	early  bool     // it needs not know what pods there are to be
	late   string   // what it means that its time is over
	do     func(ctx context.Context, r *http.Request) (any, error)
}

const stuck = "the agent did not answer within 20s: is it stuck?"

// Restart replaces a container, or a whole pod if none is named. do returns when that is certain
// to happen.
func Restart(do func(ctx context.Context, namespace, pod, container string) (*status.Restart, error)) Request {
	return Request{
		method: http.MethodPost,
		paths:  []string{"/restart/{namespace}/{pod}", "/restart/{namespace}/{pod}/{container}"},
		late:   "the agent did not take up the restart within 20s, and drops it: does the runtime answer?",
		do: func(ctx context.Context, r *http.Request) (any, error) {
			return do(ctx, r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
		}}
}

// Forget lets a pod go, or an object such as configmap/app or secret/app, that no manifest gives
// any more. do returns when that is certain to happen.
func Forget(do func(ctx context.Context, namespace, name string) (*status.Forgotten, error)) Request {
	return Request{
		method: http.MethodPost,
		paths:  []string{"/forget/{namespace}/{name}", "/forget/{namespace}/configmap/{name}", "/forget/{namespace}/secret/{name}"},
		late:   "the manifests could not be looked through within 20s: does their disk answer?",
		do: func(ctx context.Context, r *http.Request) (any, error) {
			name := r.PathValue("name")
			for _, kind := range []string{"configmap", "secret"} {
				if strings.HasSuffix(r.Pattern, "/"+kind+"/{name}") {
					name = kind + "/" + name
				}
			}
			return do(ctx, r.PathValue("namespace"), name)
		}}
}

// OfPod is a request such as "stop" about a pod. do returns when it is recorded.
func OfPod(verb string, do func(ctx context.Context, pod types.NamespacedName, query url.Values) error) Request {
	return Request{
		method: http.MethodPost,
		paths:  []string{"/" + verb + "/{namespace}/{pod}"},
		late:   "it could not be recorded within 20s: does the disk of the root dir answer?",
		do: func(ctx context.Context, r *http.Request) (any, error) {
			pod := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
			return struct{}{}, do(ctx, pod, r.URL.Query())
		}}
}

// OfPodOrNode is OfPod whose pod is optional: without one it is about the node.
func OfPodOrNode(verb string, do func(ctx context.Context, pod types.NamespacedName, query url.Values) error) Request {
	q := OfPod(verb, do)
	q.paths = append(q.paths, "/"+verb)
	return q
}

// OfImages is a request such as "prune" about images. What do returns is the answer, as JSON.
func OfImages(verb string, do func(ctx context.Context, query url.Values) (any, error)) Request {
	return Request{method: http.MethodPost, paths: []string{"/images/" + verb}, early: true,
		late: "the runtime did not answer within 20s: is it stuck?",
		do:   func(ctx context.Context, r *http.Request) (any, error) { return do(ctx, r.URL.Query()) }}
}

// Outlook returns, as JSON, what the manifests in the body would change. It changes nothing.
func Outlook(do func(ctx context.Context, body io.Reader) (any, error)) Request {
	return Request{method: http.MethodPost, paths: []string{"/outlook"}, body: outlookMax, late: stuck,
		do: func(ctx context.Context, r *http.Request) (any, error) { return do(ctx, r.Body) }}
}

// History returns what is known of the versions of a pod.
func History(do func(ctx context.Context, namespace, pod string) (*status.History, error)) Request {
	return Request{method: http.MethodGet, paths: []string{"/history/{namespace}/{pod}"}, late: stuck,
		do: func(ctx context.Context, r *http.Request) (any, error) {
			return do(ctx, r.PathValue("namespace"), r.PathValue("pod"))
		}}
}

// routes returns the paths of a request.
func (q Request) routes() (all []route) {
	for _, path := range q.paths {
		all = append(all, route{path: path, method: q.method, local: true, serve: q.serve})
	}
	return all
}

// serve answers the request.
func (q Request) serve(s *Server, _ bool, w http.ResponseWriter, r *http.Request) {
	if q.body == 0 && refuseBody(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, q.body)
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	if !q.early && !s.knowsPods(ctx) {
		http.Error(w, "the agent has only just started and has not read its manifests within 20s: does their disk answer?", http.StatusServiceUnavailable)
		return
	}
	done, err := q.do(ctx, r)
	answer(w, done, err, q.late)
}

// knowsPods waits until the agent knows what pods there are to be, and reports whether it does.
func (s *Server) knowsPods(ctx context.Context) bool {
	select {
	case <-s.config.PodsKnown:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer answers a request; late is what it means that its time was over.
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
