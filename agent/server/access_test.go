package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	a.cert, a.key, _ = a.issue(t, "CA", x509.ExtKeyUsageAny, time.Hour)
	return a
}

// issue returns a certificate, signed by itself while there is no other.
func (a *authority) issue(t *testing.T, name string, use x509.ExtKeyUsage, life time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	parent, signer := a.cert, a.key
	if parent == nil {
		c.IsCA, c.BasicConstraintsValid, c.ExtKeyUsage, c.KeyUsage = true, true, nil, x509.KeyUsageCertSign
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func encode(t *testing.T, kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writePair writes a certificate for a server and its key.
func (a *authority) writePair(t *testing.T, name, cert, key string) {
	t.Helper()
	c, k, _ := a.issue(t, name, x509.ExtKeyUsageServerAuth, time.Hour)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	put(t, cert, encode(t, "CERTIFICATE", c.Raw))
	put(t, key, encode(t, "PRIVATE KEY", der))
}

func (a *authority) write(t *testing.T, path string) {
	t.Helper()
	put(t, path, encode(t, "CERTIFICATE", a.cert.Raw))
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// access is the files of an Access, in a folder of the test.
func access(t *testing.T) Access {
	dir := t.TempDir()
	return Access{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		ClientCA: filepath.Join(dir, "ca.crt"), Tokens: filepath.Join(dir, "tokens")}
}

// asker is a client with a way to prove who it is.
type asker struct {
	cas    *authority // of the server; nil: it does not speak TLS
	cert   *tls.Certificate
	header string // Authorization
	path   string
}

// ask opens a connection of its own. It returns who the server is, too.
func (k asker) ask(t *testing.T, w *world) (code int, body, server string) {
	t.Helper()
	scheme, transport := "http", &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true}
	if k.cas != nil {
		scheme, transport.TLSClientConfig = "https", &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AddCert(k.cas.cert)
		if k.cert != nil {
			transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.cert, nil }
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", scheme+"://"+w.Addr().String()+k.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k.header != "" {
		req.Header.Set("Authorization", k.header)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err.Error(), ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 1 {
		t.Errorf("it speaks %s", resp.Proto)
	}
	if k.cas != nil {
		server = resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	return resp.StatusCode, string(b), server
}

func TestWhoMayAskOverTCP(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	files := access(t)
	ours.writePair(t, "one", files.Cert, files.Key)
	ours.write(t, files.ClientCA)
	put(t, files.Tokens, []byte("# the scraper\nwindmill-7\n\n  harbour/+=  \n"))
	w := serve(t, func(c *Config) { c.Access = files })
	w.store.SetPod("default/a", pod("a"))
	cert := func(a *authority, use x509.ExtKeyUsage, life time.Duration) *tls.Certificate {
		_, _, pair := a.issue(t, "client", use, life)
		return &pair
	}
	good := cert(ours, x509.ExtKeyUsageClientAuth, time.Hour)
	rows := []struct {
		name   string
		who    asker
		code   int
		inBody string
	}{
		{"nobody", asker{path: "/pods"}, 401, "Unauthorized\n"},
		{"nobody, not even for health", asker{path: "/healthz"}, 401, "Unauthorized\n"},
		{"nobody learns what there is", asker{path: "/nowhere"}, 401, "Unauthorized\n"},
		{"a certificate", asker{cert: good, path: "/pods"}, 200, `"name":"SECRET","value":"` + jsonElided},
		{"that opens no more than TCP shows", asker{cert: good, path: "/manifests"}, 404, "404 page not found\n"},
		{"nor what a kubelet's debug paths do", asker{cert: good, path: "/containerLogs/default/a/app"}, 405, "Debug endpoints are disabled.\n"},
		{"another's certificate", asker{cert: cert(theirs, x509.ExtKeyUsageClientAuth, time.Hour), path: "/pods"}, 401, "Unauthorized\n"},
		{"one that ran out", asker{cert: cert(ours, x509.ExtKeyUsageClientAuth, -time.Minute), path: "/pods"}, 401, "Unauthorized\n"},
		{"a server's", asker{cert: cert(ours, x509.ExtKeyUsageServerAuth, time.Hour), path: "/pods"}, 401, "Unauthorized\n"},
		{"a token", asker{header: "Bearer windmill-7", path: "/healthz/ping"}, 200, "ok"},
		{"the other token, as some write it", asker{header: "bearer harbour/+=", path: "/healthz/ping"}, 200, "ok"},
		{"a wrong token", asker{header: "Bearer windmill-8", path: "/healthz"}, 401, "Unauthorized\n"},
		{"part of a token", asker{header: "Bearer windmill", path: "/healthz"}, 401, "Unauthorized\n"},
		{"an empty token", asker{header: "Bearer ", path: "/healthz"}, 401, "Unauthorized\n"},
		{"a comment is no token", asker{header: "Bearer # the scraper", path: "/healthz"}, 401, "Unauthorized\n"},
		{"a token as a password", asker{header: "Basic windmill-7", path: "/healthz"}, 401, "Unauthorized\n"},
		{"a bad certificate and a good token", asker{cert: cert(theirs, x509.ExtKeyUsageClientAuth, time.Hour), header: "Bearer windmill-7", path: "/healthz/ping"}, 200, "ok"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			r.who.cas = ours
			code, body, _ := r.who.ask(t, w)
			if code != r.code || !strings.Contains(body, r.inBody) || code == 401 && body != r.inBody {
				t.Errorf("answer %d %q, want %d %q", code, body, r.code, r.inBody)
			}
		})
	}
	if code, body, _ := (asker{path: "/healthz"}).ask(t, w); code != 400 {
		t.Errorf("without TLS: %d %s", code, body)
	}
	if code, _, _ := w.ask(t, true, "GET", "/manifests"); code != 200 {
		t.Errorf("the socket asks who root is: %d", code)
	}
}

func TestATokenDoesOnLoopbackWithoutTLS(t *testing.T) {
	files := Access{Tokens: access(t).Tokens}
	put(t, files.Tokens, []byte("windmill-7"))
	w := serve(t, func(c *Config) { c.Access = files })
	for header, want := range map[string]int{"": 401, "Bearer windmill-7": 200} {
		if code, body, _ := (asker{header: header, path: "/healthz/ping"}).ask(t, w); code != want {
			t.Errorf("%q: %d %s", header, code, body)
		}
	}
}

func TestAnotherAddressNeedsTLSAndWhoAsks(t *testing.T) {
	ours, files := newAuthority(t), access(t)
	ours.writePair(t, "one", files.Cert, files.Key)
	ours.write(t, files.ClientCA)
	put(t, files.Tokens, []byte("windmill-7"))
	rows := []struct {
		name string
		drop func(a *Access)
		ok   bool
	}{
		{"all there is", func(*Access) {}, true},
		{"certificates only", func(a *Access) { a.Tokens = "" }, true},
		{"tokens only", func(a *Access) { a.ClientCA = "" }, true},
		{"tokens without TLS", func(a *Access) { a.Cert, a.Key, a.ClientCA = "", "", "" }, false},
		{"a CA without TLS", func(a *Access) { a.Cert, a.Key, a.Tokens = "", "", "" }, false},
		{"TLS for everybody", func(a *Access) { a.ClientCA, a.Tokens = "", "" }, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := config(t, "0.0.0.0:0", "")
			c.Access = files
			r.drop(&c.Access)
			s, err := Listen(c)
			if err == nil {
				s.Close()
			}
			if want := "listen on 0.0.0.0:0" + notLoopback; r.ok && err != nil || !r.ok && (err == nil || err.Error() != want) {
				t.Errorf("Listen = %v", err)
			}
		})
	}
}

func TestFilesOfAccessThatMakeNoSense(t *testing.T) {
	ours, files := newAuthority(t), access(t)
	ours.writePair(t, "one", files.Cert, files.Key)
	ours.write(t, files.ClientCA)
	dir := filepath.Dir(files.Cert)
	other := filepath.Join(dir, "other.key")
	ours.writePair(t, "two", filepath.Join(dir, "other.crt"), other)
	for name, text := range map[string]string{"empty": "# nothing\n\n", "words": "good-1\nmy secret token\n", "csv": "hush,user,1\n"} {
		put(t, filepath.Join(dir, name), []byte(text))
	}
	rows := []struct {
		name string
		a    Access
		want string
	}{
		{"no key", Access{Cert: files.Cert}, "TLS needs a certificate and its private key: give both tlsCertFile and tlsPrivateKeyFile, or none"},
		{"no certificate", Access{Key: files.Key}, "TLS needs a certificate and its private key: give both tlsCertFile and tlsPrivateKeyFile, or none"},
		{"not there", Access{Cert: dir + "/no", Key: files.Key}, "TLS certificate " + dir + "/no with key " + files.Key + ": open " + dir + "/no: no such file or directory"},
		{"another's key", Access{Cert: files.Cert, Key: other}, "TLS certificate " + files.Cert + " with key " + other + ": tls: private key does not match public key"},
		{"no CA in the file", Access{Cert: files.Cert, Key: files.Key, ClientCA: files.Key}, "CAs of client certificates: " + files.Key + " holds no PEM certificate"},
		{"no CA file", Access{Cert: files.Cert, Key: files.Key, ClientCA: dir + "/no"}, "CAs of client certificates: open " + dir + "/no: no such file or directory"},
		{"no tokens", Access{Tokens: dir + "/empty"}, "tokens " + dir + "/empty: the file holds none"},
		{"no file of tokens", Access{Tokens: dir + "/no"}, "tokens: open " + dir + "/no: no such file or directory"},
		{"no token", Access{Tokens: dir + "/words"}, "tokens " + dir + "/words:2: a token stands alone on its line and is made of letters, digits and -._~+/"},
		{"an API server's tokens", Access{Tokens: dir + "/csv"}, "tokens " + dir + "/csv:1: a token stands alone on its line and is made of letters, digits and -._~+/"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := config(t, "127.0.0.1:0", "")
			c.Access = r.a
			s, err := Listen(c)
			if err == nil {
				s.Close()
				t.Fatal("it listens")
			}
			if err.Error() != r.want {
				t.Errorf("Listen = %v\nwant     %s", err, r.want)
			}
			if wrong := (*SettingsError)(nil); !errors.As(err, &wrong) {
				t.Errorf("%v is no error of the settings, which have an exit code of their own", err)
			}
		})
	}
}

// noted is what was logged.
type noted struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *noted) count(words string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.buf.String(), words)
}

