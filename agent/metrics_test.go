package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// samples returns what a scrape shows: values by name and labels, such as
// kubelet_running_containers{container_state="running"}; of histograms how often
// something was observed.
func (r *rig) samples() map[string]float64 {
	r.Helper()
	out := map[string]float64{}
	for _, registry := range []interface {
		Gather() ([]*dto.MetricFamily, error)
	}{r.metrics.Registry(), r.metrics.ProbeRegistry()} {
		families, err := registry.Gather()
		if err != nil {
			r.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				slices.Sort(labels)
				name := f.GetName()
				if len(labels) > 0 {
					name += "{" + strings.Join(labels, ",") + "}"
				}
				out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

// shows checks some of what a scrape shows; 0 is also for what is not there.
func (r *rig) shows(want map[string]float64) {
	r.Helper()
	got := r.samples()
	for name, value := range want {
		if got[name] != value {
			r.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func TestMetricsOfAStart(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:3", time.Second, nil)
		r.Program("i", critest.Exits(0))
		r.want(manifest("a", "img:1"), manifest("b", "img:3", "initContainers: [{name: i, image: \"img:1\"}]", "volumes: [{name: v, emptyDir: {}}]"))
		r.after(10 * time.Second)
		r.shows(map[string]float64{
			"kubelet_started_pods_total":                                            2,
			"kubelet_started_pods_errors_total":                                     0,
			"kubelet_running_pods":                                                  2,
			`kubelet_desired_pods{static="true"}`:                                   2,
			`kubelet_active_pods{static="true"}`:                                    2,
			`kubelet_working_pods{config="desired",lifecycle="sync",static="true"}`: 2,
			"kubelet_containers_per_pod_count":                                      2,
			"kubelet_pod_start_duration_seconds":                                    2,
			"kubelet_pod_worker_start_duration_seconds":                             2,
			"monopod_manifest_to_running_duration_seconds":                          0, // there are no files
			"monopod_manifest_files":                                                2,
			"monopod_event_stream_up":                                               1,
			"monopod_runtime_up":                                                    1,
			`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`:     2,
			`kubelet_run_podsandbox_duration_seconds{runtime_handler=""}`:           2,
			`kubelet_image_pull_duration_seconds{image_size_in_bytes="0-10MB"}`:     1,
		})
		if got := r.samples(); got[`kubelet_pod_worker_duration_seconds{operation_type="create"}`] == 0 || got["kubelet_pleg_relist_duration_seconds"] == 0 ||
			got["kubelet_pleg_last_seen_seconds"] == 0 {
			r.Errorf("passes and relists are not counted: %v", got)
		}
	})
}

func TestMetricsOfACrash(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.ExitsAfter(time.Second, 3))
		r.want(manifest("a", "img:1"))
		r.after(5 * time.Second)
		r.shows(map[string]float64{
			`kubelet_started_containers_total{container_type="container"}`:                                 2,
			`kubelet_terminated_containers_total{container_type="container",exit_code="3",reason="Error"}`: 2,
		})
	})
}

func TestMetricsOfContainersThatEndedBeforeThisAgent(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(0))
		r.want(manifest("a", "img:1", "restartPolicy: Never"))
		r.after(time.Second)
		r.shows(map[string]float64{`kubelet_terminated_containers_total{container_type="container",exit_code="0",reason="Completed"}`: 1})
		r.stop()
		r.after(time.Minute)
		r.start()
		r.want(manifest("a", "img:1", "restartPolicy: Never"))
		r.after(10 * time.Second)
		r.shows(map[string]float64{
			`kubelet_terminated_containers_total{container_type="container",exit_code="0",reason="Completed"}`: 0,
			`kubelet_working_pods{config="desired",lifecycle="terminated",static="true"}`:                      1,
			`kubelet_active_pods{static="true"}`:                                                               0,
			"kubelet_pod_start_duration_seconds":                                                               0,
		})
	})
}

func TestMetricsOfFailures(t *testing.T) {
	live(t, func(r *rig) {
		r.Fault(critest.On("RunPodSandbox").Nth(1).Fail(codes.Unknown, "no network"))
		r.OnPull("absent:1", 0, errors.New("there is no such image"))
		r.want(manifest("a", "absent:1"))
		r.after(15 * time.Second)
		r.shows(map[string]float64{
			"kubelet_started_pods_total":                                                                       2,
			"kubelet_started_pods_errors_total":                                                                1,
			`kubelet_run_podsandbox_errors_total{runtime_handler=""}`:                                          1,
			`kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"}`:                         1,
			`kubelet_started_containers_errors_total{code="ErrImagePull",container_type="container"}`:          2,
			`kubelet_image_pull_duration_seconds{image_size_in_bytes="0-10MB"}`:                                0,
			"kubelet_pod_start_duration_seconds":                                                               0,
			`kubelet_terminated_containers_total{container_type="container",exit_code="0",reason="Completed"}`: 0,
		})
	})
}

