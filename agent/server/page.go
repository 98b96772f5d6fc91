package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/page"
	"monopod/agent/status"
)

// wantsPage reports whether a client is a browser that opens a page: other clients do not ask for
// HTML.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// facts returns what pages show a reader: the same as the other paths.
func (s *Server) facts(local bool) *page.Facts {
	f := &page.Facts{Version: s.config.Version, Now: time.Now(), Logs: local, Trends: s.config.Trends()}
	if n, public := s.config.Store.NodeReport(); n != nil {
		f.Node = s.shownNode(n, public, local)
	}
	if local {
		f.Runtime, f.Manifests = new(s.config.Store.Runtime()), new(s.config.Store.Manifests())
	}
	reports := s.config.Store.Reports()
	f.Pods = func(yield func(*v1.Pod) bool) {
		for _, r := range reports {
			if !yield(s.shown(r, local)) {
				return
			}
		}
	}
	return f
}

// startPage writes the header of a page. It is never kept: it is what only this reader may see, and
// old a second later.
func startPage(w http.ResponseWriter, code int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", page.Policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	careful(h)
	w.WriteHeader(code)
}

// careful forbids browsers to guess a type, to name the page to others, and to show it to them.
func careful(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// wrote ends a page. That the reader is gone is no error of ours.
func (s *Server) wrote(err error) {
	if err != nil {
		s.config.Log.Debug("page was not written to its end", "err", err)
		panic(http.ErrAbortHandler) // half a page must not look whole
	}
}

func (s *Server) overviewPage(local bool, w http.ResponseWriter) {
	f := s.facts(local)
	startPage(w, http.StatusOK)
	s.wrote(page.Overview(w, f))
}

func (s *Server) podPage(local bool, w http.ResponseWriter, r *http.Request) {
	key, f := r.PathValue("namespace")+"/"+r.PathValue("pod"), s.facts(local)
	for p := range f.Pods {
		if p.Namespace+"/"+p.Name == key {
			startPage(w, http.StatusOK)
			s.wrote(page.Pod(w, f, p, s.eventsOf(local, key)))
			return
		}
	}
	s.missing(w, f, "There is no pod "+key+".")
}

// eventsOf returns what a reader may see of the events of a pod.
func (s *Server) eventsOf(local bool, pod string) (all []v1.Event) {
	list := s.config.Events.ListPublic
	if local {
		list = s.config.Events.List
	}
	list(pod).Each(func(e *v1.Event) bool {
		all = append(all, *e)
		return true
	})
	return all
}

func (s *Server) nodePage(local bool, w http.ResponseWriter, r *http.Request) {
	f := s.facts(local)
	used, err := s.config.Usage(r.Context())
	if err != nil {
		s.config.Log.Debug("the page of the node lacks its usage", "err", err)
	}
	of := slices.DeleteFunc(s.eventsOf(local, ""), func(e v1.Event) bool { return e.InvolvedObject.Kind != events.NodeRef("").Kind })
	startPage(w, http.StatusOK)
	s.wrote(page.Node(w, f, used, of))
}

func (s *Server) manifestsPage(local bool, w http.ResponseWriter, _ *http.Request) {
	f := s.facts(local)
	startPage(w, http.StatusOK)
	s.wrote(page.Manifests(w, f))
}

// manifestPage shows a file of the manifests, and no other.
func (s *Server) manifestPage(local bool, w http.ResponseWriter, r *http.Request) {
	f, path := s.facts(local), r.URL.Query().Get("path")
	k := slices.IndexFunc(f.Manifests.Files, func(one status.File) bool { return one.Path == path })
	if k < 0 {
		s.missing(w, f, "There is no manifest "+path+".")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	text, why := s.config.ManifestText(ctx, path)
	startPage(w, http.StatusOK)
	s.wrote(page.Manifest(w, f, f.Manifests.Files[k], text, why))
}

func (s *Server) missing(w http.ResponseWriter, f *page.Facts, what string) {
	startPage(w, http.StatusNotFound)
	s.wrote(page.Missing(w, f, what))
}

// asset serves what pages load.
func (s *Server) asset(_ bool, w http.ResponseWriter, r *http.Request) {
	data, kind := page.Asset(r.PathValue("asset"))
	if kind == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache") // the next monopod may have others
	careful(w.Header())
	_, _ = w.Write(data) // an error means that the client is gone
}
