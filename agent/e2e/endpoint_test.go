//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// secretive is a pod whose env, probe and annotation hold a secret.
const secretive = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sleep, "3600"]
    env: [{name: TOKEN, value: hunter2}]
    readinessProbe: {periodSeconds: 60, httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2}]}}
`

// showsOnlyWhatOneMaySee asks the endpoint as root, as nobody, over TCP and over
// TLS, and has its settings changed while it runs.
func showsOnlyWhatOneMaySee(w *world) {
	pool, cert := w.makeAccess()
	w.agent.Listen = freeAddress(w)
	w.agent.Settings += "containerLogMaxSize: 10Mi\ncontainerLogMonitorInterval: 1s\n"
	plain := w.agent.Flags
	w.start()
	w.write("secretive", secretive)
	w.running("secretive")
	w.until("the endpoint is ready", func() error {
		if code, body, err := w.agent.Get(w.Context(), "/readyz?verbose"); err != nil || code != 200 {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
	if _, body, err := w.agent.Get(w.Context(), "/pods"); err != nil || strings.Count(body, "hunter2") != 2 {
		w.Errorf("root does not see env and headers: %v, %s", err, body)
	}
	if _, body, err := w.agent.Get(w.Context(), "/runningpods"); err != nil || !strings.Contains(body, `"name":"main","image":"`) || strings.Contains(body, "hunter2") {
		w.Errorf("what runs: %v, %s", err, body)
	}
	w.nobodyGetsNothing()
	code, body := w.over("http", nil, nil, "/pods")
	if code != 200 || !strings.Contains(body, "TOKEN") || strings.Contains(body, "hunter2") {
		w.Errorf("TCP shows %d %s", code, body)
	}
	for path, want := range map[string]int{"/livez": 200, "/configz": 404, "/manifests": 404, "/runningpods": 405, "/containerLogs/a/b/c": 405} {
		if code, body := w.over("http", nil, nil, path); code != want {
			w.Errorf("%s over TCP: %d %s", path, code, body)
		}
	}
	w.changesTheSizeOfLogs()

	check(w.T, w.agent.Stop())
	dir := w.agent.Dir
	w.agent.Flags = append(plain, "--tls-cert-file", dir+"/tls.crt", "--tls-private-key-file", dir+"/tls.key", "--client-ca-file", dir+"/ca.crt")
	w.start()
	if code, body := w.over("https", pool, cert, "/pods"); code != 200 || strings.Contains(body, "hunter2") {
		w.Errorf("with a certificate: %d %s", code, body)
	}
	if code, body := w.over("https", pool, nil, "/pods"); code != 401 || body != "Unauthorized\n" {
		w.Errorf("without a certificate: %d %s", code, body)
	}
}

// nobodyGetsNothing asks on the socket as somebody who is not root.
func (w *world) nobodyGetsNothing() {
	w.Helper()
	// Whoever keeps others from the folder must not be what refuses.
	for dir := filepath.Dir(w.agent.Socket); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		check(w.T, err)
		if info.Mode()&0o011 != 0o011 {
			check(w.T, os.Chmod(dir, info.Mode()|0o011))
		}
	}
	binary := filepath.Join(w.agent.Dir, "monopod")
	b, err := os.ReadFile(w.agent.Binary)
	check(w.T, err)
	check(w.T, os.WriteFile(binary, b, 0o755))
	cmd := exec.CommandContext(w.Context(), binary, "ps", "--socket", w.agent.Socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is for root only: permission denied") {
		w.Errorf("nobody gets: %v\n%s", err, out)
	}
}

// changesTheSizeOfLogs tells the agent by file and by signal, good and bad.
func (w *world) changesTheSizeOfLogs() {
	w.Helper()
	change := func(settings string) {
		w.Helper()
		w.agent.Settings = settings
		check(w.T, w.agent.WriteSettings())
	}
	says := func(what, text string) {
		w.Helper()
		w.until(what, func() error {
			if _, body, err := w.agent.Get(w.Context(), "/configz"); err != nil || !strings.Contains(body, text) {
				return fmt.Errorf("it says %s, %v", body, err)
			}
			return nil
		})
	}
	says("the first settings count", `"containerLogMaxSize":"10Mi"`)
	w.write("chatty", sleeper)
	w.running("chatty")
	log := w.logFile("chatty", 0)
	check(w.T, os.WriteFile(log, make([]byte, 100_000), 0o640))
	change("containerLogMaxSize: 64Ki\ncontainerLogMonitorInterval: 1s\nclusterDomain: later\n")
	check(w.T, syscall.Kill(w.agent.Pid(), syscall.SIGHUP))
	says("a signal changes the settings", `"containerLogMaxSize":"64Ki"`)
	w.until("the log is rotated", func() error {
		if all, _ := filepath.Glob(log + ".*"); len(all) != 1 {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
	w.ps("warning", "take effect after a restart", "clusterDomain")
	change("containerLogMaxSize: 0\n")
	w.ps("containerLogMaxSize", "must not be zero")
	change("containerLogMaxSize: 1Mi\n")
	says("a change of the file alone does, too", `"containerLogMaxSize":"1Mi"`)
}

// over asks over TCP.
func (w *world) over(scheme string, pool *x509.CertPool, cert *tls.Certificate, path string) (int, string) {
	w.Helper()
	config := &tls.Config{RootCAs: pool}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	resp, err := client.Get(scheme + "://" + w.agent.Listen + path)
	check(w.T, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check(w.T, err)
	return resp.StatusCode, string(b)
}

// makeAccess writes a CA and a server's certificate into the agent's folder, and
// returns what a client needs: whom to trust, and a certificate.
func (w *world) makeAccess() (*x509.CertPool, *tls.Certificate) {
	w.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(w.T, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	issue := func(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, ca, key.Public(), caKey)
		check(w.T, err)
		return der
	}
	write := func(name, kind string, der []byte) {
		check(w.T, os.WriteFile(filepath.Join(w.agent.Dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	caDER := issue(ca, caKey)
	write("ca.crt", "CERTIFICATE", caDER)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(w.T, err)
	both := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der := issue(both, key)
	write("tls.crt", "CERTIFICATE", der)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(w.T, err)
	write("tls.key", "PRIVATE KEY", keyDER)
	parsed, err := x509.ParseCertificate(caDER)
	check(w.T, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// freeAddress returns an address on loopback that nobody listens on.
func freeAddress(w *world) string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(w.T, err)
	defer l.Close()
	return l.Addr().String()
}
