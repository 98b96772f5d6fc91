package image

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Auth is what a pull authenticates with at a registry. It never prints itself.
type Auth struct{ Username, Password string }

func (Auth) String() string   { return hidden }
func (Auth) GoString() string { return hidden }

func (a Auth) config() *rt.AuthConfig {
	return &rt.AuthConfig{Username: a.Username, Password: a.Password}
}

// pattern is the repositories that a credential is for: globs for the labels of the host, the
// port, and a prefix of the path.
type pattern struct {
	text   string // normalized, what patterns are ordered by
	labels []string
	port   string
	path   string
}

// parsePattern reads a key of a docker config, or a pattern of a credential provider:
// "host[:port][/path]" with or without a scheme; /v1/ and /v2/ in front of the path mean nothing.
func parsePattern(key string) (pattern, error) {
	if !strings.HasPrefix(key, "http://") && !strings.HasPrefix(key, "https://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil || u.Host == "" || u.User != nil {
		return pattern{}, fmt.Errorf("it is no registry") // the error of url would repeat the key
	}
	p := pattern{path: u.Path, port: u.Port(), labels: strings.Split(u.Hostname(), ".")}
	for _, version := range []string{"/v1/", "/v2/"} {
		if strings.HasPrefix(p.path, version) {
			p.path = p.path[len(version)-1:]
			break
		}
	}
	if p.path == "/" {
		p.path = ""
	}
	for _, label := range p.labels {
		if _, err := path.Match(label, ""); err != nil {
			return pattern{}, fmt.Errorf("it has a malformed glob")
		}
	}
	p.text = u.Host + p.path
	return p, nil
}

// matches reports whether the credential is for a repository, such as
// docker.io/library/busybox. The path is a plain prefix: gcr.io/foo is for
// gcr.io/foobar too, as with a kubelet.
func (p pattern) matches(repository string) bool {
	u, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	labels := strings.Split(u.Hostname(), ".")
	if len(labels) != len(p.labels) || u.Port() != p.port || !strings.HasPrefix(u.Path, p.path) {
		return false
	}
	for k, glob := range p.labels {
		if ok, err := path.Match(glob, labels[k]); !ok || err != nil {
			return false
		}
	}
	return true
}

// entry is a credential and what it is for.
type entry struct {
	pattern
	Auth
}

// defaultRegistry is the key of the credentials for images whose name has no registry.
const defaultRegistry = "index.docker.io"

// matching returns the credentials for a repository, in reverse alphabetical order of their keys:
// longer paths before shorter ones.
func matching(all []entry, repository string) []Auth {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b entry) int { return cmp.Compare(b.text, a.text) })
	var found []Auth
	for _, e := range sorted {
		if e.matches(repository) && !slices.Contains(found, e.Auth) {
			found = append(found, e.Auth)
		}
	}
	if len(found) > 0 || !isDefault(repository) {
		return found
	}
	for _, e := range sorted {
		if e.text == defaultRegistry && !slices.Contains(found, e.Auth) {
			found = append(found, e.Auth)
		}
	}
	return found
}

// isDefault reports whether a repository, whose name always has its registry here, is in the
// registry that image names without one mean. localhost is another.
func isDefault(repository string) bool {
	host, _, _ := strings.Cut(repository, "/")
	return host == "docker.io" || host == defaultRegistry
}
