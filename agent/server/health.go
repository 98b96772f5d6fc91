package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Check is one line of /healthz and similar paths. Func may be called from many goroutines at once
// and must not block.
type Check struct {
	Name string
	Func func() error
}

// checks returns all lines of /livez, /healthz or /readyz. The first fails only if a restart of
// the agent would help. The manifests are no check: an error in a manifest must not make a
// supervisor restart the agent.
func (s *Server) checks(of string) []Check {
	all := []Check{{"ping", func() error { return nil }}}
	if of != "livez" {
		all = append(all, Check{"runtime", s.checkRuntime})
	}
	all = append(all, s.config.Checks...)
	if of == "readyz" {
		all = append(all, s.config.Ready...)
	}
	return all
}

func (s *Server) checkRuntime() error {
	r := s.config.Store.Runtime()
	switch {
	case r.Up:
		return nil
	case r.Since.IsZero():
		return errors.New("not asked yet")
	case r.Error == "":
		return fmt.Errorf("%s does not answer for %s", r.Endpoint, time.Since(r.Since).Round(time.Second))
	default:
		return fmt.Errorf("%s does not answer for %s: %s", r.Endpoint, time.Since(r.Since).Round(time.Second), r.Error)
	}
}

// withheld replaces the reason of a failed check for clients other than root (the API server: the
// same).
const withheld = "reason withheld"

// why returns why a check fails: for root in words, which may be the runtime's.
func why(err error, local bool) string {
	if local {
		return err.Error()
	}
	return withheld
}

// endpointOf returns which of livez, healthz and readyz a path starts with.
func endpointOf(r *http.Request) string {
	of, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return of
}

// health answers ok, or 500 and every check if one fails; ?verbose always shows every check,
// ?exclude=name leaves one out.
func (s *Server) health(local bool, w http.ResponseWriter, r *http.Request) {
	of, query := endpointOf(r), r.URL.Query()
	unmatched := slices.Clone(query["exclude"])
	var lines strings.Builder
	failed := false
	for _, c := range s.checks(of) {
		if slices.Contains(query["exclude"], c.Name) {
			unmatched = slices.DeleteFunc(unmatched, func(name string) bool { return name == c.Name })
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
		} else if err := c.Func(); err != nil {
			failed = true
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, why(err, local))
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
	}
	if of != "livez" {
		fmt.Fprintf(&lines, "[+]manifests %s\n", s.manifestsLine())
	}
	if len(unmatched) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", unmatched)
	}
	plain(w)
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", lines.String(), of)
	case query.Has("verbose"):
		fmt.Fprintf(w, "%s%s check passed\n", lines.String(), of)
	default:
		fmt.Fprint(w, "ok")
	}
}

// healthOf answers for one check.
func (s *Server) healthOf(local bool, w http.ResponseWriter, r *http.Request) {
	name, checks := r.PathValue("check"), s.checks(endpointOf(r))
	if endpointOf(r) != "livez" {
		checks = append(checks, Check{"manifests", func() error { return nil }})
	}
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	if err := checks[i].Func(); err != nil {
		http.Error(w, "internal server error: "+why(err, local), http.StatusInternalServerError)
		return
	}
	plain(w)
	fmt.Fprint(w, "ok")
}

// manifestsLine returns how many problems there are; it never fails.
func (s *Server) manifestsLine() string {
	m := s.config.Store.Manifests()
	n := len(m.Problems)
	for _, f := range m.Files {
		n += len(f.Problems)
	}
	switch n {
	case 0:
		return "ok"
	case 1:
		return "ok: 1 problem"
	default:
		return fmt.Sprintf("ok: %d problems", n)
	}
}

func plain(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
