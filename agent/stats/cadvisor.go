package stats

import (
	"context"
	"runtime"
	"time"

	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	v1 "k8s.io/api/core/v1"
)

// metric is a metric of /metrics/cadvisor with one value for each cgroup.
type metric struct {
	name, kind, help string
	of               func(*use) *uint64
	per              float64
	more             []label
}

// The names and labels are cAdvisor's, as a kubelet serves them.
var metrics = []metric{
	{"container_cpu_cfs_periods_total", counter, "Periods in which a cpu limit counted.", func(u *use) *uint64 { return u.Periods }, 1, nil},
	{"container_cpu_cfs_throttled_periods_total", counter, "Periods in which the cpu limit was reached.", func(u *use) *uint64 { return u.Throttled }, 1, nil},
	{"container_cpu_cfs_throttled_seconds_total", counter, "Time that tasks waited because of the cpu limit.", func(u *use) *uint64 { return u.ThrottledFor }, 1e9, nil},
	{"container_cpu_system_seconds_total", counter, "Time of the processors used in the kernel.", func(u *use) *uint64 { return u.System }, 1e9, nil},
	{"container_cpu_usage_seconds_total", counter, "Time of the processors that was used.", func(u *use) *uint64 { return u.CPU }, 1e9, []label{{"cpu", "total"}}},
	{"container_cpu_user_seconds_total", counter, "Time of the processors used outside the kernel.", func(u *use) *uint64 { return u.User }, 1e9, nil},
	{"container_memory_cache", gauge, "Memory that holds parts of files, in bytes.", func(u *use) *uint64 { return u.Cache }, 1, nil},
	{"container_memory_failcnt", counter, "How often the memory limit was reached.", func(u *use) *uint64 { return u.MemoryFails }, 1, nil},
	{"container_memory_mapped_file", gauge, "Memory of mapped files, in bytes.", func(u *use) *uint64 { return u.Mapped }, 1, nil},
	{"container_memory_max_usage_bytes", gauge, "The most memory that was in use, in bytes.", func(u *use) *uint64 { return u.MemoryPeak }, 1, nil},
	{"container_memory_rss", gauge, "Memory that holds no part of a file, in bytes.", func(u *use) *uint64 { return u.RSS }, 1, nil},
	{"container_memory_swap", gauge, "Swap in use, in bytes.", func(u *use) *uint64 { return u.Swap }, 1, nil},
	{"container_memory_usage_bytes", gauge, "Memory in use, in bytes.", func(u *use) *uint64 { return u.Memory }, 1, nil},
	{"container_memory_working_set_bytes", gauge, "Memory in use that is not easily freed, in bytes.", func(u *use) *uint64 { return u.WorkingSet }, 1, nil},
	{"container_oom_events_total", counter, "Processes killed for lack of memory.", func(u *use) *uint64 { return u.OOMKills }, 1, nil},
	{"container_processes", gauge, "Processes.", func(u *use) *uint64 { return u.Processes }, 1, nil},
	{"container_threads", gauge, "Threads.", func(u *use) *uint64 { return u.Threads }, 1, nil},
	{"container_threads_max", gauge, "Threads that there may be.", func(u *use) *uint64 { return u.MaxThreads }, 1, nil},
	{"container_spec_cpu_period", gauge, "Period of the cpu limit, in microseconds.", func(u *use) *uint64 { return u.Period }, 1, nil},
	{"container_spec_cpu_quota", gauge, "The cpu limit in each period, in microseconds.", func(u *use) *uint64 { return u.Quota }, 1, nil},
	{"container_spec_cpu_shares", gauge, "Weight where processors are scarce.", func(u *use) *uint64 { return u.Shares }, 1, nil},
	{"container_spec_memory_limit_bytes", gauge, "The memory limit in bytes, 0 without one.", func(u *use) *uint64 { return orZero(u.MemoryLimit) }, 1, nil},
	{"container_pressure_cpu_waiting_seconds_total", counter, "Time in which tasks waited for a processor.", stalled(cpuPressure, some), 1e6, nil},
	{"container_pressure_cpu_stalled_seconds_total", counter, "Time in which all tasks waited for a processor.", stalled(cpuPressure, full), 1e6, nil},
	{"container_pressure_memory_waiting_seconds_total", counter, "Time in which tasks waited for memory.", stalled(memoryPressure, some), 1e6, nil},
	{"container_pressure_memory_stalled_seconds_total", counter, "Time in which all tasks waited for memory.", stalled(memoryPressure, full), 1e6, nil},
	{"container_pressure_io_waiting_seconds_total", counter, "Time in which tasks waited for disks.", stalled(ioPressure, some), 1e6, nil},
	{"container_pressure_io_stalled_seconds_total", counter, "Time in which all tasks waited for disks.", stalled(ioPressure, full), 1e6, nil},
}

