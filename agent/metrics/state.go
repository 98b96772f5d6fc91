package metrics

import "github.com/prometheus/client_golang/prometheus"

// State is the agent's state at the time of a scrape.
type State struct {
	RuntimeUp   bool // the container runtime answers
	EventStream bool // it streams container events

	RunningPods int            // with a sandbox that is ready
	Containers  map[string]int // ours in the runtime, by state: running, exited, created, unknown

	DesiredPods int // that manifests give
	ActivePods  int // on the node, and not ended
	WorkingPods map[Working]int
	Volumes     map[Volumes]int
	Logs        []Log

	SharedCPUs int // of which no container has any for itself, but for those that are reserved
	OwnCPUs    int // that containers have for themselves

	ManifestFiles                    int
	HeldFiles                        int // of which an earlier version still runs
	ManifestErrors, ManifestWarnings int
}

// Working is a group of pods with the same progress.
type Working struct {
	Lifecycle string // sync, terminating or terminated
	Config    string // desired or orphan
}

// Volumes is a group of volumes.
type Volumes struct {
	Plugin string // the kubelet's name, such as empty-dir
	Actual bool   // actual containers; else: desired
}

// Log is how much of the disk the logs of one container take.
type Log struct {
	Namespace, Pod, UID, Container string
	Bytes                          int64
}

// stateCollector makes metrics of a State.
type stateCollector struct {
	state func() State

	up, stream                       *prometheus.Desc
	runningPods, runningContainers   *prometheus.Desc
	desired, active, mirror, working *prometheus.Desc
	volumes, logs                    *prometheus.Desc
	sharedCPUs, ownCPUs              *prometheus.Desc
	files, held, problems            *prometheus.Desc
}

func newStateCollector(state func() State) *stateCollector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &stateCollector{
		state:             state,
		up:                d("monopod_runtime_up", "1 if the container runtime answered when it was asked last."),
		stream:            d("monopod_event_stream_up", "1 while the container runtime streams events; without, pods are looked at each second."),
		runningPods:       d("kubelet_running_pods", "Pods with a sandbox that is ready."),
		runningContainers: d("kubelet_running_containers", "Containers of our pods in the runtime, by state.", "container_state"),
		desired:           d("kubelet_desired_pods", "Pods that manifests give.", "static"),
		active:            d("kubelet_active_pods", "Pods that have a place on the node and have not ended.", "static"),
		mirror:            d("kubelet_mirror_pods", "Mirror pods; there are none without an API server."),
		working:           d("kubelet_working_pods", "Pods that are taken care of, by how far they are.", "lifecycle", "config", "static"),
		volumes:           d("volume_manager_total_volumes", "Volumes of pods, by kind: those to be made, and those that are.", "plugin_name", "state"),
		logs:              d("kubelet_container_log_filesystem_used_bytes", "What the logs of running containers take of the disk, rotated ones included.", "uid", "namespace", "pod", "container"),
		sharedCPUs:        d("kubelet_cpu_manager_shared_pool_size_millicores", "Thousandths of cpus that no container has for itself, but for those that are reserved; 0 without a policy."),
		ownCPUs:           d("kubelet_cpu_manager_exclusive_cpu_allocation_count", "Cpus that containers have for themselves."),
		files:             d("monopod_manifest_files", "Files of manifests."),
		held:              d("monopod_manifest_files_held", "Files of manifests of which an earlier version runs on, as the present one is not good or has no place."),
		problems:          d("monopod_manifest_problems", "What is wrong with manifests: errors, and warnings with which pods run all the same.", "severity"),
	}
}

// Describe is for the registry.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.stream, c.runningPods, c.runningContainers, c.desired, c.active, c.mirror, c.working,
		c.volumes, c.logs, c.sharedCPUs, c.ownCPUs, c.files, c.held, c.problems} {
		out <- d
	}
}

// Collect is for the registry.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	if c.state == nil {
		return
	}
	s := c.state()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.up, truth(s.RuntimeUp))
	gauge(c.stream, truth(s.EventStream))
	gauge(c.runningPods, float64(s.RunningPods))
	for state, n := range s.Containers {
		gauge(c.runningContainers, float64(n), state)
	}
	gauge(c.desired, float64(s.DesiredPods), static)
	gauge(c.active, float64(s.ActivePods), static)
	gauge(c.mirror, 0)
	for w, n := range s.WorkingPods {
		gauge(c.working, float64(n), w.Lifecycle, w.Config, static)
	}
	for v, n := range s.Volumes {
		gauge(c.volumes, float64(n), pluginPrefix+v.Plugin, v.world())
	}
	for _, l := range s.Logs {
		gauge(c.logs, float64(l.Bytes), l.UID, l.Namespace, l.Pod, l.Container)
	}
	gauge(c.sharedCPUs, 1000*float64(s.SharedCPUs))
	gauge(c.ownCPUs, float64(s.OwnCPUs))
	gauge(c.files, float64(s.ManifestFiles))
	gauge(c.held, float64(s.HeldFiles))
	gauge(c.problems, float64(s.ManifestErrors), "error")
	gauge(c.problems, float64(s.ManifestWarnings), "warning")
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (v Volumes) world() string {
	if v.Actual {
		return "actual_state_of_world"
	}
	return "desired_state_of_world"
}
