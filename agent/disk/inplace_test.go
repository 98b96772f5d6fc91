package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAFileIsWrittenInPlace(t *testing.T) {
	path := write(t, "text", t.TempDir(), "hosts")
	before, err := Lstat(path)
	must(t, err)
	f, err := OpenInPlace(path)
	must(t, err)
	defer f.Close()
	b, err := ReadAll(f, 10)
	must(t, err)
	_, err = f.WriteAt([]byte("news"), 0)
	must(t, err)
	now, err := os.ReadFile(path)
	must(t, err)
	after, err := Lstat(path)
	must(t, err)
	if string(b) != "text" || string(now) != "news" || !before.Same(after) {
		t.Errorf("read %q, wrote %q, the same file: %v", b, now, before.Same(after))
	}
}

func TestNothingElseIsWrittenInPlace(t *testing.T) {
	for name, row := range map[string]struct {
		make func(path, other string) error
		want error
	}{
		"a link":       {func(p, o string) error { return os.Symlink(o, p) }, ErrLink},
		"a pipe":       {func(p, _ string) error { return unix.Mkfifo(p, 0o644) }, ErrNotRegular},
		"a folder":     {func(p, _ string) error { return os.Mkdir(p, 0o755) }, ErrNotRegular},
		"another name": {func(p, o string) error { return os.Link(o, p) }, ErrOtherNames},
		"nothing":      {func(string, string) error { return nil }, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "hosts"), write(t, "text", dir, "other")
			must(t, row.make(path, other))
			done := make(chan error, 1)
			go func() {
				f, err := OpenInPlace(path)
				if err == nil {
					f.Close()
				}
				done <- err
			}()
			select {
			case err := <-done:
				if !errors.Is(err, row.want) {
					t.Errorf("%v, want %v", err, row.want)
				}
			case <-time.After(20 * time.Second):
				t.Error("it waits")
			}
		})
	}
}
