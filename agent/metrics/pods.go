package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// podMetrics are about pods and containers.
type podMetrics struct {
	started, startErrors prometheus.Counter
	restarted            *prometheus.CounterVec
	strays               prometheus.Counter
	perPod               prometheus.Histogram
	startSeconds         prometheus.Histogram
	toRunning            prometheus.Histogram

	workerSeconds      *prometheus.HistogramVec
	workerStartSeconds prometheus.Histogram
	passes             *prometheus.CounterVec

	containers, containerErrors, terminated *prometheus.CounterVec

	rejections *prometheus.CounterVec
	fallbacks  prometheus.Counter
	panics     prometheus.Counter
	rollbacks  prometheus.Counter
}

func newPodMetrics(r *prometheus.Registry) podMetrics {
	return podMetrics{
		started:            counter(r, "kubelet_started_pods_total", "Tries to start a pod: its sandbox."),
		startErrors:        counter(r, "kubelet_started_pods_errors_total", "Tries to start a pod that failed."),
		restarted:          counters(r, "kubelet_restarted_pods_total", "Pods that were removed and came back under the same uid before they were gone.", "static"),
		strays:             counter(r, "kubelet_orphaned_runtime_pods_total", "Pods found in the runtime that neither a manifest nor a checkpoint tells of."),
		perPod:             histogram(r, perPod, "kubelet_containers_per_pod_count", "The number of regular containers of each pod that was accepted."),
		startSeconds:       histogram(r, starting, "kubelet_pod_start_duration_seconds", "From when a pod was first read to when it ran, of pods that this agent started."),
		toRunning:          histogram(r, toRunning, "monopod_manifest_to_running_duration_seconds", "From the change of a manifest's file to when its new pod ran, of files that changed while the agent was there."),
		workerSeconds:      histograms(r, usual, "kubelet_pod_worker_duration_seconds", "How long a worker's pass over its pod took, by what it was for.", "operation_type"),
		workerStartSeconds: histogram(r, usual, "kubelet_pod_worker_start_duration_seconds", "From when a pod, or a change of it, was read to when its worker began with it."),
		passes:             counters(r, "monopod_worker_passes_total", "Passes of workers over their pods: idle, acted or failed.", "result"),
		containers:         counters(r, "kubelet_started_containers_total", "Tries to start a container.", "container_type"),
		containerErrors:    counters(r, "kubelet_started_containers_errors_total", "Tries to start a container that failed, by reason.", "container_type", "code"),
		terminated:         counters(r, "kubelet_terminated_containers_total", "Containers that ended, by exit code and reason.", "container_type", "exit_code", "reason"),
		rejections:         counters(r, "kubelet_admission_rejections_total", "Times a pod found no place on the node and had to wait, by reason.", "reason"),
		panics:             counter(r, "monopod_pod_panics_total", "Panics in the agent's work on one pod or manifest, which only that one had to bear: each is a fault of monopod."),
		rollbacks:          counter(r, "monopod_rollbacks_total", "New versions of pods that did not become or stay ready, so that the former ones came back."),
		fallbacks:          counter(r, "kubelet_lifecycle_handler_http_fallbacks_total", "Hooks by https that were run by http, since the server does not speak https."),
	}
}

// static is the label of all our pods.
const static = "true"

// PodStart records a try to start a pod.
func (m *Metrics) PodStart(err error) {
	m.pods.started.Inc()
	if err != nil {
		m.pods.startErrors.Inc()
	}
}

// PodAccepted records a new pod with so many regular containers.
func (m *Metrics) PodAccepted(containers int) {
	m.pods.perPod.Observe(float64(containers))
}

// PodRunning records that a new pod runs, which was read at one time from a file that changed at
// another; zero: not known.
func (m *Metrics) PodRunning(read, changed time.Time) {
	if !read.IsZero() {
		m.pods.startSeconds.Observe(since(read))
	}
	if !changed.IsZero() {
		m.pods.toRunning.Observe(since(changed))
	}
}

// PodRestarted records that a removed pod came back before it was gone.
func (m *Metrics) PodRestarted() {
	m.pods.restarted.WithLabelValues(static).Inc()
}

// Stray records a pod of ours that no manifest defines.
func (m *Metrics) Stray() {
	m.pods.strays.Inc()
}

// Panic records a panic in the work on one pod or manifest.
func (m *Metrics) Panic() {
	m.pods.panics.Inc()
}

// RolledBack records that the former version of a pod comes back.
func (m *Metrics) RolledBack() {
	m.pods.rollbacks.Inc()
}

// Operation is what a worker's pass is for.
type Operation string

const (
	Create     Operation = "create"
	Update     Operation = "update"
	Sync       Operation = "sync"
	Kill       Operation = "kill"
	Terminated Operation = "terminated"
)

// Outcome is the result of a worker's pass.
type Outcome string

const (
	Idle   Outcome = "idle" // nothing was to be done
	Acted  Outcome = "acted"
	Failed Outcome = "failed"
)

// Pass observes a worker's pass that started at start.
func (m *Metrics) Pass(op Operation, start time.Time, result Outcome) {
	m.pods.workerSeconds.WithLabelValues(string(op)).Observe(since(start))
	m.pods.passes.WithLabelValues(string(result)).Inc()
}

// WorkerStart observes the start of a worker for a manifest that was read at that
// time.
func (m *Metrics) WorkerStart(read time.Time) {
	m.pods.workerStartSeconds.Observe(since(read))
}

// containerType distinguishes init containers, sidecars among them, from the others.
func containerType(init bool) string {
	if init {
		return "init_container"
	}
	return "container"
}

// ContainerStart records a try to start a container. code is the reason of its failure, in the
// kubelet's words, "" if it did not fail.
func (m *Metrics) ContainerStart(init bool, code string) {
	m.pods.containers.WithLabelValues(containerType(init)).Inc()
	if code != "" {
		m.pods.containerErrors.WithLabelValues(containerType(init), code).Inc()
	}
}

// endReasons are the reasons with a label of their own; runtimes may have others.
var endReasons = map[string]bool{"Completed": true, "Error": true, "OOMKilled": true, "StartError": true,
	"ContainerCannotRun": true, "ContainerStatusUnknown": true, "Unknown": true}

// ContainerEnded records a container's end.
func (m *Metrics) ContainerEnded(init bool, code int32, reason string) {
	if !endReasons[reason] {
		reason = other
	}
	exit := other
	if code >= 0 && code <= 255 {
		exit = strconv.Itoa(int(code))
	}
	m.pods.terminated.WithLabelValues(containerType(init), exit, reason).Inc()
}

// Rejected records that a pod is not admitted.
func (m *Metrics) Rejected(reason string) {
	m.pods.rejections.WithLabelValues(rejection(reason)).Inc()
}

// HTTPFallback records a hook that continued without https.
func (m *Metrics) HTTPFallback() {
	m.pods.fallbacks.Inc()
}
