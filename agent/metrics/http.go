package metrics

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// httpMetrics are about requests to the agent itself.
type httpMetrics struct {
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inflight *prometheus.GaugeVec
}

func newHTTPMetrics(r *prometheus.Registry) httpMetrics {
	labels := []string{"method", "path", "server_type", "long_running"}
	return httpMetrics{
		total:    counters(r, "kubelet_http_requests_total", "Requests to the agent's endpoints.", labels...),
		seconds:  histograms(r, usual, "kubelet_http_requests_duration_seconds", "How long requests took.", labels...),
		inflight: gauges(r, "kubelet_http_inflight_requests", "Requests under way.", labels...),
	}
}

// longRunning are paths whose requests last as long as the client wants.
var longRunning = map[string]bool{"exec": true, "attach": true, "portForward": true, "debug": true}

// Serve counts and times the requests that next serves. paths are those that it knows; others
// share a label. local: it is the unix socket.
func (m *Metrics) Serve(local bool, paths []string, next http.Handler) http.Handler {
	known := map[string]bool{}
	for _, p := range paths {
		known[firstOf(p)] = true
	}
	server := "readonly"
	if local {
		server = "readwrite"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := firstOf(r.URL.Path)
		if !known[path] {
			path = other
		}
		long := "false"
		if longRunning[path] {
			long = "true"
		}
		labels := []string{method(r.Method), path, server, long}
		start := time.Now()
		m.http.total.WithLabelValues(labels...).Inc()
		m.http.inflight.WithLabelValues(labels...).Inc()
		defer func() {
			m.http.inflight.WithLabelValues(labels...).Dec()
			m.http.seconds.WithLabelValues(labels...).Observe(since(start))
		}()
		next.ServeHTTP(w, r)
	})
}

// firstOf returns the first element of a path, the first two of the metrics'.
func firstOf(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if second, _, _ := strings.Cut(rest, "/"); first == "metrics" && second != "" {
		return first + "/" + second
	}
	return first
}

// method returns a method's label: clients may invent methods.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return other
}
