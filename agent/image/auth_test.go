package image

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

// secret is a Secret that holds a password for a registry.
func secret(registry, password string) []*v1.Secret {
	return []*v1.Secret{{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{
		v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"username": "u", "password": %q}}}`, registry, password),
	}}}
}

// admitOnly lets pulls in that have a password.
func admitOnly(password string) func(*rt.AuthConfig) error {
	return func(a *rt.AuthConfig) error {
		if a.GetPassword() == password {
			return nil
		}
		return fmt.Errorf("401 for %s:%s", a.GetUsername(), a.GetPassword())
	}
}

// users parses a docker config whose entries' users are their keys.
func users(t *testing.T, keys ...string) []entry {
	all := map[string]dockerEntry{}
	for _, key := range keys {
		all[key] = dockerEntry{Username: key, Password: "p"}
	}
	out, err := entries(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCredentialsAreForRepositories(t *testing.T) {
	for _, row := range []struct {
		name       string
		keys       []string
		repository string
		want       []string
	}{
		{"the registry itself", []string{"reg.io"}, "reg.io/a/b", []string{"reg.io"}},
		{"another registry", []string{"reg.io"}, "other.io/a", nil},
		{"with a scheme", []string{"https://reg.io"}, "reg.io/a", []string{"https://reg.io"}},
		{"with plain http", []string{"http://reg.io"}, "reg.io/a", []string{"http://reg.io"}},
		{"the API's version means nothing", []string{"https://reg.io/v2/"}, "reg.io/a", []string{"https://reg.io/v2/"}},
		{"nor before a path", []string{"reg.io/v1/team"}, "reg.io/team/x", []string{"reg.io/v1/team"}},
		{"a port", []string{"reg.io:5000"}, "reg.io:5000/a", []string{"reg.io:5000"}},
		{"another port", []string{"reg.io:5000"}, "reg.io/a", nil},
		{"no port", []string{"reg.io"}, "reg.io:5000/a", nil},
		{"a glob for one label", []string{"*.reg.io"}, "eu.reg.io/a", []string{"*.reg.io"}},
		{"a glob is not for two labels", []string{"*.reg.io"}, "a.b.reg.io/a", nil},
		{"nor for none", []string{"*.reg.io"}, "reg.io/a", nil},
		{"a glob in a label", []string{"r*g-*.io"}, "rag-7.io/a", []string{"r*g-*.io"}},
		{"globs and a port", []string{"*.*.io:5000"}, "a.b.io:5000/x", []string{"*.*.io:5000"}},
		{"a path", []string{"reg.io/team"}, "reg.io/team/x", []string{"reg.io/team"}},
		{"a path is a plain prefix", []string{"reg.io/foo"}, "reg.io/foobar/x", []string{"reg.io/foo"}},
		{"another path", []string{"reg.io/team"}, "reg.io/x/team", nil},
		{"longer keys first", []string{"reg.io", "reg.io/team/app", "reg.io/team"}, "reg.io/team/app", []string{"reg.io/team/app", "reg.io/team", "reg.io"}},
		{"docker's key of old", []string{"https://index.docker.io/v1/"}, "docker.io/library/busybox", []string{"https://index.docker.io/v1/"}},
		{"docker's own name wins", []string{"index.docker.io", "docker.io"}, "docker.io/library/busybox", []string{"docker.io"}},
		{"docker's key of old is not for this machine's registry", []string{"https://index.docker.io/v1/"}, "localhost/x", nil},
		{"on any port", []string{"https://index.docker.io/v1/"}, "localhost:5000/x", nil},
		{"nor for one without a dot in its name", []string{"https://index.docker.io/v1/"}, "REGISTRY/x", nil},
		{"a key for this machine's registry", []string{"localhost:5000", "docker.io"}, "localhost:5000/x", []string{"localhost:5000"}},
		{"docker's key is for docker alone", []string{"index.docker.io"}, "reg.io/a", nil},
		{"nothing is no registry", []string{""}, "reg.io/a", nil},
		{"a user is not part of a registry", []string{"me:pw@reg.io"}, "reg.io/a", nil},
		{"a malformed glob", []string{"[.io"}, "reg.io/a", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, a := range matching(users(t, row.keys...), row.repository) {
				got = append(got, a.Username)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestRepositoryOfAReference(t *testing.T) {
	for ref, want := range map[string]string{
		"busybox": "docker.io/library/busybox", "me/app:1": "docker.io/me/app", "localhost/x": "localhost/x",
		"reg.io:5000/a/b:1@sha256:" + strings.Repeat("0", 64): "reg.io:5000/a/b", "No Such": "",
	} {
		if got := repository(ref); got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestDockerConfigs(t *testing.T) {
	for _, row := range []struct {
		name, file string
		want       Auth
		wrong      string
	}{
		{"user and password", `{"auths": {"r.io": {"username": "u", "password": "p"}}}`, Auth{"u", "p"}, ""},
		{"auth wins over them", `{"auths": {"r.io": {"username": "x", "password": "y", "auth": "` + b64("u:p:q") + `"}}}`, Auth{"u", "p:q"}, ""},
		{"auth without padding", `{"auths": {"r.io": {"auth": "` + strings.TrimRight(b64("u:pw"), "=") + `"}}}`, Auth{"u", "pw"}, ""},
		{"fields that are for others", `{"auths": {"r.io": {"username": "u", "password": "p", "email": "e", "identitytoken": "t"}}, "credsStore": "x"}`, Auth{"u", "p"}, ""},
		{"nothing in it", `{}`, Auth{}, ""},
		{"credentials in a store", `{"auths": {"r.io": {}}, "credsStore": "desktop"}`, Auth{}, ""},
		{"no JSON", `geheim`, Auth{}, "it is not JSON: error at byte 1"},
		{"wrong kinds", `{"auths": {"r.io": {"password": 1234567}}}`, Auth{}, "it is no docker config: wrong kind of value at byte 39"},
		{"auth that is no base64", `{"auths": {"r.io": {"auth": "geheim!"}}}`, Auth{}, "entry r.io: auth is not base64"},
		{"auth that is no pair", `{"auths": {"me:geheim@r.io": {"auth": "` + b64("geheim") + `"}}}`, Auth{}, "entry r.io: auth is not base64 of user:password"},
	} {
		t.Run(row.name, func(t *testing.T) {
			found, err := parseConfig([]byte(row.file))
			if err == nil {
				err = errors.New("")
			}
			if err.Error() != row.wrong {
				t.Errorf("error %q, want %q", err, row.wrong)
			}
			var want []Auth
			if row.want != (Auth{}) {
				want = []Auth{row.want}
			}
			if got := matching(found, "r.io/x"); !slices.Equal(got, want) {
				t.Errorf("%d credentials", len(got))
			}
		})
	}
}

func TestDockerConfigsAreSearchedInOrder(t *testing.T) {
	json := func(user string) string {
		return fmt.Sprintf(`{"auths": {"r.io": {"username": %q, "password": "p"}}}`, user)
	}
	flat := func(user string) string { return fmt.Sprintf(`{"r.io": {"username": %q, "password": "p"}}`, user) }
	for _, row := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"the root dir first", map[string]string{"root/config.json": json("a"), "cwd/config.json": json("b"), "home/.docker/config.json": json("c")}, "a"},
		{"never the working dir", map[string]string{"cwd/config.json": json("b"), "cwd/.dockercfg": flat("e")}, ""},
		{"then the home's", map[string]string{"home/.docker/config.json": json("c"), "root/.dockercfg": flat("d")}, "c"},
		{"then the old form", map[string]string{"root/.dockercfg": flat("d"), "home/.dockercfg": flat("e")}, "d"},
		{"in its home", map[string]string{"home/.dockercfg": flat("f")}, "f"},
		{"a file that cannot be read is passed over", map[string]string{"root/config.json": "{", "home/.docker/config.json": json("b")}, "b"},
		{"one without credentials ends the search", map[string]string{"root/config.json": "{}", "home/.docker/config.json": json("b")}, ""},
		{"nothing", nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"root", "cwd", "home/.docker"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range row.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(filepath.Join(dir, "cwd"))
			k := &Keyring{Root: filepath.Join(dir, "root"), Home: filepath.Join(dir, "home"), Log: slog.New(slog.DiscardHandler)}
			got := ""
			for _, a := range k.lookup(t.Context(), "r.io/x") {
				got += a.Username
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestEachCredentialIsTriedAndThePodsOwnFirst(t *testing.T) {
	for _, row := range []struct {
		name    string
		secrets []*v1.Secret
		node    string // config.json
		lets    string // the password that the registry wants
		pulls   int
		wrong   string
	}{
		{"nobody has any: one pull without", nil, "{}", "", 1, ""},
		{"the pod's own is enough", secret("reg.test", "mine"), `{"auths": {"reg.test": {"username": "n", "password": "node"}}}`, "mine", 1, ""},
		{"the node's comes next", secret("reg.test", "mine"), `{"auths": {"reg.test": {"username": "n", "password": "node"}}}`, "node", 2, ""},
		{"one of two secrets", slices.Concat(secret("reg.test", "mine"), secret("reg.test/img", "path")), "{}", "mine", 2, ""},
		{"a secret for another registry is none", secret("other.test", "mine"), "{}", "", 1, ""},
		{"with credentials none is tried without", secret("reg.test", "mine"), "{}", "", 1, "401 for ***"},
		{"what both say is said once", slices.Concat(secret("reg.test", "mine"), secret("reg.test/img", "path")), "{}", "", 2, "401 for ***"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(row.node), 0o600); err != nil {
				t.Fatal(err)
			}
			r := critest.New(t)
			r.Guard("reg.test/img:1", admitOnly(row.lets))
			p := New(cri.New(r.Conn()), Config{Keyring: &Keyring{Root: dir, Log: slog.New(slog.DiscardHandler)}})
			_, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "reg.test/img:1", Secrets: row.secrets})
			want := ""
			if row.wrong != "" {
				want = `PullImage reg.test/img:1: failed to pull and unpack image "reg.test/img:1": ` + row.wrong
			}
			if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != want {
				t.Errorf("error %q\nwant  %q", got, want)
			}
			if n := r.Count("PullImage"); n != row.pulls {
				t.Errorf("%d pulls, want %d", n, row.pulls)
			}
		})
	}
}

func TestSecretsAreScrubbed(t *testing.T) {
	used := Auth{"user", "s3cret"}
	for in, want := range map[string]string{
		"login with s3cret failed":                            "login with *** failed",
		"header " + b64("user:s3cret"):                        "header ***",
		"GET https://user:s3cret@reg.io/v2/: EOF":             "GET https://***@reg.io/v2/: EOF",
		"GET https://a:b@c@reg.io/v2/: EOF":                   "GET https://***@reg.io/v2/: EOF",
		`Get "https://b.io/x?sig=abc&exp=1": 403`:             `Get "https://b.io/x?***": 403`,
		"proxy http://me@proxy:3128 refuses":                  "proxy http://***@proxy:3128 refuses",
		"sent Authorization: Bearer eyJhbGciOiJ.abc-d_e here": "sent Authorization: Bearer *** here",
		"Basic dTpwYXNzd29yZDEy":                              "Basic ***",
		"no basic authentication, a bearer token":             "no basic authentication, a bearer token",
		"reg.io/img@sha256:0123: not found":                   "reg.io/img@sha256:0123: not found",
	} {
		if got := scrubText(in, used); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", in, got, want)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", used, used, used, &used); strings.Contains(s, "s3cret") {
		t.Error("credentials print themselves: " + s)
	}
	if got := scrubText("a registry", Auth{"user", "reg"}); got != "a registry" {
		t.Errorf("a short password cuts words: %q", got)
	}
}
