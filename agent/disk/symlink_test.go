package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestALinkIsMadeReadAndNotFollowed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	d, err := OpenDir(dir, 0)
	must(t, err)
	defer d.Close()
	must(t, d.Symlink("link", "../else\nwhere"))
	must(t, d.Symlink("file", "link")) // in the place of what was there
	again, err := d.Again()
	must(t, err)
	defer again.Close()
	for name, want := range map[string]string{"link": "../else\nwhere", "file": "link"} {
		if target, err := again.Readlink(name); target != want || err != nil {
			t.Errorf("%s leads to %q: %v", name, target, err)
		}
	}
	for _, wrong := range []string{"..", "a/b", ""} {
		if err := d.Symlink(wrong, "x"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("a link %q: %v", wrong, err)
		}
	}
	if err := d.Symlink("nul", "a\x00b"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a link to a name that is none: %v", err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	if err := d.Symlink("folder", "x"); err == nil {
		t.Error("a folder is replaced by a link")
	}
}
