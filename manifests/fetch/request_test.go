package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file that only its owner can read.
func put(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARequestHasItsHeaders(t *testing.T) {
	var got *http.Request
	url := server(t, func(w http.ResponseWriter, r *http.Request) { got = r; io.WriteString(w, pod) })
	token := put(t, "token", "abc.def\n")
	s := Settings{URL: url, TokenFile: token, Headers: map[string][]string{"x-a": {"1", "2"}, "Accept-Encoding": {"br"}, "range": {"bytes=0-1"}}}
	if a := once(t, s); string(a.Data) != pod {
		t.Fatalf("%+v", a)
	}
	if h := got.Header; strings.Join(h["X-A"], " ") != "1 2" || h.Get("Authorization") != "Bearer abc.def" || h.Get("Range") != "" ||
		h.Get("Accept-Encoding") != "gzip" || h.Get("If-None-Match") != "" || got.Method != "GET" {
		t.Errorf("%v", h)
	}
}

// A server that has several sites tells them apart by the header Host, which another host does not get.
func TestARequestHasTheHostOfItsHeaders(t *testing.T) {
	hosts := []string{}
	other := server(t, func(w http.ResponseWriter, r *http.Request) { hosts = append(hosts, r.Host); io.WriteString(w, pod) })
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		hosts = append(hosts, r.Host)
		to := other
		if r.URL.Path == "/" {
			to = "/next"
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	once(t, Settings{URL: url, Headers: map[string][]string{"Host": {"boxes.example.com"}}})
	want := "boxes.example.com boxes.example.com " + strings.TrimPrefix(other, "http://")
	if got := strings.Join(hosts, " "); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

func TestASecretLeadsNowhereElse(t *testing.T) {
	for _, back := range []bool{false, true} {
		var there, here http.Header
		own := ""
		other := server(t, func(w http.ResponseWriter, r *http.Request) {
			if there = r.Header; back {
				http.Redirect(w, r, own+"/end", http.StatusFound)
				return
			}
			io.WriteString(w, pod)
		})
		own = server(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				http.Redirect(w, r, "/next", http.StatusFound)
			case "/next":
				here = r.Header
				http.Redirect(w, r, other, http.StatusFound)
			default:
				there = r.Header
				io.WriteString(w, pod)
			}
		})
		s := Settings{URL: strings.Replace(own, "//", "//me:pass@", 1) + "/?key=1234", Headers: map[string][]string{"x-key": {"secret"}, "Cookie": {"a=b"}, "Authorization": {"Basic x"}}}
		if a := once(t, s); string(a.Data) != pod {
			t.Fatalf("%+v", a)
		}
		if here.Get("X-Key") != "secret" || here.Get("Authorization") != "Basic x" {
			t.Errorf("a redirect of its own host loses headers: %v", here)
		}
		for _, name := range []string{"X-Key", "Cookie", "Authorization", "Referer"} {
			if v := there.Get(name); v != "" {
				t.Errorf("another host gets %s: %s", name, v)
			}
		}
	}
}

func TestATokenFileIsCheckedAndNotQuoted(t *testing.T) {
	open := put(t, "token", "secret")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]struct{ path, want string }{
		"none":          {"/nowhere/t", "manifestURLTokenFile: stat /nowhere/t: no such file"},
		"open to all":   {open, "manifestURLTokenFile " + open + ": others than its owner can open the file (mode 0644): chmod it to 0600"},
		"empty":         {put(t, "token", "\n"), "holds no token"},
		"several lines": {put(t, "token", "secret\nsecret\n"), "holds no token"},
	} {
		a := once(t, Settings{URL: "http://127.0.0.1:1/", TokenFile: r.path})
		if !strings.Contains(a.Problem, r.want) || strings.Contains(a.Problem, "secret") {
			t.Errorf("%s: %s", name, a.Problem)
		}
	}
}

// What a server or library repeats of what it was told stays hidden.
func TestAProblemHasNoSecrets(t *testing.T) {
	f := New(Settings{URL: "https://me:passw@h/x?key=1234", Headers: map[string][]string{"A": {"tokentoken"}}})
	text := f.problem(io.ErrShortWrite)
	for _, err := range []string{"bad value tokentoken", "dial passw", "see ?key=1234"} {
		text += f.problem(&problemOf{err})
	}
	for _, secret := range []string{"tokentoken", "passw", "1234"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
	if !strings.Contains(text, "bad value <elided>") {
		t.Error(text)
	}
}

type problemOf struct{ text string }

func (p *problemOf) Error() string { return p.text }

func TestTheFilesOfTLSCountAsTheyAreNow(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, pod) }))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	ca := put(t, "ca", "nothing")
	f := New(Settings{URL: s.URL, CAFile: ca})
	defer f.client.CloseIdleConnections()
	asks := func(want string) {
		t.Helper()
		if a, _ := f.poll(t.Context()); !strings.Contains(a.Problem, want) || (want == "") != (a.Problem == "") {
			t.Errorf("%q, want %q", a.Problem, want)
		}
	}
	asks("manifestURLCAFile " + ca + ": holds no certificate (PEM)")
	f.CAFile = ""
	asks("of a CA that is not known here: give that CA with manifestURLCAFile")
	if f.CAFile = ca; os.WriteFile(ca, []byte(cert), 0o600) != nil {
		t.Fatal("not written")
	}
	asks("refuses the connection (tls: certificate required): check manifestURLCertFile, and see to the server")
	f.CertFile, f.KeyFile = put(t, "cert", cert), put(t, "key", "nothing")
	asks("manifestURLCertFile " + f.CertFile + " with manifestURLPrivateKeyFile")
	f.KeyFile = put(t, "key2", key)
	asks("")
}
