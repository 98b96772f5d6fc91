//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"monopod/agent/e2e/rig"
)

// countsWhatItDoes checks what a scrape shows against what was done.
func countsWhatItDoes(w *world) {
	w.start()
	w.write("one", patients("readiness", "", []patient{{name: "main", command: waits, probe: "exec: {command: [test, -d, /tmp]}"}}))
	w.write("job", job)
	w.writeFile("bad.yaml", "kind: Pod\n")
	w.running("one")
	w.phase("job", "Failed")
	probes := fmt.Sprintf(`prober_probe_total{container="main",namespace=%q,pod=%q,probe_type="Readiness",result="successful"}`, w.ns, name("one"))
	w.shows("/metrics/probes", map[string]float64{probes: atLeast})
	w.shows("/metrics", map[string]float64{
		"kubelet_running_pods":                                                                         1,
		`kubelet_running_containers{container_state="running"}`:                                        1,
		`kubelet_running_containers{container_state="exited"}`:                                         1,
		"kubelet_started_pods_total":                                                                   2,
		"kubelet_started_pods_errors_total":                                                            0,
		`kubelet_started_containers_total{container_type="container"}`:                                 2,
		`kubelet_terminated_containers_total{container_type="container",exit_code="3",reason="Error"}`: 1,
		`kubelet_working_pods{config="desired",lifecycle="terminated",static="true"}`:                  1,
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`:                            2,
		`kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"}`:                     0,
		"kubelet_pod_start_duration_seconds":                                                           atLeast,
		"monopod_manifest_to_running_duration_seconds":                                                 atLeast,
		`kubelet_cgroup_manager_duration_seconds{operation_type="create"}`:                             atLeast,
		"kubelet_pleg_relist_duration_seconds":                                                         atLeast,
		"monopod_manifest_files":                                                                       3,
		`monopod_manifest_problems{severity="error"}`:                                                  atLeast,
		"monopod_runtime_up":                                                                           1,
		fmt.Sprintf("kubelet_node_name{node=%q}", rig.Node):                                            1,
		"process_resident_memory_bytes":                                                                atLeast,
	})
	w.remove("one")
	w.until("the pod is gone", func() error {
		if left := w.containers("one"); len(left) > 0 {
			return fmt.Errorf("%d containers", len(left))
		}
		return nil
	})
	w.shows("/metrics/probes", map[string]float64{probes: 0})
}

// job fails at once.
const job = `
  restartPolicy: Never
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh, -c, exit 3]}
`

// atLeast stands for any value above 0.
const atLeast = -1

// shows waits until a scrape shows these values; 0 is also for what is not there.
func (w *world) shows(path string, want map[string]float64) {
	w.Helper()
	w.until(path+" shows what was done", func() error {
		got, err := w.scrape(path)
		if err != nil {
			return err
		}
		for name, value := range want {
			if now := got[name]; now != value && (value != atLeast || now <= 0) {
				return fmt.Errorf("%s is %v, want %v", name, now, value)
			}
		}
		return nil
	})
}

// scrape returns values by name and labels but for uids; of histograms how often
// something was observed.
func (w *world) scrape(path string) (map[string]float64, error) {
	code, body, err := w.agent.Get(w.Context(), path)
	if err != nil || code != 200 {
		return nil, fmt.Errorf("%s: %d %.100q %w", path, code, body, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return nil, rig.Final(err)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetName() != "pod_uid" {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			slices.Sort(labels)
			full := name
			if len(labels) > 0 {
				full += "{" + strings.Join(labels, ",") + "}"
			}
			out[full] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out, nil
}
