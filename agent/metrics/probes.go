package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// probeMetrics are about the probes of containers. They have a registry of
// their own: their series are as many as containers with probes.
type probeMetrics struct {
	registry *prometheus.Registry
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newProbeMetrics() probeMetrics {
	r := prometheus.NewRegistry()
	start := prometheus.NewGauge(prometheus.GaugeOpts{Name: "process_start_time_seconds", Help: "When the agent started, in seconds since 1970."})
	start.SetToCurrentTime()
	r.MustRegister(start)
	return probeMetrics{
		registry: r,
		total: counters(r, "prober_probe_total", "Probes of containers, by what they are for and what they found.",
			"probe_type", "result", "container", "pod", "namespace", "pod_uid"),
		seconds: histograms(r, usual, "prober_probe_duration_seconds", "How long probes took that did not fail.",
			"probe_type", "container", "pod", "namespace"),
	}
}

// Probed is one container that is probed.
type Probed struct {
	Kind                      string // Liveness, Readiness or Startup
	Container, Pod, Namespace string
	UID                       string
}

// Results of a probe.
const (
	ProbeSuccessful = "successful"
	ProbeFailed     = "failed"
	ProbeUnknown    = "unknown" // it could not be carried out
)

// Probe records a probe.
func (m *Metrics) Probe(p Probed, result string, took time.Duration) {
	m.probes.total.WithLabelValues(p.Kind, result, p.Container, p.Pod, p.Namespace, p.UID).Inc()
	if result != ProbeFailed {
		m.probes.seconds.WithLabelValues(p.Kind, p.Container, p.Pod, p.Namespace).Observe(took.Seconds())
	}
}

// ForgetProbes drops the metrics of the probes of a pod that has ended. No probe
// of it may be running.
func (m *Metrics) ForgetProbes(namespace, pod, uid string) {
	m.probes.total.DeletePartialMatch(prometheus.Labels{"pod_uid": uid})
	m.probes.seconds.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "pod": pod})
}
