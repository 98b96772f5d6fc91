package agent

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/node"
	"monopod/agent/podspec"
)

func TestAllocatable(t *testing.T) {
	rows := []struct {
		name                     string
		capacity, reserved, want []string
	}{
		{"all that there is", []string{"cpu", "2", "memory", "4Gi", "pods", "110"}, nil, []string{"cpu", "2", "memory", "4Gi", "pods", "110"}},
		{"less what is reserved", []string{"cpu", "2", "memory", "4Gi"}, []string{"cpu", "500m", "memory", "1Gi"}, []string{"cpu", "1500m", "memory", "3Gi"}},
		{"huge pages are no memory", []string{"memory", "4Gi", "hugepages-2Mi", "512Mi", "hugepages-1Gi", "1Gi"}, nil,
			[]string{"memory", "2560Mi", "hugepages-2Mi", "512Mi", "hugepages-1Gi", "1Gi"}},
		{"never below nothing", []string{"cpu", "1", "memory", "1Gi"}, []string{"cpu", "2", "memory", "2Gi"}, []string{"cpu", "0", "memory", "0"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			capacity := amounts(row.capacity...)
			if got := node.Allocatable(capacity, amounts(row.reserved...)); !podspec.EqualAmounts(got, amounts(row.want...)) {
				t.Errorf("got %v", got)
			}
			if !podspec.EqualAmounts(capacity, amounts(row.capacity...)) {
				t.Errorf("the capacity itself was changed: %v", capacity)
			}
		})
	}
}

func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	for name, count := range map[string]string{"hugepages-2048kB": "3\n", "hugepages-1048576kB": "0\n", "hugepages-64kB": "x\n", "other": "9\n"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(count), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := node.HugePages(dir); !podspec.EqualAmounts(got, amounts("hugepages-2Mi", "6Mi", "hugepages-1Gi", "0")) {
		t.Errorf("got %v", got)
	}
}

func TestThisMachineHasSomething(t *testing.T) {
	f, err := node.ReadFacts(node.NodeSettings{Root: t.TempDir(), NodeName: "node1", NodeLabels: map[string]string{"disk": "ssd"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "pods"} {
		capacity, allocatable := f.Capacity[name], f.Allocatable[name]
		if allocatable.Sign() <= 0 || allocatable.Cmp(capacity) > 0 {
			t.Errorf("%s: %s of %s", name, allocatable.String(), capacity.String())
		}
	}
	if f.Labels["kubernetes.io/hostname"] != "node1" || f.Labels["beta.kubernetes.io/os"] != "linux" || f.Labels["disk"] != "ssd" || f.Kernel.Major < 3 {
		t.Errorf("labels %v, kernel %v", f.Labels, f.Kernel)
	}
}