func TestFilesOfAccessAreReadAgain(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	files, log := access(t), &noted{}
	first.writePair(t, "one", files.Cert, files.Key)
	first.write(t, files.ClientCA)
	put(t, files.Tokens, []byte("windmill-7"))
	w := serve(t, func(c *Config) { c.Access, c.Log = files, slog.New(slog.NewTextHandler(log, nil)) })
	_, _, old := first.issue(t, "client", x509.ExtKeyUsageClientAuth, time.Hour)
	_, _, young := second.issue(t, "client", x509.ExtKeyUsageClientAuth, time.Hour)
	who := func(what string, a asker, code int, server string) {
		t.Helper()
		a.path = "/healthz/ping"
		if a.cas == nil {
			a.cas = first
		}
		if got, body, name := a.ask(t, w); got != code || name != server {
			t.Errorf("%s: %d %q from %q, want %d from %q", what, got, body, name, code, server)
		}
	}
	who("at first", asker{cert: &old}, 200, "one")
	who("of the next CA", asker{cert: &young}, 401, "one")
	who("token", asker{header: "Bearer windmill-7"}, 200, "one")

	first.writePair(t, "two", files.Cert, files.Key)
	who("a new certificate", asker{cert: &old}, 200, "two")
	second.write(t, files.ClientCA)
	who("a new CA", asker{cert: &young}, 200, "two")
	who("a certificate of the former CA", asker{cert: &old}, 401, "two")
	put(t, files.Tokens, []byte("harbour-1\nharbour-2\n"))
	who("a token that was taken away", asker{header: "Bearer windmill-7"}, 401, "two")
	who("a new token", asker{header: "Bearer harbour-2"}, 200, "two")

	for path, text := range map[string]string{files.Cert: "nonsense", files.ClientCA: "", files.Tokens: "two words"} {
		put(t, path, []byte(text))
	}
	for range 3 {
		who("files that make no sense", asker{cert: &young}, 200, "two")
		who("tokens that make no sense", asker{header: "Bearer harbour-2"}, 200, "two")
	}
	if n := log.count("level=ERROR"); n != 3 {
		t.Errorf("that three files make no sense was said %d times", n)
	}
	for _, path := range []string{files.Cert, files.Key, files.ClientCA, files.Tokens} {
		os.Remove(path)
	}
	who("no files", asker{cert: &young}, 200, "two")
	second.writePair(t, "three", files.Cert, files.Key)
	second.write(t, files.ClientCA)
	put(t, files.Tokens, []byte("lighthouse"))
	who("files again", asker{cas: second, cert: &young}, 200, "three")
	who("tokens again", asker{cas: second, header: "Bearer lighthouse"}, 200, "three")
}

