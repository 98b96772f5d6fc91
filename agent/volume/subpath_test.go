package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func subPathOf(m Mount, path string) SubPathMount {
	return SubPathMount{Volume: "data", Mount: m, Container: "main", Path: path}
}

func TestSubPathShowsAPartOfTheVolume(t *testing.T) {
	root := testRoot(t)
	defer syscall.Umask(syscall.Umask(0o077))
	m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
	target, err := subPath(root, "u1", subPathOf(m, "a/./b/"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	if target != filepath.Join(root, "pods/u1/volume-subpaths/data/main/0") {
		t.Error(target)
	}
	must(t, os.WriteFile(filepath.Join(m.HostPath, "a/b/file"), []byte("x"), 0o600))
	kept(t, filepath.Join(target, "file"))
	if mode(t, filepath.Join(m.HostPath, "a")) != 0o777|fs.ModeDir || mode(t, target) != 0o777|fs.ModeDir {
		t.Errorf("modes %v %v", mode(t, filepath.Join(m.HostPath, "a")), mode(t, target))
	}
	again, err := subPath(root, "u1", subPathOf(m, "a/b"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	if below, _ := mountsBelow(again); again != target || len(below) != 1 {
		t.Errorf("mounted again: %v", below)
	}
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
}

func TestSubPathOfAnotherFileReplacesTheMount(t *testing.T) {
	root := testRoot(t)
	m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
	must(t, os.WriteFile(filepath.Join(m.HostPath, "file"), []byte("old"), 0o644))
	target, err := subPath(root, "u1", subPathOf(m, "file"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	must(t, os.Remove(filepath.Join(m.HostPath, "file")))
	must(t, os.WriteFile(filepath.Join(m.HostPath, "file"), []byte("new"), 0o644))
	_, err = subPath(root, "u1", subPathOf(m, "file"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	if b, _ := os.ReadFile(target); string(b) != "new" {
		t.Errorf("reads %q", b)
	}
	must(t, os.Remove(filepath.Join(m.HostPath, "file")))
	must(t, os.Mkdir(filepath.Join(m.HostPath, "file"), 0o755))
	_, err = subPath(root, "u1", subPathOf(m, "file"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	if !mode(t, target).IsDir() {
		t.Error("a directory shows as a file")
	}
	must(t, TearDown(t.Context(), root, "u1"))
}

func TestTearDownLeavesTheHostPathOfASubPath(t *testing.T) {
	root := testRoot(t)
	host := t.TempDir()
	inner := filepath.Join(host, "sub/inner")
	must(t, os.MkdirAll(inner, 0o755))
	must(t, os.WriteFile(filepath.Join(host, "sub/file"), nil, 0o600))
	must(t, unix.Mount("tmpfs", host, "tmpfs", 0, "size=65536")) // a file system of its own,
	defer unix.Unmount(host, unix.MNT_DETACH)
	must(t, unix.Mount("", host, "", unix.MS_SHARED, "")) // mounts on which reach copies of it
	must(t, os.MkdirAll(inner, 0o755))
	must(t, os.WriteFile(filepath.Join(host, "sub/file"), nil, 0o600))
	must(t, Prepare(root, "u1"))
	target, err := subPath(root, "u1", subPathOf(Mount{HostPath: host}, "sub"), newMountTable(PodDir(root, "u1")))
	must(t, err)
	must(t, unix.Mount("tmpfs", inner, "tmpfs", 0, "size=65536"))
	must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o600))
	kept(t, filepath.Join(target, "inner/file"))
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
	kept(t, filepath.Join(host, "sub/file"))
	kept(t, filepath.Join(inner, "file"))
}

// An edit of a container's mountPropagation restarts the container, and the pod keeps its binds. What
// the machine or the container mounted in the volume meanwhile stays there.
func TestASubPathFollowsItsMountPropagation(t *testing.T) {
	for _, order := range [][]bool{{false, true, true, false}, {true, false, false, true, false}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			root := testRoot(t)
			host := t.TempDir()
			inner := filepath.Join(host, "sub/inner")
			must(t, unix.Mount("tmpfs", host, "tmpfs", 0, "size=65536"))
			defer unix.Unmount(host, unix.MNT_DETACH)
			must(t, unix.Mount("", host, "", unix.MS_SHARED, ""))
			must(t, os.MkdirAll(inner, 0o755))
			must(t, Prepare(root, "u1"))
			s := subPathOf(Mount{HostPath: host}, "sub")
			for k, shared := range order {
				s.Shared = shared
				target, err := subPath(root, "u1", s, newMountTable(PodDir(root, "u1")))
				must(t, err)
				below, err := mountsBelow(target)
				must(t, err)
				if len(below) == 0 || below[0].shared != shared {
					t.Errorf("try %d: mounted %+v", k, below)
				}
				if k == 0 {
					must(t, unix.Mount("tmpfs", inner, "tmpfs", 0, "size=65536"))
					defer unix.Unmount(inner, unix.MNT_DETACH)
					must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o600))
					kept(t, filepath.Join(target, "inner/file"))
				}
				kept(t, filepath.Join(inner, "file"))
			}
			must(t, TearDown(t.Context(), root, "u1"))
			kept(t, filepath.Join(inner, "file"))
		})
	}
}

func TestSubPathStaysInItsVolume(t *testing.T) {
	outside := t.TempDir()
	must(t, os.Mkdir(filepath.Join(outside, "dir"), 0o755))
	const out = ": a link in the volume leads out of it"
	for _, c := range []struct {
		name, path string
		prepare    func(t *testing.T, volume string)
		want       string // what failed; "": nothing
		why        string
	}{
		{"backward", "../x", nil, "prepare subPath", ""},
		{"backward within", "a/../b", nil, "prepare subPath", ""},
		{"absolute", "/etc", nil, "prepare subPath", ""},
		{"a link out", "link", func(t *testing.T, v string) { must(t, os.Symlink(outside, filepath.Join(v, "link"))) }, "prepare subPath", out},
		{"through a link out", "link/dir", func(t *testing.T, v string) { must(t, os.Symlink(outside, filepath.Join(v, "link"))) }, "prepare subPath", out},
		{"made through a link out", "link/new", func(t *testing.T, v string) { must(t, os.Symlink(outside, filepath.Join(v, "link"))) }, "create subPath directory", out},
		{"a relative link out", "link", func(t *testing.T, v string) { must(t, os.Symlink("../..", filepath.Join(v, "link"))) }, "prepare subPath", out},
		{"a dangling link", "link", func(t *testing.T, v string) { must(t, os.Symlink("none", filepath.Join(v, "link"))) }, "prepare subPath", ": no such file or directory"},
		{"below a file", "file/x", func(t *testing.T, v string) { must(t, os.WriteFile(filepath.Join(v, "file"), nil, 0o600)) }, "create subPath directory", ": not a directory"},
		{"a name that is too long", strings.Repeat("a", 256), nil, "create subPath directory", ": file name too long"},
		{"a link within", "link/new", func(t *testing.T, v string) {
			must(t, os.Mkdir(filepath.Join(v, "real"), 0o755))
			must(t, os.Symlink("real", filepath.Join(v, "link")))
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
			if c.prepare != nil {
				c.prepare(t, m.HostPath)
			}
			_, err := subPath(root, "u1", subPathOf(m, c.path), newMountTable(PodDir(root, "u1")))
			want := "failed to " + c.want + ` for volumeMount "data" of container "main"` + c.why
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || err.Error() != want):
				t.Errorf("got %v", err)
			case err != nil && strings.Contains(err.Error(), root):
				t.Errorf("shows a path of the machine: %v", err)
			}
			must(t, TearDown(t.Context(), root, "u1"))
		})
	}
	if e, _ := os.ReadDir(outside); len(e) != 1 {
		t.Errorf("made %v outside", e)
	}
}

func TestOpenElementRefusesLinks(t *testing.T) {
	root := t.TempDir()
	must(t, os.Symlink("/", filepath.Join(root, "link")))
	dir, err := os.Open(root)
	must(t, err)
	defer dir.Close()
	if _, err := openElement(dir, "link"); err != unix.ELOOP {
		t.Errorf("got %v", err)
	}
}

// The swap is what a hostile container does between the check and the mount.
func TestSubPathSurvivesASwap(t *testing.T) {
	root := testRoot(t)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
	dir, link := filepath.Join(m.HostPath, "dir"), filepath.Join(m.HostPath, "link")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Symlink(outside, link))
	ctx, stop := context.WithCancel(t.Context())
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		for ctx.Err() == nil {
			unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	made := 0
	for range 2000 {
		target, err := subPath(root, "u1", subPathOf(m, "dir"), newMountTable(PodDir(root, "u1")))
		if err != nil {
			continue
		}
		made++
		if _, err := os.Lstat(filepath.Join(target, "secret")); err == nil {
			t.Error("shows what is outside")
			break
		}
	}
	stop()
	<-swapped
	if made == 0 {
		t.Error("no try succeeded: the test proves nothing")
	}
	must(t, TearDown(t.Context(), root, "u1"))
	kept(t, filepath.Join(outside, "secret"))
}

// The kubelet gives what it makes the volume's whole mode.
func TestASubPathHasTheModeOfItsVolume(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, want := range []fs.FileMode{0o777, 0o750, 0o777 | fs.ModeSticky, 0o770 | fs.ModeSetgid, 0o775 | fs.ModeSetgid | fs.ModeSticky} {
		t.Run(want.String(), func(t *testing.T) {
			root := testRoot(t)
			m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
			must(t, os.Chmod(m.HostPath, want))
			_, err := subPath(root, "u1", subPathOf(m, "a/b"), newMountTable(PodDir(root, "u1")))
			must(t, err)
			for _, dir := range []string{"a", "a/b"} {
				if got := mode(t, filepath.Join(m.HostPath, dir)); got != want|fs.ModeDir {
					t.Errorf("%s has %v", dir, got)
				}
			}
			must(t, TearDown(t.Context(), root, "u1"))
		})
	}
}

// The kernel escapes a space in its table of mounts, and none of the other characters that are
// blank.
func TestABlankNameOfASubPathHidesNoMount(t *testing.T) {
	for _, name := range []string{"a b", "a\u3000b", "a\u00a0b", "a\vb", "a\rb", "a\tb - c"} {
		root := testRoot(t)
		m := setUpPod(t, root, testPod(emptyDir("data")))["data"]
		for range 2 {
			_, err := SubPaths(root, "u1", []SubPathMount{subPathOf(m, name)})
			must(t, err)
		}
		if below, err := mountsBelow(PodDir(root, "u1")); err != nil || len(below) != 1 {
			t.Errorf("%q: mounted are %v, %v", name, below, err)
		}
		must(t, TearDown(t.Context(), root, "u1"))
		must(t, EmptyTrash(t.Context(), root))
	}
}
