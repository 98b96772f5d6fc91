package node

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

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

func TestKernelVersions(t *testing.T) {
	for release, want := range map[string]Kernel{"6.1.0-13-amd64": {6, 1}, "4.19": {4, 19}, "5.15-rc1": {5, 15}, "x": {}} {
		if got := parseKernel(release); got != want {
			t.Errorf("%s: %v, want %v", release, got, want)
		}
	}
}
