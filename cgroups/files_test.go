package cgroups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFilesAreReadWholeWithoutSpaceAround(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cgroup.procs")
	for _, text := range []string{"", "1", strings.Repeat("12345\n", 1000) + "1"} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(path); got != text || err != nil {
			t.Errorf("%d bytes read of %d: %v", len(got), len(text), err)
		}
	}
}

func TestWriteNeverCreatesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.shares")
	if err := write(path, "2"); !errors.Is(err, fs.ErrNotExist) || err.Error() != "open "+path+": no such file or directory" {
		t.Error(err)
	}
	if exists(path) {
		t.Error("it is there")
	}
	if err := os.WriteFile(path, []byte("1024\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(path, "2"); err != nil {
		t.Error(err)
	}
	if got, err := read(path); got != "2" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The kernel's refusals are read in logs.
func TestARefusedValueNamesTheFile(t *testing.T) {
	if err := write("/dev/full", "2"); err == nil || err.Error() != "write /dev/full: no space left on device" {
		t.Error(err)
	}
}

// A look at all levels comes with each list of the runtime.
func TestACountOfCgroupsAllocatesLittle(t *testing.T) {
	mount := t.TempDir()
	m := &Manager{names: Names{Driver: Cgroupfs, Root: "/"}, tree: &tree{made: slices.Repeat([]string{mount}, 6)}}
	if err := os.MkdirAll(filepath.Join(mount, "kubepods", "burstable"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(mount, "kubepods", "besteffort"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Counts(); !ok {
		t.Skip("folders are not counted here")
	}
	if n := testing.AllocsPerRun(10, func() { m.Counts() }); n > 60 {
		t.Errorf("%v allocations", n)
	}
}
