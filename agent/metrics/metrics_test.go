package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// everything returns metrics in which everything has happened once.
func everything(t *testing.T) *Metrics {
	t.Helper()
	m := New(Config{NodeName: "n", Version: "v1", CgroupV2: true, State: func() State {
		return State{
			RuntimeUp: true, EventStream: true, RunningPods: 3, Containers: map[string]int{"running": 1, "exited": 0, "created": 0, "unknown": 0},
			DesiredPods: 2, ActivePods: 2, WorkingPods: map[Working]int{{"sync", "desired"}: 2}, Volumes: map[Volumes]int{{"empty-dir", true}: 1, {"empty-dir", false}: 2},
			Logs: []Log{{"ns", "p", "u", "c", 7}}, ManifestFiles: 2, HeldFiles: 1, ManifestErrors: 4, ManifestWarnings: 5, SharedCPUs: 3, OwnCPUs: 2,
		}
	}})
	now := time.Now()
	for name := range operationTypes {
		m.Call(name, time.Second, errors.New("it failed"))
	}
	m.Sandbox("", now, errors.New("it failed"))
	m.Relist(now, now, nil)
	m.Look(now)
	m.Stream()
	m.StreamEnded()
	m.Event(now)
	m.PodStart(errors.New("it failed"))
	m.PodAccepted(1)
	m.PodRunning(now, now)
	m.PodRestarted()
	m.Stray()
	m.Pass(Sync, now, Idle)
	m.WorkerStart(now)
	m.ContainerStart(true, "ErrImagePull")
	m.ContainerEnded(false, 1, "Error")
	m.Rejected("NodePorts")
	m.HTTPFallback()
	m.Pulled(time.Second, 1<<20)
	m.Collected("age")
	m.Cgroup(CgroupCreate, now)
	m.Volume("empty-dir", now, nil)
	m.Pinned(2)
	m.NotPinned()
	for _, method := range []string{"list", "get", "get_allocatable"} {
		m.PodResources(method, true)
	}
	m.Probe(Probed{"Liveness", "c", "p", "ns", "u"}, ProbeSuccessful, time.Second)
	m.Serve(true, []string{"/pods"}, http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/pods", nil))
	return m
}

func gather(t *testing.T, g prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	all, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The names, types, labels and buckets are a contract with dashboards.
func TestNamesAreThoseOfTheKubelet(t *testing.T) {
	m := everything(t)
	var got strings.Builder
	for _, g := range []prometheus.Gatherer{m.Registry(), m.ProbeRegistry()} {
		for _, f := range gather(t, g) {
			if strings.HasPrefix(f.GetName(), "go_") { // these are the library's
				continue
			}
			got.WriteString(describe(f) + "\n")
		}
	}
	const golden = "testdata/metrics.txt"
	if os.Getenv("MONOPOD_UPDATE") == "1" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%swant\n%s(MONOPOD_UPDATE=1 writes what it is now)", got.String(), want)
	}
}

// describe returns a family as "name type {labels} buckets".
func describe(f *dto.MetricFamily) string {
	var labels []string
	for _, l := range f.Metric[0].Label {
		labels = append(labels, l.GetName())
	}
	slices.Sort(labels)
	s := fmt.Sprintf("%s %s {%s}", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ","))
	for _, b := range f.Metric[0].GetHistogram().GetBucket() {
		s += fmt.Sprintf(" %.5g", b.GetUpperBound())
	}
	return s
}

