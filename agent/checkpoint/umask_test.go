package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestTheUmaskChangesNoModesOfTheRootDir(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "lib", "monopod")
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, path := range []string{filepath.Dir(dir), dir, r.Path("pods")} {
		if i, err := os.Stat(path); err != nil || i.Mode() != fs.ModeDir|0o750 {
			t.Errorf("%s: %v, %v", path, i.Mode(), err)
		}
	}
}
