package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, text string, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// strangers makes a folder with all that may stand where a file should be.
func strangers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, "text", dir, "file")
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, "file"), filepath.Join(dir, "link")))
	must(t, os.Symlink("file", filepath.Join(dir, "relative")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Symlink(dir, filepath.Join(dir, "up")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666))
	must(t, unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o666, 0))
	return dir
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := strangers(t)
	for name, want := range map[string]error{
		"file": nil, "folder": ErrNotRegular, "link": ErrLink, "relative": ErrLink, "dangling": ErrLink, "up": ErrLink,
		"pipe": ErrNotRegular, "socket": ErrNotRegular, "none": fs.ErrNotExist,
	} {
		for depth := range 2 {
			f, err := Open(filepath.Join(dir, name), depth)
			if !errors.Is(err, want) {
				t.Errorf("%s, depth %d: %v", name, depth, err)
			}
			if err == nil {
				f.Close()
			} else if !strings.Contains(err.Error(), filepath.Join(dir, name)) {
				t.Errorf("%s: %q does not say where", name, err)
			}
		}
	}
}

// An old kernel, or a filter, knows no openat2.
func TestFoldersAreOpenedWithoutOpenat2(t *testing.T) {
	dir := t.TempDir()
	write(t, "text", dir, "pod", "c", "0.log")
	must(t, os.Symlink("c", filepath.Join(dir, "pod", "d")))
	for name, want := range map[string]error{"c": nil, "d": ErrLink, "none": fs.ErrNotExist} {
		top, err := OpenDir(dir, 0)
		must(t, err)
		d, err := top.walk([]string{"pod", name})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f, err := d.Open("0.log")
			must(t, err)
			f.Close()
			d.Close()
		}
	}
}

// Only those of the folders may be links that others cannot write to.
func TestLinksAreFollowedAboveTheDepthOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, "text", dir, "logs", "pod", "c", "0.log")
	must(t, os.Symlink("logs", filepath.Join(dir, "a")))
	must(t, os.Symlink("pod", filepath.Join(dir, "logs", "b")))
	must(t, os.Symlink("c", filepath.Join(dir, "logs", "pod", "d")))
	for path, want := range map[string]error{"logs/pod/c": nil, "a/pod/c": nil, "logs/b/c": ErrLink, "logs/pod/d": ErrLink, "logs/pod/none": fs.ErrNotExist} {
		f, err := Open(filepath.Join(dir, path, "0.log"), 2)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

// To open some devices does something: a watchdog's resets the machine later.
func TestADeviceIsNotOpened(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("needs root to make a device")
	}
	path := filepath.Join(t.TempDir(), "device")
	must(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(511, 4095)))) // there is no such driver: ENXIO when opened
	if _, err := Open(path, 1); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}

func TestTailReadsNoMoreThanItShall(t *testing.T) {
	dir := t.TempDir()
	huge := write(t, "", dir, "huge")
	must(t, os.Truncate(huge, 1<<40))
	for path, want := range map[string]string{write(t, "", dir, "empty"): "", write(t, "abc", dir, "short"): "abc", write(t, "abcdefg", dir, "long"): "defg", huge: "\x00\x00\x00\x00"} {
		if b, err := Tail(path, 0, 4); string(b) != want || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

func TestFilesThatAreTooLargeAreNotRead(t *testing.T) {
	dir := t.TempDir()
	for size, want := range map[int64]bool{0: true, configLimit: true, configLimit + 1: false, 1 << 40: false} {
		path := write(t, "", dir, "file")
		must(t, os.Truncate(path, size))
		b, err := ReadConfig(path)
		if (err == nil) != want || len(b) > configLimit+1 || want && int64(len(b)) != size {
			t.Errorf("read %d bytes of %d: %v", len(b), size, err)
		}
	}
}

// A container has the file and does to it what it may.
func TestEnsureFileReplacesWhatIsNotAsItShallBe(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for name, row := range map[string]struct {
		do    func(path string) error
		stays bool
	}{
		"nothing":    {func(string) error { return nil }, true},
		"same text":  {func(p string) error { return os.WriteFile(p, []byte("text"), 0) }, true},
		"other text": {func(p string) error { return os.WriteFile(p, []byte("tex_"), 0) }, false},
		"longer":     {func(p string) error { return os.WriteFile(p, []byte("text\n"), 0) }, false},
		"empty":      {func(p string) error { return os.Truncate(p, 0) }, false},
		"huge":       {func(p string) error { return os.Truncate(p, 1<<40) }, false},
		"unreadable": {func(p string) error { return os.Chmod(p, 0) }, false},
		"open":       {func(p string) error { return os.Chmod(p, 0o666) }, false},
		"setuid":     {func(p string) error { return os.Chmod(p, 0o644|fs.ModeSetuid) }, false},
		"given away": {func(p string) error { return os.Chown(p, 1234, -1) }, false},
		"a link":     {func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p)) }, false},
		"a pipe":     {func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o644)) }, false},
		"half made":  {func(p string) error { return os.Symlink("/etc/none", filepath.Join(filepath.Dir(p), ".hosts.new")) }, true},
		"both": {func(p string) error {
			return errors.Join(os.Truncate(p, 0), os.Symlink("/etc/none", filepath.Join(filepath.Dir(p), ".hosts.new")))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "hosts")
			must(t, EnsureFile(path, []byte("text"), 0o644))
			held, err := os.Open(path)
			must(t, err)
			defer held.Close()
			must(t, row.do(path))
			must(t, EnsureFile(path, []byte("text"), 0o644))
			now, err := os.Lstat(path)
			must(t, err)
			if b, err := os.ReadFile(path); string(b) != "text" || err != nil || now.Mode() != 0o644 {
				t.Errorf("%q, %v, %v", b, now.Mode(), err)
			}
			before, err := held.Stat()
			must(t, err)
			if os.SameFile(before, now) != row.stays {
				t.Errorf("the file stays: %v", !row.stays)
			}
		})
	}
}

// A container that owns the file may take a lease on it, which would let others
// wait for as long as /proc/sys/fs/lease-break-time says.
func TestALeaseIsNotWaitedFor(t *testing.T) {
	path := write(t, "text", t.TempDir(), "hosts")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatalf("no lease: %v: the test proves nothing", err)
	}
	done := make(chan error, 1)
	go func() { done <- EnsureFile(path, []byte("text"), 0o644) }()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Error("it waits")
	}
}