// lintExceptions are names that Prometheus would choose otherwise, and the
// kubelet did not.
var lintExceptions = map[string]bool{
	"kubelet_evented_pleg_connection_error_count":             true,
	"kubelet_evented_pleg_connection_success_count":           true,
	"kubelet_cpu_manager_exclusive_cpu_allocation_count":      true,
	"kubelet_pod_resources_endpoint_requests_list":            true,
	"kubelet_pod_resources_endpoint_requests_get":             true,
	"kubelet_pod_resources_endpoint_requests_get_allocatable": true,
	"kubelet_pod_resources_endpoint_errors_list":              true,
	"kubelet_pod_resources_endpoint_errors_get":               true,
	"kubelet_pod_resources_endpoint_errors_get_allocatable":   true,
}

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	m, needed := everything(t), map[string]bool{}
	for _, g := range []prometheus.Gatherer{m.Registry(), m.ProbeRegistry()} {
		problems, err := testutil.GatherAndLint(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			needed[p.Metric] = true
			if !lintExceptions[p.Metric] {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	}
	for name := range lintExceptions {
		if !needed[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// What the kubelet's alerts and dashboards of kubernetes-mixin ask for.
func TestDashboardsFindWhatTheyAskFor(t *testing.T) {
	have := map[string]bool{}
	for _, f := range gather(t, everything(t).Registry()) {
		have[f.GetName()] = true
	}
	for _, name := range []string{
		"kubelet_node_name", "kubelet_running_pods", "kubelet_running_containers", "volume_manager_total_volumes",
		"kubelet_runtime_operations_total", "kubelet_runtime_operations_errors_total", "kubelet_runtime_operations_duration_seconds",
		"kubelet_pod_start_duration_seconds", "kubelet_pod_worker_duration_seconds", "storage_operation_duration_seconds",
		"kubelet_cgroup_manager_duration_seconds", "kubelet_pleg_relist_duration_seconds", "kubelet_pleg_relist_interval_seconds",
		"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines", "kubernetes_build_info",
	} {
		if !have[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// Labels whose values others can choose must not make series without end.
func TestSeriesAreBounded(t *testing.T) {
	rows := []struct {
		name string
		do   func(m *Metrics, k int)
		most int
	}{
		{"calls that the table does not have", func(m *Metrics, k int) { m.Call(fmt.Sprint("New", k), 0, nil) }, 2},
		{"exit codes and reasons of a runtime", func(m *Metrics, k int) { m.ContainerEnded(false, int32(k*1000), fmt.Sprint("why", k)) }, 2},
		{"resources that manifests name", func(m *Metrics, k int) { m.Rejected(fmt.Sprint("OutOfexample.com/", k)) }, 1},
		{"reasons of refusals", func(m *Metrics, k int) { m.Rejected(fmt.Sprint("why", k)) }, 1},
		{"sizes of images", func(m *Metrics, k int) { m.Pulled(0, uint64(k)*1e9) }, 12},
		{"paths that clients ask for", func(m *Metrics, k int) { ask(m, "GET", fmt.Sprint("/metrics/x", k)) }, 3},
		{"methods that clients make up", func(m *Metrics, k int) { ask(m, fmt.Sprint("GET", k), "/pods") }, 3},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m := New(Config{})
			before := series(t, m)
			for k := range 500 {
				row.do(m, k)
			}
			if n := series(t, m) - before; n > row.most || n == 0 {
				t.Errorf("%d series, want at most %d", n, row.most)
			}
		})
	}
}

func ask(m *Metrics, method, path string) {
	m.Serve(false, []string{"/pods", "/metrics"}, http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
}

// series counts what differs by labels, but for what the libraries have.
func series(t *testing.T, m *Metrics) (n int) {
	t.Helper()
	for _, f := range gather(t, m.Registry()) {
		if !strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") && !strings.HasPrefix(f.GetName(), "kubelet_runtime_operations_duration") {
			n += len(f.Metric)
		}
	}
	return n
}

// The times of files and events are the machine's wall clock, which is set back, too.
func TestSumsDoNotGoBackWithTheClock(t *testing.T) {
	m := New(Config{})
	ahead := time.Now().Add(time.Hour).Round(0)
	m.PodRunning(ahead, ahead)
	m.WorkerStart(ahead)
	m.Event(ahead)
	for _, f := range gather(t, m.Registry()) {
		for _, s := range f.Metric {
			if h := s.GetHistogram(); h.GetSampleSum() < 0 {
				t.Errorf("the sum of %s is %v after an observation", f.GetName(), h.GetSampleSum())
			}
		}
	}
}

func TestProbesAreForgottenWithTheirPod(t *testing.T) {
	m := New(Config{})
	for _, pod := range []string{"a", "b"} {
		m.Probe(Probed{"Liveness", "c", pod, "ns", "uid-of-" + pod}, ProbeSuccessful, time.Second)
		m.Probe(Probed{"Liveness", "c", pod, "ns", "uid-of-" + pod}, ProbeFailed, time.Second)
	}
	m.ForgetProbes("ns", "a", "uid-of-a")
	for _, f := range gather(t, m.ProbeRegistry()) {
		for _, s := range f.Metric {
			if strings.Contains(s.String(), `"a"`) || strings.HasPrefix(f.GetName(), "prober") && !strings.Contains(s.String(), `"b"`) {
				t.Errorf("%s: %s", f.GetName(), s)
			}
		}
	}
}
