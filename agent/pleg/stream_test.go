package pleg

import (
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/agent/wake"
	"monopod/manifests"
)

func TestAnEventWakesTheWorkerOfItsPodAlone(t *testing.T) {
	const uid = "0123456789abcdef0123456789abcdef"
	web := map[string]string{podspec.LabelInstance: "i", podspec.LabelPodNamespace: "default", podspec.LabelPodName: "web-n1", podspec.LabelPodUID: uid}
	with := func(label, value string) map[string]string {
		other := map[string]string{label: value}
		for k, v := range web {
			if k != label {
				other[k] = v
			}
		}
		return other
	}
	for _, row := range []struct {
		about  string
		labels map[string]string
		wakes  int
	}{
		{"its pod", web, 1},
		{"another pod", with(podspec.LabelPodName, "db-n1"), 0},
		{"a pod of another instance", with(podspec.LabelInstance, "j"), 0},
		{"labels that no pod has", with(podspec.LabelPodUID, "../../etc"), 0},
		{"no pod", nil, 0},
	} {
		t.Run(row.about, func(t *testing.T) {
			w, slot := &Watch{Marks: &checkpoint.Marks{Instance: "i"}}, wake.New()
			w.Workers.Add(manifests.Key{Namespace: "default", Name: "web-n1"}, slot)
			w.event(&rt.ContainerEventResponse{PodSandboxStatus: &rt.PodSandboxStatus{Labels: row.labels}})
			if len(slot) != row.wakes {
				t.Errorf("the worker is woken %d times, not %d", len(slot), row.wakes)
			}
		})
	}
}
