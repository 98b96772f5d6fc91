package server

import (
	"encoding/json"
	"net/http"

	v1 "k8s.io/api/core/v1"
)

// route is one path. The paths and answers that a kubelet has are the kubelet's.
type route struct {
	path  string
	local bool // on the unix socket only
	serve func(s *Server, local bool, w http.ResponseWriter, r *http.Request)
}

func routes() []route {
	return []route{
		{"/healthz", false, (*Server).health},
		{"/healthz/{check}", false, (*Server).healthOf},
		{"/pods", false, (*Server).pods},
		{"/events", false, (*Server).events},
		{"/version", false, (*Server).version},
		{"/images", true, (*Server).images},
		{"/manifests", true, (*Server).manifests},
		{"/runtime", true, (*Server).runtime},
	}
}

// handler returns what one listener serves; local is the unix socket.
func (s *Server) handler(local bool) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		if r.local && !local {
			continue
		}
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) { r.serve(s, local, w, req) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this endpoint is read-only", http.StatusMethodNotAllowed)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// pods writes a v1 PodList one pod at a time, so that no buffer has to hold
// them all.
func (s *Server) pods(local bool, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	write := func(data string) {
		if _, err := w.Write([]byte(data)); err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
	}
	write(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":`)
	sep := "["
	for _, p := range s.config.Store.Pods() {
		data, err := json.Marshal(shown(p, local))
		if err != nil {
			s.config.Log.Error("encode pod", "pod", p.Namespace+"/"+p.Name, "err", err)
			panic(http.ErrAbortHandler) // half a list must not look whole
		}
		write(sep)
		write(string(data))
		sep = ","
	}
	if sep == "[" {
		write("null}\n")
		return
	}
	write("]}\n")
}

// shown returns the pod as an item of a list, without env values unless local.
// It shares with p all that it does not change.
func shown(p *v1.Pod, local bool) *v1.Pod {
	c := *p
	c.APIVersion, c.Kind = "", ""
	if !local {
		c.Spec.InitContainers = elide(c.Spec.InitContainers)
		c.Spec.Containers = elide(c.Spec.Containers)
	}
	return &c
}

// elide returns the containers without the values of their env.
func elide(containers []v1.Container) []v1.Container {
	out := append([]v1.Container(nil), containers...)
	for i := range out {
		out[i].Env = append([]v1.EnvVar(nil), out[i].Env...)
		for j := range out[i].Env {
			if out[i].Env[j].Value != "" {
				out[i].Env[j].Value = "<elided>"
			}
		}
	}
	return out
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
