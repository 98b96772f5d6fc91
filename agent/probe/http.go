package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

const redirectLimit = 10

// http succeeds for the codes 200 to 399, after redirects on the same host.
func (p *Prober) http(ctx context.Context, get *v1.HTTPGetAction, host string, port int, timeout time.Duration) (Outcome, error) {
	r, err := request(ctx, get, host, port)
	if err != nil {
		return Outcome{}, err
	}
	client := http.Client{Transport: p.roundTripper(), Timeout: timeout, CheckRedirect: sameHost}
	answer, err := client.Do(r)
	if err != nil {
		return Outcome{Failure, err.Error()}, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, outputLimit))
	if err != nil {
		return Outcome{}, fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	switch code := answer.StatusCode; {
	case code >= 400 || code < 200:
		return Outcome{Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", code)}, nil
	case code >= 300:
		return Outcome{Warning, "Probe terminated redirects, Response body: " + string(body)}, nil
	}
	return Outcome{Success, string(body)}, nil
}

// sameHost ends redirects that lead to another host, with their answer.
func sameHost(r *http.Request, via []*http.Request) error {
	switch {
	case r.URL.Hostname() != via[0].URL.Hostname():
		return http.ErrUseLastResponse
	case len(via) >= redirectLimit:
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// request returns the probe's request; its path may hold a query.
func request(ctx context.Context, get *v1.HTTPGetAction, host string, port int) (*http.Request, error) {
	to, err := url.Parse(get.Path)
	if err != nil { // it is used as a path
		to = &url.URL{Path: get.Path}
	}
	to.Scheme, to.Host = "http", join(host, port)
	if get.Scheme != "" {
		to.Scheme = strings.ToLower(string(get.Scheme))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range get.HTTPHeaders {
		r.Header.Add(h.Name, h.Value)
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header.Set("User-Agent", userAgent)
	}
	switch accept, given := r.Header["Accept"]; {
	case !given:
		r.Header.Set("Accept", "*/*")
	case accept[0] == "": // the kubelet's way to send none
		r.Header.Del("Accept")
	}
	if name := r.Header.Get("Host"); name != "" {
		r.Host = name
	}
	return r, nil
}