func TestTokensThatOthersCanReadAreRefused(t *testing.T) {
	files, log := access(t), slog.New(slog.DiscardHandler)
	put(t, files.Tokens, []byte("windmill-7"))
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o620: false, 0o604: false, 0o644: false} {
		if err := os.Chmod(files.Tokens, mode); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("tokens %s: others than its owner can open the file (mode %04o): chmod it to 0600", files.Tokens, mode)
		if _, err := newGuard(Access{Tokens: files.Tokens}, log); ok && err != nil || !ok && (err == nil || err.Error() != want) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// A file that was refused counts once its mode is right, though nothing else of it
// has changed.
func TestTokensCountWhenTheirModeIsMended(t *testing.T) {
	files := access(t)
	put(t, files.Tokens, []byte("windmill-7"))
	g, err := newGuard(Access{Tokens: files.Tokens}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	knows := func(token string) bool {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return g.knows(r)
	}
	put(t, files.Tokens, []byte("harbour-1"))
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chmod(files.Tokens, 0o644), os.Chtimes(files.Tokens, old, old)); err != nil {
		t.Fatal(err)
	}
	if !knows("windmill-7") || knows("harbour-1") {
		t.Error("a file that all can read counts")
	}
	if err := os.Chmod(files.Tokens, 0o600); err != nil {
		t.Fatal(err)
	}
	if knows("windmill-7") || !knows("harbour-1") {
		t.Error("the file does not count when its mode is right")
	}
}

// What strangers bring about does not fill the log.
func TestFailedHandshakesAreForDebugging(t *testing.T) {
	ours, files, log := newAuthority(t), access(t), &noted{}
	ours.writePair(t, "one", files.Cert, files.Key)
	w := serve(t, func(c *Config) {
		c.Access = Access{Cert: files.Cert, Key: files.Key}
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	raw(t, w.Addr(), "\x16\x03\x01nonsense that is no handshake")
	w.stop()
	if n := log.count("level=WARN"); n > 0 {
		t.Errorf("%d warnings:\n%s", n, log.buf.String())
	}
}
