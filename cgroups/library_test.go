package cgroups_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup2"

	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

// A cgroup whose processes cannot be read, as those of a threaded one, goes with the pod.
// The day that the library removes it too, listing and removal may be left to it.
func TestAThreadedCgroupIsDestroyed(t *testing.T) {
	cfg := cgrouptest.V2(t)
	m := open(t, cfg)
	if err := m.Create(t.Context(), cgroups.Guaranteed, "u1", pod); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Mount, "kubepods/podu1/threaded/cgroup.procs"), 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := cgroup2.Load("/kubepods/podu1", cgroup2.WithMountpoint(cfg.Mount))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Procs(true); err == nil {
		t.Error("the library lists the processes beside it now")
	}
	if g.Delete() == nil {
		t.Fatal("the library removes it now")
	}
	if err := m.Destroy(t.Context(), "u1"); err != nil || len(m.Pods()) > 0 {
		t.Errorf("%v; pods left: %v", err, m.Pods())
	}
}

// Where no cgroup file system is mounted, files are not ours to delete. The library does.
func TestTheLibraryDeletesAnyFile(t *testing.T) {
	mount := t.TempDir()
	file := filepath.Join(mount, "pod/file")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := cgroup2.Load("/pod", cgroup2.WithMountpoint(mount))
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Delete()
	if _, err := os.Stat(file); err == nil {
		t.Error("the library removes empty folders only now")
	}
}
