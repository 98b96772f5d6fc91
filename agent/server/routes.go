package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// route is one path. The paths and answers that a kubelet has are the kubelet's.
type route struct {
	path   string
	local  bool // on the unix socket only
	page   bool // for browsers, which find it by links: the index does not list it
	atOnce int  // how many answers are made at a time; 0: any number
	serve  func(s *Server, local bool, w http.ResponseWriter, r *http.Request)
	method string // "": GET and HEAD
}

// routes returns all paths: those of every server, and those of this one's Requests.
func (s *Server) routes() []route {
	if s.config.HealthOnly {
		return healthRoutes("healthz")
	}
	all := reads()
	for _, q := range s.config.Requests {
		all = append(all, q.routes()...)
	}
	return all
}

// reads returns the paths that only read.
func reads() []route {
	index, health := route{path: "/{$}", serve: (*Server).index}, healthRoutes("healthz", "livez", "readyz")
	return append(append([]route{index}, health...), []route{
		{path: "/pods", serve: (*Server).pods},
		{path: "/events", serve: (*Server).events},
		{path: "/version", serve: (*Server).version},
		{path: "/node", serve: (*Server).node},
		{path: "/runningpods", local: true, serve: (*Server).running},
		{path: "/runningpods/{$}", local: true, serve: (*Server).running},
		{path: "/containerLogs/{namespace}/{pod}/{container}", local: true, serve: (*Server).containerLogs},
		{path: "/configz", local: true, serve: (*Server).configz},
		{path: "/images", local: true, serve: (*Server).images},
		{path: "/manifests", local: true, serve: (*Server).manifests},
		{path: "/runtime", local: true, serve: (*Server).runtime},
		{path: "/page/pod/{namespace}/{pod}", page: true, serve: (*Server).podPage},
		{path: "/page/node", page: true, atOnce: 4, serve: (*Server).nodePage},
		{path: "/page/manifests", local: true, page: true, serve: (*Server).manifestsPage},
		{path: "/page/manifest", local: true, page: true, serve: (*Server).manifestPage},
		{path: "/page/{asset}", page: true, serve: (*Server).asset},
	}...)
}

// healthRoutes returns the paths that answer whether the agent is well.
func healthRoutes(endpoints ...string) (all []route) {
	for _, of := range endpoints {
		all = append(all, route{path: "/" + of, serve: (*Server).health}, route{path: "/" + of + "/{check}", serve: (*Server).healthOf})
	}
	return all
}

// reads reports whether a route takes GET and HEAD.
func (r route) reads() bool { return r.method == "" || r.method == http.MethodGet }

// visible returns the routes that one listener serves to readers.
func (s *Server) visible(local bool) []route {
	return slices.DeleteFunc(s.routes(), func(r route) bool { return r.local && !local || !r.reads() })
}

// posts returns the handler of POST on the unix socket. A path without a pattern is unknown.
func (s *Server) posts() *http.ServeMux {
	mux, known := http.NewServeMux(), map[string]bool{}
	for _, r := range s.routes() {
		if r.reads() {
			continue
		}
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(s, true, w, req) })
		verb, _, _ := strings.Cut(r.path[1:], "/")
		if !known[verb] { // a known verb, with a path that it cannot have
			known[verb] = true
			mux.HandleFunc("/"+verb+"/", http.NotFound)
		}
	}
	return mux
}

// knows reports whether a mux has a path.
func knows(mux *http.ServeMux, r *http.Request) bool {
	_, pattern := mux.Handler(r)
	return pattern != ""
}

// debugPaths are those that a kubelet has on its main port only.
var debugPaths = []string{"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/"}

// handler returns what one listener serves; no guard is the unix socket.
func (s *Server) handler(g *guard) http.Handler {
	local := g == nil
	mux := http.NewServeMux()
	var paths []string
	for _, r := range s.visible(local) {
		paths = append(paths, r.path)
		mux.Handle(r.path, inTurn(r.atOnce, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(s, local, w, req) })))
	}
	for _, h := range s.handlers(local) {
		paths = append(paths, h.Path)
		mux.Handle(h.Path, inTurn(h.AtOnce, h.Handler))
	}
	posts := s.posts()
	all := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !local && !g.admits(w, r, s.config.Listen):
		case local && refuseBrowser(w, r):
		case local && r.Method == http.MethodPost && knows(posts, r):
			posts.ServeHTTP(w, r)
		case refuseBody(w, r):
		case !local && slices.ContainsFunc(debugPaths, func(p string) bool { return strings.HasPrefix(r.URL.Path+"/", p) }):
			http.Error(w, "Debug endpoints are disabled.", http.StatusMethodNotAllowed)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this endpoint is read-only", http.StatusMethodNotAllowed)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	return s.config.Watch(local, paths, all)
}

// handlers returns the Handlers of one listener.
func (s *Server) handlers(local bool) []Handler {
	return slices.DeleteFunc(slices.Clone(s.config.Handlers), func(h Handler) bool { return h.Local && !local })
}

// index lists the paths, or shows browsers the page of all pods.
func (s *Server) index(local bool, w http.ResponseWriter, r *http.Request) {
	if wantsPage(r) {
		s.overviewPage(local, w)
		return
	}
	plain(w)
	w.Header().Set("Vary", "Accept")
	fmt.Fprintf(w, "monopod %s\n\n", s.config.Version)
	for _, r := range s.visible(local) {
		if !r.page && !strings.HasSuffix(r.path, "{$}") {
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
	all, err := s.config.Images(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, all)
}

// configz answers with the settings in force, as a kubelet does.
func (s *Server) configz(_ bool, w http.ResponseWriter, _ *http.Request) {
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
