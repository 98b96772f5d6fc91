//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/name"
	ggcrv1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"monopod/agent/e2e/rig"
)

// moody is a registry under a name of its own that serves what the rig's does,
// but not always and not to everybody.
type moody struct {
	*world
	host string // of its images
	next http.Handler

	mu    sync.Mutex
	moods map[string]mood // by repository
}

// mood answers in the registry's place, or passes the request on to it.
type mood func(w http.ResponseWriter, r *http.Request, next http.Handler)

// newMoody serves until the test ends; the runtime finds it under host, or its address.
func newMoody(w *world, host string) *moody {
	w.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.rig.Registry.Addr})
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // who asked has gone
	m := &moody{world: w, next: proxy, moods: map[string]mood{}}
	s := httptest.NewServer(m)
	w.Cleanup(func() {
		s.CloseClientConnections() // CRI-O goes on with a pull that is given up
		s.Close()
	})
	var err error
	m.host, err = w.rig.Runtime.Serve(host, s.Listener.Addr().String())
	check(w.T, err)
	return m
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" { // where CRI-O looks whether passwords are asked for
		asks("", "")(w, r, m.next)
		return
	}
	m.mu.Lock()
	var f mood
	for repo, mood := range m.moods {
		if strings.HasPrefix(r.URL.Path, "/v2/"+repo+"/") {
			f = mood
		}
	}
	m.mu.Unlock()
	if f == nil {
		m.next.ServeHTTP(w, r)
		return
	}
	f(w, r, m.next)
}

// set gives a repository a mood; nil: none.
func (m *moody) set(repo string, f mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moods[repo] = f
}

// image makes an image of busybox and some bytes that no other image has, and
// returns its name. It runs cmd, if that is given.
func (m *moody) image(repo string, cmd ...string) string {
	m.Helper()
	base, err := ggcr.ParseReference(m.rig.Registry.Addr+"/busybox:1", ggcr.Insecure)
	check(m.T, err)
	img, err := remote.Image(base)
	check(m.T, err)
	layer, err := random.Layer(1<<20, types.DockerLayer)
	check(m.T, err)
	img, err = mutate.AppendLayers(img, layer)
	check(m.T, err)
	if len(cmd) > 0 {
		img, err = mutate.Config(img, ggcrv1.Config{Cmd: cmd, Env: []string{"PATH=/bin"}})
		check(m.T, err)
	}
	ref := m.host + "/" + repo + ":1"
	_, err = m.rig.Registry.Push(ref, img)
	check(m.T, err)
	return ref
}

// asks lets in only whoever has this name and password.
func asks(user, password string) mood {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if u, p, ok := r.BasicAuth(); ok && u == user && p == password {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="moody"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// says answers with a status and nothing else.
func says(code int) mood {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(code) }
}

// slow takes so long for each blob.
func slow(each time.Duration) mood {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet {
			select {
			case <-time.After(each):
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	}
}

// cuts breaks off in the middle of the first blobs.
func cuts(blobs int) mood {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		cut := strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet && blobs > 0
		if cut {
			blobs--
		}
		mu.Unlock()
		if !cut {
			next.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		next.ServeHTTP(whole, r)
		for key, values := range whole.Header() {
			w.Header()[key] = values
		}
		w.WriteHeader(whole.Code)
		_, _ = io.CopyN(w, whole.Body, int64(whole.Body.Len()/2))
		panic(http.ErrAbortHandler)
	}
}

// of returns a pod's spec with another image.
func of(image string) string { return strings.Replace(sleeper, rig.Busybox, image, 1) }
