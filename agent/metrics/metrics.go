// Package metrics counts and times what the agent does, under a kubelet's names and labels, so
// that dashboards and alerts made for kubelets work; names that a kubelet does not have start with
// monopod_. Metrics of the agent's state are read at each scrape (State); none is updated by hand,
// which could drift.
package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Config is what the metrics report of the agent itself.
type Config struct {
	NodeName string
	Version  string // a kubelet's, such as v1.36.3+monopod.v1.2.3
	CgroupV2 bool
	// State is called at each scrape, by any goroutine; nil: nothing is known.
	State func() State
}

// Metrics has all collectors. Any goroutine may call its methods.
type Metrics struct {
	registry *prometheus.Registry

	runtime runtimeMetrics
	pods    podMetrics
	node    nodeMetrics
	http    httpMetrics
	probes  probeMetrics
}

// New returns metrics with registries of their own.
func New(c Config) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.runtime = newRuntimeMetrics(m.registry)
	m.pods = newPodMetrics(m.registry)
	m.node = newNodeMetrics(m.registry)
	m.http = newHTTPMetrics(m.registry)
	m.probes = newProbeMetrics()
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newStateCollector(c.State),
	)
	constant(m.registry, "kubelet_node_name", "The name of this node; always 1.", prometheus.Labels{"node": c.NodeName}, 1)
	constant(m.registry, "kubernetes_build_info", "What the agent is built from; the version is that of the kubelet it is like, then its own; always 1.", buildInfo(c.Version), 1)
	version := 1.0
	if c.CgroupV2 {
		version = 2
	}
	constant(m.registry, "kubelet_cgroup_version", "The version of cgroups on this node.", nil, version)
	return m
}

func buildInfo(version string) prometheus.Labels {
	return prometheus.Labels{
		"major": "1", "minor": "36", "git_version": version,
		"git_commit": "", "git_tree_state": "", "build_date": "",
		"go_version": runtime.Version(), "compiler": runtime.Compiler, "platform": runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// constant registers a gauge that never changes.
func constant(r *prometheus.Registry, name, help string, labels prometheus.Labels, value float64) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	g.Set(value)
	r.MustRegister(g)
}

// Registry has what /metrics shows.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// ProbeRegistry has what /metrics/probes shows.
func (m *Metrics) ProbeRegistry() *prometheus.Registry { return m.probes.registry }

// The constructors below register what they make.

func counter(r *prometheus.Registry, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func counters(r *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func gauge(r *prometheus.Registry, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func gauges(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(g)
	return g
}

func histogram(r *prometheus.Registry, buckets []float64, name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

func histograms(r *prometheus.Registry, buckets []float64, name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

// since returns seconds. A time that a file or the runtime gives may lie ahead, where the clock was set
// back; a sum that became less would be taken for a restart of the agent.
func since(t time.Time) float64 { return max(time.Since(t).Seconds(), 0) }

// Upper bounds of histograms, in seconds. All but toRunning are the kubelet's:
// quantiles of both can be put into one graph only if the buckets are the same.
var (
	usual      = prometheus.DefBuckets
	starting   = []float64{.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	pulling    = []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	mounting   = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	operations = prometheus.ExponentialBuckets(.005, 2.5, 14)
	toRunning  = []float64{.1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}
)

// perPod are upper bounds of a number of containers.
var perPod = []float64{1, 2, 4, 8, 16}