func TestMetricsOfRefusedAndWaitingPods(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("a", "img:1", "nodeSelector: {no: where}"))
		r.after(10 * time.Second)
		r.shows(map[string]float64{
			`kubelet_admission_rejections_total{reason="NodeAffinity"}`:                   1,
			`kubelet_desired_pods{static="true"}`:                                         1,
			`kubelet_active_pods{static="true"}`:                                          0,
			`kubelet_working_pods{config="desired",lifecycle="sync",static="true"}`:       0,
			`kubelet_working_pods{config="desired",lifecycle="terminated",static="true"}`: 0,
		})
	})
}

func TestMetricsOfARemoval(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(manifest("a", "img:1"))
		r.want()
		r.after(10 * time.Second)
		r.shows(map[string]float64{`kubelet_working_pods{config="orphan",lifecycle="terminating",static="true"}`: 1})
		r.after(31 * time.Second)
		r.shows(map[string]float64{
			"kubelet_running_pods":                                 0,
			`kubelet_desired_pods{static="true"}`:                  0,
			`kubelet_running_containers{container_state="exited"}`: 0,
		})
	})
}

func TestMetricsOfAPodThatComesBack(t *testing.T) {
	live(t, func(r *rig) {
		fixed := strings.Replace(manifest("a", "img:1"), "{name: a}", "{name: a, uid: my-own-uid}", 1)
		r.want(fixed)
		slow := r.Fault(critest.On("StopContainer").Nth(1).Hang())
		r.want()
		r.want(fixed)
		slow.Release()
		r.after(time.Minute)
		r.expect("default/a-n/c")
		r.shows(map[string]float64{`kubelet_restarted_pods_total{static="true"}`: 1, "kubelet_started_pods_total": 2})
	})
}

func TestMetricsOfStrays(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("a", "img:1"))
		r.stop()
		for _, dir := range []string{"pods", "status"} {
			if err := os.RemoveAll(filepath.Join(r.dir, dir)); err != nil {
				r.Fatal(err)
			}
		}
		r.start()
		r.want()
		r.after(time.Minute)
		r.expect()
		r.shows(map[string]float64{"kubelet_orphaned_runtime_pods_total": 1})
	})
}

func TestMetricsOfAnEventStream(t *testing.T) {
	live(t, func(r *rig) {
		r.after(time.Second) // the stream is open before the pod has its events: the first one counts it
		r.want(manifest("a", "img:1"))
		r.after(time.Second)
		r.shows(map[string]float64{"kubelet_evented_pleg_connection_success_count": 1, "kubelet_evented_pleg_connection_error_count": 0})
		r.Stop()
		r.after(10 * time.Second)
		r.shows(map[string]float64{"kubelet_evented_pleg_connection_error_count": 1, "monopod_event_stream_up": 0, "monopod_runtime_up": 0})
	})
}

func (r *rig) pod(key string) *v1.Pod {
	r.Helper()
	p, ok := r.store.Pod(key)
	if !ok {
		r.Fatalf("nothing is reported of %s", key)
	}
	return p
}

// Series of probes go with their pod.
func TestMetricsOfProbes(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		probed := strings.Replace(manifest("a", "img:1", "terminationGracePeriodSeconds: 1"), "{name: c,", "{name: c, "+
			"livenessProbe: {exec: {command: [liveness]}, periodSeconds: 10}, readinessProbe: {exec: {command: [readiness]}, periodSeconds: 10}, ", 1)
		r.want(probed)
		r.after(35 * time.Second)
		uid := string(r.pod("default/a-n").UID)
		total := func(kind, result string) string {
			return fmt.Sprintf("prober_probe_total{container=%q,namespace=%q,pod=%q,pod_uid=%q,probe_type=%q,result=%q}", "c", "default", "a-n", uid, kind, result)
		}
		took := func(kind string) string {
			return fmt.Sprintf("prober_probe_duration_seconds{container=%q,namespace=%q,pod=%q,probe_type=%q}", "c", "default", "a-n", kind)
		}
		got := r.samples()
		if n := got[total("Liveness", "successful")]; n < 3 || n != got[took("Liveness")] || got[total("Liveness", "failed")] != 0 {
			r.Errorf("of liveness: %v", got)
		}
		if n := got[total("Readiness", "failed")]; n < 3 || got[took("Readiness")] != 0 {
			r.Errorf("of readiness: %v", got)
		}
		r.want()
		r.after(time.Minute)
		for name := range r.samples() {
			if strings.HasPrefix(name, "prober_") {
				r.Errorf("left: %s", name)
			}
		}
	})
}
