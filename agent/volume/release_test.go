package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReleaseRemovesVolumesAndNothingElse(t *testing.T) {
	root := testRoot(t)
	m := setUpPod(t, root, testPod(emptyDir("disk"), inMemory("memory", "1Mi")))
	log, err := TerminationLog(root, "u1", "main")
	must(t, err)
	_, err = SubPaths(root, "u1", []SubPathMount{{Volume: "disk", Container: "main", Mount: m["disk"], Path: "sub"}})
	must(t, err)
	deep := m["disk"].HostPath
	for range 100 {
		deep = filepath.Join(deep, "d")
	}
	must(t, os.MkdirAll(deep, 0o700))
	dir := PodDir(root, "u1")
	must(t, os.WriteFile(filepath.Join(dir, "pod.json"), nil, 0o600))
	if !HasVolumes(root, "u1") {
		t.Error("it has no volumes while it runs")
	}
	for range 2 {
		must(t, Release(t.Context(), root, "u1"))
	}
	if HasVolumes(root, "u1") {
		t.Error("it has volumes still")
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if text := strings.Join(left, " "); text != "containers pod.json" {
		t.Errorf("left: %s", text)
	}
	kept(t, log)
	must(t, Release(t.Context(), root, "none"))
}

func TestReleaseRefusesForeignMounts(t *testing.T) {
	root := testRoot(t)
	dir := setUpPod(t, root, testPod(emptyDir("disk")))["disk"].HostPath
	inner := filepath.Join(dir, "inner")
	must(t, os.Mkdir(inner, 0o700))
	must(t, unix.Mount("tmpfs", inner, "tmpfs", 0, ""))
	must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o600))
	if err := Release(t.Context(), root, "u1"); err == nil || !strings.Contains(err.Error(), "something is mounted at "+inner) {
		t.Errorf("a foreign mount: %v", err)
	}
	kept(t, filepath.Join(inner, "file"))
}