func orZero(n *uint64) *uint64 {
	if n == nil {
		return known(0)
	}
	return n
}

func cpuPressure(u *use) *cgroup2.PSIStats    { return u.CPUPressure }
func memoryPressure(u *use) *cgroup2.PSIStats { return u.MemoryPressure }
func ioPressure(u *use) *cgroup2.PSIStats     { return u.IOPressure }
func some(p *cgroup2.PSIStats) uint64         { return p.GetSome().GetTotal() }
func full(p *cgroup2.PSIStats) uint64         { return p.GetFull().GetTotal() }

func stalled(of func(*use) *cgroup2.PSIStats, which func(*cgroup2.PSIStats) uint64) func(*use) *uint64 {
	return func(u *use) *uint64 {
		if p := of(u); p != nil {
			return known(which(p))
		}
		return nil
	}
}

// diskMetrics are the metrics with a value for each device.
var diskMetrics = []struct {
	name, help string
	of         func(diskUse) uint64
}{
	{"container_fs_reads_bytes_total", "Bytes read from the device.", func(d diskUse) uint64 { return d.ReadBytes }},
	{"container_fs_reads_total", "Reads from the device.", func(d diskUse) uint64 { return d.Reads }},
	{"container_fs_writes_bytes_total", "Bytes written to the device.", func(d diskUse) uint64 { return d.WriteBytes }},
	{"container_fs_writes_total", "Writes to the device.", func(d diskUse) uint64 { return d.Writes }},
}

// linkMetrics are the metrics with a value for each network interface.
var linkMetrics = []struct {
	name, help string
	of         func(link) uint64
}{
	{"container_network_receive_bytes_total", "Bytes received.", func(l link) uint64 { return l.RxBytes }},
	{"container_network_receive_errors_total", "Packets received with errors.", func(l link) uint64 { return l.RxErrs }},
	{"container_network_receive_packets_dropped_total", "Packets received and dropped.", func(l link) uint64 { return l.RxDrop }},
	{"container_network_receive_packets_total", "Packets received.", func(l link) uint64 { return l.RxPackets }},
	{"container_network_transmit_bytes_total", "Bytes sent.", func(l link) uint64 { return l.TxBytes }},
	{"container_network_transmit_errors_total", "Packets that could not be sent.", func(l link) uint64 { return l.TxErrs }},
	{"container_network_transmit_packets_dropped_total", "Packets dropped instead of sent.", func(l link) uint64 { return l.TxDrop }},
	{"container_network_transmit_packets_total", "Packets sent.", func(l link) uint64 { return l.TxPackets }},
}

// subject is what metrics are about: the machine, a pod, its sandbox or a container.
type subject struct {
	labels  []label
	use     *use // nil: only its network is known
	links   []link
	started time.Time
}

func subjectOf(container, id, image, name string, pod *v1.Pod) subject {
	namespace, podName := "", ""
	if pod != nil {
		namespace, podName = pod.Namespace, pod.Name
	}
	return subject{labels: []label{{"container", container}, {"id", id}, {"image", image}, {"name", name}, {"namespace", namespace}, {"pod", podName}}}
}

// with returns the subject's labels with additional ones.
func (s *subject) with(more ...label) []label {
	return append(s.labels[:len(s.labels):len(s.labels)], more...)
}

