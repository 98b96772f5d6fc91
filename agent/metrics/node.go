package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeMetrics are about images, cgroups and volumes.
type nodeMetrics struct {
	pullSeconds    *prometheus.HistogramVec
	collected      *prometheus.CounterVec
	cgroupSeconds  *prometheus.HistogramVec
	storageSeconds *prometheus.HistogramVec

	shutdownStart, shutdownEnd prometheus.Gauge

	pinnings, pinningErrors prometheus.Counter
	podResources            podResourcesMetrics
}

func newNodeMetrics(r *prometheus.Registry) nodeMetrics {
	return nodeMetrics{
		pullSeconds:    histograms(r, pulling, "kubelet_image_pull_duration_seconds", "How long pulls of images took, by size of the image.", "image_size_in_bytes"),
		collected:      counters(r, "kubelet_image_garbage_collected_total", "Images that were removed because of their age or for space.", "reason"),
		cgroupSeconds:  histograms(r, usual, "kubelet_cgroup_manager_duration_seconds", "How long it took to make, write or remove cgroups.", "operation_type"),
		storageSeconds: histograms(r, mounting, "storage_operation_duration_seconds", "How long it took to make a volume, by its kind.", "volume_plugin", "operation_name", "status", "migrated"),

		shutdownStart: gauge(r, "kubelet_graceful_shutdown_start_time_seconds", "When the last shutdown that pods stopped for began, in seconds since 1970; 0: never."),
		shutdownEnd:   gauge(r, "kubelet_graceful_shutdown_end_time_seconds", "When all pods had stopped for it; 0: not yet."),

		pinnings:      counter(r, "kubelet_cpu_manager_pinning_requests_total", "Times a container was to get cpus for itself."),
		pinningErrors: counter(r, "kubelet_cpu_manager_pinning_errors_total", "Times it did not get them, and its pod had to wait."),
		podResources:  newPodResourcesMetrics(r),
	}
}

// other is a label's value for everything without one of its own.
const other = "other"

// imageSizes are the upper bounds of the label for an image's size, in bytes.
var imageSizes = []struct {
	below uint64
	label string
}{
	{10e6, "0-10MB"}, {100e6, "10MB-100MB"}, {500e6, "100MB-500MB"}, {1e9, "500MB-1GB"},
	{5e9, "1GB-5GB"}, {10e9, "5GB-10GB"}, {20e9, "10GB-20GB"}, {30e9, "20GB-30GB"},
	{40e9, "30GB-40GB"}, {60e9, "40GB-60GB"}, {100e9, "60GB-100GB"},
}

func imageSize(bytes uint64) string {
	for _, s := range imageSizes {
		if bytes <= s.below {
			return s.label
		}
	}
	return "GT100GB"
}

// Pulled records an image that was pulled.
func (m *Metrics) Pulled(took time.Duration, bytes uint64) {
	m.node.pullSeconds.WithLabelValues(imageSize(bytes)).Observe(took.Seconds())
}

// Collected records an image that was removed for its age or for space.
func (m *Metrics) Collected(reason string) {
	m.node.collected.WithLabelValues(reason).Inc()
}

// Shutdown records when the last shutdown of the machine began, and when its pods had
// stopped; zero: never, or not yet.
func (m *Metrics) Shutdown(start, end time.Time) {
	m.node.shutdownStart.Set(unixSeconds(start))
	m.node.shutdownEnd.Set(unixSeconds(end))
}

// Pinned records that containers got CPUs for themselves.
func (m *Metrics) Pinned(containers int) { m.node.pinnings.Add(float64(containers)) }

// NotPinned records that a container did not get CPUs for itself.
func (m *Metrics) NotPinned() {
	m.node.pinnings.Inc()
	m.node.pinningErrors.Inc()
}

// unixSeconds returns the seconds since 1970; 0 for the zero time.
func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// Operations on cgroups.
const (
	CgroupCreate  = "create"
	CgroupUpdate  = "update"
	CgroupDestroy = "destroy"
)

// Cgroup observes an operation on cgroups that started at start.
func (m *Metrics) Cgroup(operation string, start time.Time) {
	m.node.cgroupSeconds.WithLabelValues(operation).Observe(since(start))
}

// Volume observes the set-up of a volume that started at start. plugin is one of
// the kubelet's names, such as empty-dir.
func (m *Metrics) Volume(plugin string, start time.Time, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	m.node.storageSeconds.WithLabelValues(pluginPrefix+plugin, "volume_mount", status, "false").Observe(since(start))
}

const pluginPrefix = "kubernetes.io/"

// rejections are the reasons with a label of their own.
var rejections = map[string]bool{"AppArmor": true, "PodOSSelectorNodeLabelDoesNotMatch": true, "PodOSNotSupported": true,
	"SysctlForbidden": true, "SupplementalGroupsPolicyNotSupported": true, "NodeAffinity": true, "NodePorts": true, "UIDInUse": true,
	"OutOfcpu": true, "OutOfmemory": true, "OutOfephemeral-storage": true, "OutOfpods": true}

// rejection returns the label of a reason: manifests may name resources, and so
// reasons, without end.
func rejection(reason string) string {
	switch {
	case rejections[reason]:
		return reason
	case strings.HasPrefix(reason, "OutOf"):
		return "OutOfExtendedResources"
	}
	return "Other"
}
