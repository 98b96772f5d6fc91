package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// userAgent is the kubelet's for hooks: programs may distinguish probes by it.
const userAgent = "kube-lifecycle/1.36"

const (
	bodyLimit    = 10 << 10 // bytes of an answer that are read
	headerLimit  = 64 << 10 // bytes of its header
	maxRedirects = 10
)

// get requests a page from a web server. Any answer is a success. If a server speaks plain HTTP
// where https is configured, the request is repeated in plain HTTP, without the password (kubelet:
// the same).
func get(ctx context.Context, h *v1.HTTPGetAction, t Target) error {
	where, err := address(h, t)
	if err != nil {
		return err
	}
	header, host := headers(h)
	err = ask(ctx, where, header, host)
	if where.Scheme == "https" && err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		where.Scheme = "http"
		header.Del("Authorization")
		if err = ask(ctx, where, header, host); err == nil && t.Fallback != nil {
			t.Fallback()
		}
	}
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	return nil
}

// address returns the URL of an httpGet. Its path may carry a query.
func address(h *v1.HTTPGetAction, t Target) (*url.URL, error) {
	port, err := portOf(h.Port, t.Ports)
	if err != nil {
		return nil, fmt.Errorf("httpGet: %w", err)
	}
	u, err := url.Parse(h.Path)
	if err != nil { // it is no URL, but may be a path
		u = &url.URL{Path: h.Path}
	}
	host := h.Host
	if host == "" {
		host = t.Host
	}
	if host == "" {
		return nil, errors.New("httpGet: the pod's address is not known")
	}
	u.Scheme, u.Host = strings.ToLower(string(h.Scheme)), net.JoinHostPort(host, strconv.Itoa(port))
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	return u, nil
}

// portOf returns the number of a port that may be given by its name.
func portOf(p intstr.IntOrString, ports []v1.ContainerPort) (int, error) {
	number := p.IntValue() // of a name that is a number, that number
	for _, c := range ports {
		if p.Type == intstr.String && c.Name == p.StrVal {
			number = int(c.ContainerPort)
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("there is no port %q", p.String())
	}
	return number, nil
}

// headers returns the headers of a request, and the host it is for ("": the server's).
func headers(h *v1.HTTPGetAction) (header http.Header, host string) {
	header = http.Header{}
	for _, x := range h.HTTPHeaders {
		if strings.EqualFold(x.Name, "Host") {
			host = x.Value
			continue
		}
		header.Add(x.Name, x.Value)
	}
	if _, ok := header["User-Agent"]; !ok {
		header.Set("User-Agent", userAgent)
	}
	switch accept, ok := header["Accept"]; {
	case !ok:
		header.Set("Accept", "*/*")
	case accept[0] == "": // no Accept header
		header.Del("Accept")
	}
	return header, host
}

func ask(ctx context.Context, where *url.URL, header http.Header, host string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return err
	}
	request.Header, request.Host = header, host
	client := &http.Client{
		// The server is the pod's own: its certificate is not verified.
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			MaxResponseHeaderBytes: headerLimit},
		CheckRedirect: stayOnHost,
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	io.Copy(io.Discard, io.LimitReader(response.Body, bodyLimit)) // so that the server can send all of it
	return nil
}

// stayOnHost follows redirects to the same host only; another is an answer.
func stayOnHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return errors.New("too many redirects")
	}
	return nil
}
