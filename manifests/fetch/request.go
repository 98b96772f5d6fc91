package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"monopod/manifests"
)

// request returns a request to the URL, or to that of its signature.
func (f *Fetcher) request(ctx context.Context, url string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, errors.New("not a URL: correct staticPodURL")
	}
	req.Header.Set("User-Agent", "monopod")
	for name, values := range f.Headers {
		req.Header.Del(name)
		for _, v := range values {
			req.Header.Add(name, v)
		}
	}
	for _, name := range []string{"Accept-Encoding", "Range"} { // those are the client's to say
		req.Header.Del(name)
	}
	if host := req.Header.Get("Host"); host != "" { // the client takes it from this field alone
		req.Host = host
	}
	if f.TokenFile != "" {
		token, err := f.readToken(f.TokenFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// condition makes a request conditional on the body that is known.
func (l *last) condition(req *http.Request) {
	if l.etag != "" {
		req.Header.Set("If-None-Match", l.etag)
	}
	if l.modified != "" {
		req.Header.Set("If-Modified-Since", l.modified)
	}
}

// bearerToken is the syntax of a token in RFC 6750 (2.1).
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// readToken reads a file that holds one token. The errors quote nothing of it.
func (f *Fetcher) readToken(path string) (string, error) {
	info, err := f.disk.stat(path)
	if err != nil {
		return "", fmt.Errorf("manifestURLTokenFile: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("manifestURLTokenFile %s: others than its owner can open the file (mode %04o): "+
			"chmod it to 0600", path, mode)
	}
	data, err := f.disk.read(path)
	if err != nil {
		return "", fmt.Errorf("manifestURLTokenFile: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) > 16<<10 || !bearerToken.MatchString(token) {
		return "", fmt.Errorf("manifestURLTokenFile %s: holds no token: letters, digits and -._~+/ alone", path)
	}
	return token, nil
}

// mostRedirects is how many redirects a request may follow.
const mostRedirects = 5

// checkRedirect follows redirects within the same scheme. Credentials, and what the URL itself
// contains, go to the first host only.
func (f *Fetcher) checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > mostRedirects:
		return fmt.Errorf("redirects more than %d times: correct staticPodURL", mostRedirects)
	case req.URL.Scheme != first.Scheme:
		return fmt.Errorf("redirects to %s, which is not followed from %s: if it is right, give it as staticPodURL",
			manifests.URLName(req.URL.String()), first.Scheme)
	}
	req.Header.Del("Referer")
	elsewhere := req.URL.Host != first.Host
	for _, one := range via {
		elsewhere = elsewhere || one.URL.Host != first.Host
	}
	if !elsewhere {
		return nil
	}
	for name := range f.Headers {
		req.Header.Del(name)
	}
	for _, name := range []string{"Authorization", "Cookie"} {
		req.Header.Del(name)
	}
	return nil
}

// ExposedTo returns the host of a URL whose traffic can be read on the way: it is not encrypted and
// leaves this machine. Otherwise it returns "".
func ExposedTo(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || strings.EqualFold(u.Hostname(), "localhost") {
		return ""
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Unmap().IsLoopback() {
		return ""
	}
	return u.Host
}

// tlsFiles identifies the versions of the TLS files that were read last.
type tlsFiles struct{ stamps [3]stamp }

// stamp identifies a version of a file.
type stamp struct {
	size int64
	at   time.Time
}

// connect sets the client's transport, a new one if the TLS files have changed.
func (f *Fetcher) connect() error {
	var now [3]stamp
	for k, path := range []string{f.CAFile, f.CertFile, f.KeyFile} {
		if info, err := f.disk.stat(path); err == nil {
			now[k] = stamp{info.Size(), info.ModTime()}
		}
	}
	if f.client.Transport != nil && now == f.files.stamps {
		return nil
	}
	conf, err := f.tlsConfig()
	if err != nil {
		return err
	}
	f.client.CloseIdleConnections()
	f.client.Transport, f.files.stamps = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: f.Dial, TLSClientConfig: conf,
		TLSHandshakeTimeout: firstByte, ResponseHeaderTimeout: firstByte, MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns: 2, IdleConnTimeout: 2*f.Every + time.Minute,
	}, now
	return nil
}

func (f *Fetcher) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CAFile != "" {
		text, err := f.disk.read(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("manifestURLCAFile: %w", err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("manifestURLCAFile %s: holds no certificate (PEM)", f.CAFile)
		}
	}
	if f.CertFile == "" {
		return conf, nil
	}
	cert, err := f.disk.read(f.CertFile)
	if err != nil {
		return nil, fmt.Errorf("manifestURLCertFile: %w", err)
	}
	key, err := f.disk.read(f.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("manifestURLPrivateKeyFile: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("manifestURLCertFile %s with manifestURLPrivateKeyFile %s: %w", f.CertFile, f.KeyFile, err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}