func subjects(s *sample, booted time.Time) []subject {
	root := subjectOf("", "/", "", "", nil)
	root.use, root.links, root.started = s.Node, s.Links, booted
	all := []subject{root}
	for _, n := range s.System {
		one := subjectOf("", n.Path, "", "", nil)
		one.use = n.use
		all = append(all, one)
	}
	for _, p := range s.Pods {
		pod := subjectOf("", p.Path, "", "", p.Pod)
		pod.use = p.Use
		if p.Status.StartTime != nil {
			pod.started = p.Status.StartTime.Time
		}
		network := subjectOf("", p.SandboxPath, "", p.Sandbox, p.Pod)
		network.links = p.Links
		all = append(all, pod, network)
		for _, k := range p.Containers {
			one := subjectOf(k.Name, k.Path, k.Image, k.ID, p.Pod)
			one.use, one.started = k.Use, k.started()
			all = append(all, one)
		}
	}
	return all
}

// Cadvisor returns /metrics/cadvisor: the metrics that the kernel's files and the runtime provide.
func (c *Collector) Cadvisor(ctx context.Context) ([]byte, error) {
	s, err := c.look(ctx, false)
	if err != nil {
		return nil, err
	}
	var t text
	all := subjects(s, c.config.Booted)
	for i := range metrics {
		metrics[i].write(&t, all)
	}
	writeFailures(&t, all)
	writeDisks(&t, all)
	writeLinks(&t, all, s.Node.Time)
	t.family("container_start_time_seconds", gauge, "When it started, in seconds since 1970.")
	for _, one := range all {
		if one.started.Unix() > 0 {
			t.value("container_start_time_seconds", one.labels, float64(one.started.Unix()), time.Time{})
		}
	}
	t.family("container_last_seen", gauge, "When it was seen last, in seconds since 1970.")
	for _, one := range all {
		if one.use != nil {
			t.value("container_last_seen", one.labels, float64(one.use.Time.Unix()), one.use.Time)
		}
	}
	t.family("machine_cpu_cores", gauge, "Logical processors of the machine.")
	t.value("machine_cpu_cores", nil, float64(runtime.NumCPU()), time.Time{})
	if total := s.Node.MemoryLimit; total != nil {
		t.family("machine_memory_bytes", gauge, "Memory of the machine, in bytes.")
		t.value("machine_memory_bytes", nil, float64(*total), time.Time{})
	}
	return t.Bytes(), nil
}

// write writes the metric for all subjects that have it.
func (m *metric) write(t *text, all []subject) {
	t.family(m.name, m.kind, m.help)
	for _, one := range all {
		if one.use == nil {
			continue
		}
		if n := m.of(one.use); n != nil {
			t.value(m.name, one.with(m.more...), float64(*n)/m.per, one.use.Time)
		}
	}
}

func writeFailures(t *text, all []subject) {
	const name = "container_memory_failures_total"
	t.family(name, counter, "Page faults.")
	for _, one := range all {
		if one.use == nil {
			continue
		}
		for _, f := range []struct {
			kind string
			n    *uint64
		}{{"pgfault", one.use.Faults}, {"pgmajfault", one.use.MajorFaults}} {
			if f.n != nil {
				t.value(name, one.with(label{"failure_type", f.kind}, label{"scope", "hierarchy"}), float64(*f.n), one.use.Time)
			}
		}
	}
}

func writeDisks(t *text, all []subject) {
	for _, m := range diskMetrics {
		t.family(m.name, counter, m.help)
		for _, one := range all {
			if one.use == nil {
				continue
			}
			for _, d := range one.use.Disks {
				t.value(m.name, one.with(label{"device", d.Device}), float64(m.of(d)), one.use.Time)
			}
		}
	}
}

func writeLinks(t *text, all []subject, at time.Time) {
	for _, m := range linkMetrics {
		t.family(m.name, counter, m.help)
		for _, one := range all {
			for _, l := range one.links {
				t.value(m.name, one.with(label{"interface", l.Name}), float64(m.of(l)), at)
			}
		}
	}
}
