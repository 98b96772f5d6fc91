package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// route is one path. The paths and answers that a kubelet has are the kubelet's.
type route struct {
	path  string
	local bool // on the unix socket only
	serve func(s *Server, local bool, w http.ResponseWriter, r *http.Request)
}

func routes() []route {
	return []route{
		{"/{$}", false, (*Server).index},
		{"/healthz", false, (*Server).health},
		{"/healthz/{check}", false, (*Server).healthOf},
		{"/livez", false, (*Server).health},
		{"/livez/{check}", false, (*Server).healthOf},
		{"/readyz", false, (*Server).health},
		{"/readyz/{check}", false, (*Server).healthOf},
		{"/pods", false, (*Server).pods},
		{"/events", false, (*Server).events},
		{"/version", false, (*Server).version},
		{"/node", false, (*Server).node},
		{"/runningpods", true, (*Server).running},
		{"/runningpods/{$}", true, (*Server).running},
		{"/containerLogs/{namespace}/{pod}/{container}", true, (*Server).containerLogs},
		{"/configz", true, (*Server).configz},
		{"/images", true, (*Server).images},
		{"/history/{namespace}/{pod}", true, (*Server).history},
		{"/manifests", true, (*Server).manifests},
		{"/runtime", true, (*Server).runtime},
	}
}

// visible returns the routes that one listener serves.
func visible(local bool) []route {
	return slices.DeleteFunc(routes(), func(r route) bool { return r.local && !local })
}

// debugPaths are those that a kubelet has on its main port only.
var debugPaths = []string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/"}

// handler returns what one listener serves; no guard is the unix socket.
func (s *Server) handler(g *guard) http.Handler {
	local := g == nil
	mux := http.NewServeMux()
	var paths []string
	for _, r := range visible(local) {
		paths = append(paths, r.path)
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(s, local, w, req) })
	}
	for _, h := range s.handlers(local) {
		paths = append(paths, h.Path)
		mux.Handle(h.Path, inTurn(h.AtOnce, h.Handler))
	}
	all := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !local && !g.admits(w, r, s.config.Listen), local && s.outlook(w, r), refuseBody(w, r):
		case local && s.change(w, r):
		case !local && slices.ContainsFunc(debugPaths, func(p string) bool { return strings.HasPrefix(r.URL.Path+"/", p) }):
			http.Error(w, "Debug endpoints are disabled.", http.StatusMethodNotAllowed)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this endpoint is read-only", http.StatusMethodNotAllowed)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	if s.config.Watch != nil {
		all = s.config.Watch(local, paths, all)
	}
	return all
}

// handlers returns what others serve on one listener.
func (s *Server) handlers(local bool) []Handler {
	return slices.DeleteFunc(slices.Clone(s.config.Handlers), func(h Handler) bool { return h.Local && !local })
}

// index lists the paths.
func (s *Server) index(local bool, w http.ResponseWriter, _ *http.Request) {
	plain(w)
	fmt.Fprintf(w, "monopod %s\n\n", s.config.Version)
	for _, r := range visible(local) {
		if !strings.HasSuffix(r.path, "{$}") {
			fmt.Fprintln(w, r.path)
		}
	}
	for _, h := range s.handlers(local) {
		fmt.Fprintln(w, h.Path)
	}
}

func (s *Server) manifests(_ bool, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.config.Store.Manifests())
}

func (s *Server) runtime(_ bool, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.config.Store.Runtime())
}

func (s *Server) images(_ bool, w http.ResponseWriter, r *http.Request) {
	if s.config.Images == nil {
		http.NotFound(w, r)
		return
	}
	all, err := s.config.Images(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, all)
}

// history answers which versions of a pod there were.
func (s *Server) history(_ bool, w http.ResponseWriter, r *http.Request) {
	if s.config.History == nil {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	all, err := s.config.History(ctx, r.PathValue("namespace"), r.PathValue("pod"))
	answer(w, all, err, "the agent has not come to it within "+changeTimeout.String()+": is it stuck?")
}

// configz answers with the settings that count now, as a kubelet does.
func (s *Server) configz(_ bool, w http.ResponseWriter, r *http.Request) {
	if s.config.Settings == nil {
		http.NotFound(w, r)
		return
	}
	writeJSON(w, map[string]any{"kubeletconfig": s.config.Settings()})
}

func (s *Server) version(_ bool, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]string{"version": s.config.Version})
}

func writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(data, '\n'))
}
