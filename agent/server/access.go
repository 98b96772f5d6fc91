package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"monopod/agent/disk"
)

// Access is which clients may use the TCP address. Without ClientCA and Tokens these are all on
// this machine. The files are read again when they change.
type Access struct {
	Cert, Key    string // PEM files; with them TCP speaks TLS only
	CipherSuites []uint16
	MinVersion   uint16
	ClientCA     string // PEM file of the CAs of valid client certificates; needs Cert
	Tokens       string // file of bearer tokens, one a line, that only its owner can open

	Name func(setting string) string // the name of a setting in errors; nil: that of its field
}

// guard admits clients on TCP.
type guard struct {
	tls    *tls.Config
	certs  *reloaded[*tls.Certificate] // nil: no TLS
	cas    *reloaded[*x509.CertPool]   // nil: client certificates are not requested
	tokens *reloaded[[][sha256.Size]byte]
}

// SettingsError is about settings that do not fit together, or files that they name, in one
// sentence.
type SettingsError struct{ Text string }

func (e *SettingsError) Error() string { return e.Text }

// name returns the name of a setting for the person who gave it.
func (a *Access) name(setting string) string {
	if a.Name == nil {
		return setting
	}
	return a.Name(setting)
}

// Check returns why no machine can serve that TCP address to these clients; nil: it is not known that
// none can. It reads no file, and asks no resolver.
func (a *Access) Check(address string) error {
	if address == "" {
		return nil
	}
	if err := a.checkPair(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(address)
	if ip := literal(host); err == nil && ip.IsValid() {
		return a.checkReach(address, ip)
	}
	return nil
}

func (a *Access) checkPair() error {
	if (a.Cert == "") == (a.Key == "") {
		return nil
	}
	return &SettingsError{fmt.Sprintf("TLS needs a certificate and its private key: give both %s and %s, or none", a.name("tlsCertFile"), a.name("tlsPrivateKeyFile"))}
}

// checkReach refuses an address that others can reach, unless clients are authenticated and what they
// say is encrypted.
func (a *Access) checkReach(address string, ip netip.Addr) error {
	if ip.IsLoopback() || a.Cert != "" && (a.ClientCA != "" || a.Tokens != "") {
		return nil
	}
	return &SettingsError{fmt.Sprintf("listen on %s: others can reach this address: it needs %s and %s, and %s or %s; or use 127.0.0.1",
		address, a.name("tlsCertFile"), a.name("tlsPrivateKeyFile"), a.name("clientCAFile"), a.name("tokenFile"))}
}

// newGuard reads the files of a. Its errors are one sentence.
func newGuard(a Access, log *slog.Logger) (*guard, error) {
	g := &guard{}
	err := a.checkPair()
	switch {
	case err != nil:
		return nil, err
	case a.Cert != "":
		if g.certs, err = newReloaded("TLS certificate", log, func() (*tls.Certificate, error) { return readPair(a.Cert, a.Key) }, a.Cert, a.Key); err != nil {
			return nil, &SettingsError{err.Error()}
		}
		g.tls = &tls.Config{MinVersion: max(a.MinVersion, tls.VersionTLS12), CipherSuites: a.CipherSuites,
			NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true, GetConfigForClient: g.config}
	case a.ClientCA != "":
		log.Warn("client certificates are not asked for: without "+a.name("tlsCertFile")+" there is no TLS", "file", a.ClientCA)
		a.ClientCA = ""
	}
	if a.ClientCA != "" {
		if g.cas, err = newReloaded("certificates of clients' CAs", log, func() (*x509.CertPool, error) { return readCAs(a.ClientCA) }, a.ClientCA); err != nil {
			return nil, &SettingsError{err.Error()}
		}
	}
	if a.Tokens != "" {
		read := func() ([][sha256.Size]byte, error) { return readTokens(a.Tokens) }
		if g.tokens, err = newReloaded("tokens", log, read, a.Tokens); err != nil {
			return nil, &SettingsError{err.Error()}
		}
	}
	return g, nil
}

// authenticates reports whether clients must authenticate.
func (g *guard) authenticates() bool { return g.cas != nil || g.tokens != nil }

// wrap returns l with TLS, if it is configured.
func (g *guard) wrap(l net.Listener) net.Listener {
	if g.tls == nil {
		return l
	}
	return tls.NewListener(l, g.tls)
}

// config returns the settings of a handshake: the files as they are now. The client's certificate
// is verified per request, as a kubelet does: a token is enough, too, and a certificate may
// expire.
func (g *guard) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	c := g.tls.Clone()
	c.Certificates = []tls.Certificate{*g.certs.now()}
	if g.cas != nil {
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, g.cas.now()
	}
	return c, nil
}

// admits reports whether the client of r has access, and answers r if not.
func (g *guard) admits(w http.ResponseWriter, r *http.Request, listen string) bool {
	switch {
	case !g.authenticates() && !ofThisMachine(r.Host, listen):
		http.Error(w, "ask for 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
		return false
	case !g.authenticates(), g.certified(r), g.knows(r):
		return true
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.Header().Set("Connection", "close")
	http.Error(w, "Unauthorized", http.StatusUnauthorized)
	return false
}

// ofThisMachine reports whether a Host header names this machine. A page in a browser here could
// send requests under a name of its own that leads here.
func ofThisMachine(host, listen string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if name, _, err := net.SplitHostPort(listen); err == nil && strings.EqualFold(host, name) {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "" || strings.EqualFold(host, "localhost")
}

// refuseBrowser answers a request on the socket that a browser must not send, and reports whether it
// did. None reaches the socket but where somebody forwards it to a port, as ssh -L does: then a page
// from elsewhere could send requests, too. It reads nothing under a name of its own that leads here,
// which has a dot, and changes nothing.
func refuseBrowser(w http.ResponseWriter, r *http.Request) bool {
	_, speaks := r.Header["Accept-Language"] // a script can empty it, and cannot leave it out
	isBrowser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || speaks
	switch {
	case isBrowser && strings.Contains(r.Host, ".") && !ofThisMachine(r.Host, ""):
		http.Error(w, "ask for 127.0.0.1 or localhost", http.StatusMisdirectedRequest)
	case isBrowser && r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "browsers may only read: use the command", http.StatusForbidden)
	default:
		return false
	}
	return true
}

// certified reports whether the client has a valid client certificate.
func (g *guard) certified(r *http.Request) bool {
	if g.cas == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	all := x509.VerifyOptions{Roots: g.cas.now(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range r.TLS.PeerCertificates[1:] {
		all.Intermediates.AddCert(c)
	}
	_, err := r.TLS.PeerCertificates[0].Verify(all)
	return err == nil
}

// knows reports whether the request has one of the tokens. The time that this takes reveals
// nothing about them.
func (g *guard) knows(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if g.tokens == nil || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sent, same := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for _, one := range g.tokens.now() {
		same |= subtle.ConstantTimeCompare(sent[:], one[:])
	}
	return same == 1
}

func readPair(cert, key string) (*tls.Certificate, error) {
	pair, err := func() (p tls.Certificate, err error) {
		public, err := disk.ReadConfig(cert)
		if err != nil {
			return p, err
		}
		private, err := disk.ReadConfig(key)
		if err != nil {
			return p, err
		}
		return tls.X509KeyPair(public, private)
	}()
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", cert, key, err)
	}
	return &pair, nil
}

func readCAs(path string) (*x509.CertPool, error) {
	pem, err := disk.ReadConfig(path)
	if err != nil {
		return nil, fmt.Errorf("CAs of client certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CAs of client certificates: %s holds no PEM certificate", path)
	}
	return pool, nil
}
