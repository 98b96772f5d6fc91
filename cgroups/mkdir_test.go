package cgroups

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Who watches containers need not be root to read their cgroups.
func TestTheUmaskChangesNoModesOfCgroups(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "pod")
	if err := mkdir(dir); err != nil {
		t.Fatal(err)
	}
	if i, err := os.Stat(dir); err != nil || i.Mode() != fs.ModeDir|0o755 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
}
