package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A container can make millions of files.
func TestEachHoldsFewNamesInMemory(t *testing.T) {
	dir := t.TempDir()
	for n := range 4000 {
		must(t, os.Symlink("x", fmt.Sprintf("%s/%0200d", dir, n)))
	}
	d, err := OpenDir(dir, 1)
	must(t, err)
	defer d.Close()
	enough := errors.New("enough")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := d.Each(func(string) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 300_000 {
		t.Errorf("one name takes %d bytes", n)
	}
	seen := 0
	must(t, d.Each(func(string) error { seen++; return nil }))
	if seen != 4000 {
		t.Errorf("saw %d", seen)
	}
}

// A scrape of the metrics lists two folders of each pod.
func TestListingsUseTheBufferOfEarlierOnes(t *testing.T) {
	dir := t.TempDir()
	all, _ := spent(func() {
		for range 100 {
			must(t, Each(dir, 1, func(string) error { return nil }))
		}
	})
	if all > 100*4<<10 { // the race detector has a pool drop one in four
		t.Errorf("a listing takes %d bytes", all/100)
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	d, err := OpenDir(strangers(t), 1)
	must(t, err)
	defer d.Close()
	for _, name := range []string{"", ".", "..", "folder/x", "/etc/passwd", "a\x00b"} {
		_, e1 := d.Open(name)
		_, e2 := d.OpenDir(name)
		_, e3 := d.Create(name, 0o600)
		_, e4 := d.Stat(name)
		for k, err := range []error{e1, e2, e3, e4, d.Remove(name), d.Mkdir(name, 0o700), d.Rename("file", name), d.Rename(name, "x"), d.Replace("file", name), d.SetTime(name, time.Now())} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q, %d: %v", name, k, err)
			}
		}
	}
}

func TestCreateWritesToNewFilesOnly(t *testing.T) {
	dir := strangers(t)
	d, err := OpenDir(dir, 1)
	must(t, err)
	defer d.Close()
	for _, name := range []string{"link", "pipe", "dangling", "new", "file"} {
		f, err := d.Create(name, 0o600)
		must(t, err)
		f.Close()
		if s, err := d.Stat(name); err != nil || !s.IsRegular() || s.Size() != 0 {
			t.Errorf("%s: %v, %v", name, s.Mode, err)
		}
		if name == "link" {
			if b, _ := os.ReadFile(filepath.Join(dir, "file")); string(b) != "text" {
				t.Errorf("the link's file reads %q", b)
			}
		}
	}
	if _, err := d.Create("folder", 0o600); err == nil {
		t.Error("made in place of a folder")
	}
}

func TestRenameReplacesNothing(t *testing.T) {
	dir := strangers(t)
	d, err := OpenDir(dir, 1)
	must(t, err)
	defer d.Close()
	write(t, "new", dir, "a")
	for _, to := range []string{"file", "link", "dangling", "pipe", "folder"} {
		if err := d.Rename("a", to); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", to, err)
		}
	}
	must(t, d.Replace("a", "link"))
	if b, _ := os.ReadFile(filepath.Join(dir, "file")); string(b) != "text" {
		t.Errorf("what the link led to reads %q", b)
	}
}

func TestMakeDirsMakesNothingBehindLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(dir, "a")))
	must(t, os.Mkdir(filepath.Join(dir, "b"), 0o755))
	must(t, os.Symlink(outside, filepath.Join(dir, "b", "c")))
	for _, path := range []string{"a/c", "b/c"} {
		if made, err := MakeDirs(filepath.Join(dir, path), 2, 0o755); !errors.Is(err, ErrLink) || made != nil {
			t.Errorf("%s: %s, %v", path, made, err)
		}
	}
	if all, _ := os.ReadDir(outside); len(all) != 0 {
		t.Errorf("made %v", all)
	}
	made, err := MakeDirs(filepath.Join(dir, "d", "e"), 2, 0o755)
	must(t, err)
	if fmt.Sprint(made) != fmt.Sprintf("[%[1]s/d/e %[1]s/d]", dir) {
		t.Errorf("made %s", made)
	}
}
