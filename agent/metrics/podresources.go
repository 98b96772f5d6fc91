package metrics

import "github.com/prometheus/client_golang/prometheus"

// podResourcesMetrics are about the requests for what containers have for themselves.
type podResourcesMetrics struct {
	all              *prometheus.CounterVec
	requests, errors map[string]*prometheus.CounterVec // by method
}

// apiVersion is the only value of their label.
const apiVersion = "v1"

func newPodResourcesMetrics(r *prometheus.Registry) podResourcesMetrics {
	const name, label = "kubelet_pod_resources_endpoint_", "server_api_version"
	m := podResourcesMetrics{
		all:      counters(r, name+"requests_total", "Requests for what containers have for themselves.", label),
		requests: map[string]*prometheus.CounterVec{}, errors: map[string]*prometheus.CounterVec{},
	}
	for _, method := range []string{"list", "get", "get_allocatable"} {
		m.requests[method] = counters(r, name+"requests_"+method, "Of these, requests of one kind.", label)
		m.errors[method] = counters(r, name+"errors_"+method, "Of these, requests that got an error.", label)
	}
	return m
}

// PodResources records a request for what containers have for themselves: list, get or
// get_allocatable.
func (m *Metrics) PodResources(method string, isRefused bool) {
	of := m.node.podResources
	of.all.WithLabelValues(apiVersion).Inc()
	of.requests[method].WithLabelValues(apiVersion).Inc()
	if isRefused {
		of.errors[method].WithLabelValues(apiVersion).Inc()
	}
}
