package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
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
			if got := allocatable(capacity, amounts(row.reserved...)); !equalAmounts(got, amounts(row.want...)) {
				t.Errorf("got %v", got)
			}
			if !equalAmounts(capacity, amounts(row.capacity...)) {
				t.Errorf("the capacity itself was changed: %v", capacity)
			}
		})
	}
}

func TestOnlineCPUs(t *testing.T) {
	for text, want := range map[string]int64{"0\n": 1, "0-3\n": 4, "0,2-3,7\n": 4, "": int64(runtime.NumCPU()), "3-1": int64(runtime.NumCPU()), "x": int64(runtime.NumCPU())} {
		path := filepath.Join(t.TempDir(), "online")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := onlineCPUs(path); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := onlineCPUs(filepath.Join(t.TempDir(), "none")); got != int64(runtime.NumCPU()) {
		t.Errorf("without the file: %d", got)
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
	if got := hugePages(dir); !equalAmounts(got, amounts("hugepages-2Mi", "6Mi", "hugepages-1Gi", "0")) {
		t.Errorf("got %v", got)
	}
}

func TestThisMachineHasSomething(t *testing.T) {
	f, err := readFacts(nodeSettings{Root: t.TempDir(), NodeName: "node1", NodeLabels: map[string]string{"disk": "ssd"}})
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

func TestKernelVersions(t *testing.T) {
	for release, want := range map[string]kernel{"6.1.0-13-amd64": {6, 1}, "4.19": {4, 19}, "5.15-rc1": {5, 15}, "x": {}} {
		if got := parseKernel(release); got != want {
			t.Errorf("%s: %v, want %v", release, got, want)
		}
	}
}
