package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// runtimeMetrics are about the container runtime.
type runtimeMetrics struct {
	calls, callErrors *prometheus.CounterVec
	callSeconds       *prometheus.HistogramVec

	sandboxSeconds *prometheus.HistogramVec
	sandboxErrors  *prometheus.CounterVec

	relist, relistInterval, relistPod prometheus.Histogram
	lastSeen                          prometheus.Gauge

	streams, streamErrors prometheus.Counter
	restarts              prometheus.Counter
	eventLatency          prometheus.Histogram
}

func newRuntimeMetrics(r *prometheus.Registry) runtimeMetrics {
	m := runtimeMetrics{
		calls:          counters(r, "kubelet_runtime_operations_total", "Calls of the container runtime, by operation.", "operation_type"),
		callErrors:     counters(r, "kubelet_runtime_operations_errors_total", "Calls of the container runtime that failed, by operation.", "operation_type"),
		callSeconds:    histograms(r, operations, "kubelet_runtime_operations_duration_seconds", "How long calls of the container runtime took, by operation.", "operation_type"),
		sandboxSeconds: histograms(r, usual, "kubelet_run_podsandbox_duration_seconds", "How long the runtime took to run a sandbox, by its handler.", "runtime_handler"),
		sandboxErrors:  counters(r, "kubelet_run_podsandbox_errors_total", "Sandboxes that the runtime could not run, by its handler.", "runtime_handler"),
		relist:         histogram(r, usual, "kubelet_pleg_relist_duration_seconds", "How long it took to list all that is ours in the runtime."),
		relistInterval: histogram(r, usual, "kubelet_pleg_relist_interval_seconds", "The time between the beginnings of such lists."),
		relistPod:      histogram(r, usual, "kubelet_pleg_pod_relist_duration_seconds", "How long it took to look at one pod in the runtime."),
		lastSeen:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_pleg_last_seen_seconds", Help: "When the runtime was listed last, in seconds since 1970."}),
		streams:        counter(r, "kubelet_evented_pleg_connection_success_count", "Streams of container events that the runtime began to send."),
		streamErrors:   counter(r, "kubelet_evented_pleg_connection_error_count", "Streams of container events that broke or could not be opened."),
		eventLatency:   histogram(r, usual, "kubelet_evented_pleg_connection_latency_seconds", "The time between a container event and its arrival here."),
	}
	m.restarts = counter(r, "monopod_managed_runtime_restarts_total", "How often the containerd that monopod started has died, and was started again.")
	r.MustRegister(m.lastSeen)
	return m
}

// operationTypes are the kubelet's names of the CRI's calls.
var operationTypes = map[string]string{
	"Version":                   "version",
	"Status":                    "status",
	"CreateContainer":           "create_container",
	"StartContainer":            "start_container",
	"StopContainer":             "stop_container",
	"RemoveContainer":           "remove_container",
	"ListContainers":            "list_containers",
	"ContainerStatus":           "container_status",
	"UpdateContainerResources":  "update_container",
	"ReopenContainerLog":        "reopen_container_log",
	"ExecSync":                  "exec_sync",
	"Exec":                      "exec",
	"Attach":                    "attach",
	"PortForward":               "port_forward",
	"RunPodSandbox":             "run_podsandbox",
	"StopPodSandbox":            "stop_podsandbox",
	"RemovePodSandbox":          "remove_podsandbox",
	"PodSandboxStatus":          "podsandbox_status",
	"ListPodSandbox":            "list_podsandbox",
	"UpdatePodSandboxResources": "update_podsandbox_resources",
	"ContainerStats":            "container_stats",
	"ListContainerStats":        "list_container_stats",
	"PodSandboxStats":           "podsandbox_stats",
	"ListPodSandboxStats":       "list_podsandbox_stats",
	"UpdateRuntimeConfig":       "update_runtime_config",
	"RuntimeConfig":             "runtime_config",
	"ListImages":                "list_images",
	"ImageStatus":               "image_status",
	"PullImage":                 "pull_image",
	"RemoveImage":               "remove_image",
	"ImageFsInfo":               "image_fs_info",
	"CheckpointContainer":       "checkpoint_container",
	"GetContainerEvents":        "get_container_events",
	"ListMetricDescriptors":     "list_metric_descriptors",
	"ListPodSandboxMetrics":     "list_podsandbox_metrics",
}

// Call records a call of the runtime, by the CRI's name of it.
func (m *Metrics) Call(name string, took time.Duration, err error) {
	op, known := operationTypes[name]
	if !known {
		op = other
	}
	m.runtime.calls.WithLabelValues(op).Inc()
	m.runtime.callSeconds.WithLabelValues(op).Observe(took.Seconds())
	if err != nil {
		m.runtime.callErrors.WithLabelValues(op).Inc()
	}
}

// Sandbox observes the start of a sandbox that began at start, or its failure.
// handler is "" for the runtime's default.
func (m *Metrics) Sandbox(handler string, start time.Time, err error) {
	m.runtime.sandboxSeconds.WithLabelValues(handler).Observe(since(start))
	if err != nil {
		m.runtime.sandboxErrors.WithLabelValues(handler).Inc()
	}
}

// Relist observes a relist that started at start. last is when the one before
// started; zero: there was none.
func (m *Metrics) Relist(last, start time.Time, err error) {
	m.runtime.relist.Observe(since(start))
	if !last.IsZero() {
		m.runtime.relistInterval.Observe(start.Sub(last).Seconds())
	}
	if err == nil {
		m.runtime.lastSeen.Set(float64(start.Unix()))
	}
}

// Look observes the inspection of one pod in the runtime that started at start.
func (m *Metrics) Look(start time.Time) {
	m.runtime.relistPod.Observe(since(start))
}

// Stream records that the runtime sends events.
func (m *Metrics) Stream() {
	m.runtime.streams.Inc()
}

// StreamEnded records that a stream of events broke, or could not be opened.
func (m *Metrics) StreamEnded() {
	m.runtime.streamErrors.Inc()
}

// Event records an event of that moment.
func (m *Metrics) Event(at time.Time) {
	m.runtime.eventLatency.Observe(since(at))
}

// RuntimeRestarted counts a start of a runtime of the agent's own that had died.
func (m *Metrics) RuntimeRestarted() { m.runtime.restarts.Inc() }
