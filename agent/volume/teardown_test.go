package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is still there", path)
	}
}

func kept(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func TestTearDownRemovesThePod(t *testing.T) {
	root := testRoot(t)
	p := testPod(emptyDir("disk"), inMemory("memory", "1Mi"))
	m := setUpPod(t, root, p)
	_, err := TerminationLog(root, "u1", "main")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(m["memory"].HostPath, "f"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(root, "pods/u1/pod.json"), nil, 0o600))
	sub := filepath.Join(m["disk"].HostPath, "a")
	must(t, os.MkdirAll(filepath.Join(sub, "b"), 0))
	for i := range 600 { // more than one read of the directory
		must(t, os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), nil, 0))
	}
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
	kept(t, filepath.Join(root, "pods"))
	must(t, TearDown(t.Context(), root, "u1"))
	must(t, TearDown(t.Context(), filepath.Join(root, "none"), "u1"))
}

func TestTearDownDoesNotFollowLinks(t *testing.T) {
	root := testRoot(t)
	elsewhere := t.TempDir()
	file := filepath.Join(elsewhere, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	dir := setUpPod(t, root, testPod(emptyDir("data")))["data"].HostPath
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "absolute")))
	must(t, os.Symlink("../../../../../", filepath.Join(dir, "up")))
	must(t, os.Symlink(file, filepath.Join(dir, "file")))
	must(t, os.MkdirAll(filepath.Join(dir, "deep"), 0o700))
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "deep/link")))
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
	kept(t, file)

	must(t, os.Symlink(elsewhere, filepath.Join(root, "pods/u1")))
	if err := TearDown(t.Context(), root, "u1"); err == nil || !strings.HasSuffix(err.Error(), "pods/u1 is not a directory") {
		t.Errorf("a link in the place of the pod: %v", err)
	}
	kept(t, file)
}

// The swap is what a hostile container does between a look at a path and its use.
func TestRemovalSurvivesADirectorySwappedForALink(t *testing.T) {
	root := testRoot(t)
	elsewhere := t.TempDir()
	for i := range 200 {
		must(t, os.WriteFile(filepath.Join(elsewhere, fmt.Sprint(i)), nil, 0o600))
	}
	for range 20 {
		dir := setUpPod(t, root, testPod(emptyDir("data")))["data"].HostPath
		victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
		must(t, os.Mkdir(victim, 0o777))
		must(t, os.Symlink(elsewhere, link))
		ctx, stop := context.WithCancel(t.Context())
		swapped := make(chan struct{})
		go func() {
			defer close(swapped)
			for ctx.Err() == nil {
				unix.Renameat2(unix.AT_FDCWD, victim, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}()
		var err error
		for range 5 { // a swap in between may make one try fail
			if err = TearDown(t.Context(), root, "u1"); err == nil {
				break
			}
		}
		stop()
		<-swapped
		must(t, TearDown(t.Context(), root, "u1"))
	}
	left, err := os.ReadDir(elsewhere)
	if err != nil || len(left) != 200 {
		t.Fatalf("%d of 200 files outside are left, %v", len(left), err)
	}
}

func TestTearDownRefusesForeignMounts(t *testing.T) {
	for _, c := range []struct{ name, at string }{
		{"inside a volume", "volumes/kubernetes.io~empty-dir/data/inner"},
		{"on a volume of the disk", "volumes/kubernetes.io~empty-dir/data"},
		{"beside the volumes", "foreign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			source := t.TempDir()
			must(t, os.WriteFile(filepath.Join(source, "file"), nil, 0o600))
			m := setUpPod(t, root, testPod(emptyDir("data"), inMemory("memory", "1Mi")))
			mine := filepath.Join(m["memory"].HostPath, "file")
			must(t, os.WriteFile(mine, nil, 0o600))
			at := filepath.Join(root, "pods/u1", c.at)
			must(t, os.MkdirAll(at, 0o700))
			must(t, unix.Mount(source, at, "", unix.MS_BIND, ""))
			err := TearDown(t.Context(), root, "u1")
			if err == nil || !strings.Contains(err.Error(), "something is mounted at "+at) {
				t.Errorf("got %v", err)
			}
			kept(t, filepath.Join(source, "file"))
			kept(t, mine) // nothing else was touched either
			must(t, unix.Unmount(at, 0))
			must(t, TearDown(t.Context(), root, "u1"))
			gone(t, filepath.Join(root, "pods/u1"))
			kept(t, filepath.Join(source, "file"))
		})
	}
}

// Even a mount that came after the look at mountinfo is safe.
func TestRemovalStopsAtMounts(t *testing.T) {
	root := testRoot(t)
	source := t.TempDir() // same file system: its device says nothing
	must(t, os.WriteFile(filepath.Join(source, "file"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(root, "pods/u1/a/b"), 0o700))
	must(t, unix.Mount(source, filepath.Join(root, "pods/u1/a/b"), "", unix.MS_BIND, ""))
	err := removeDir(t.Context(), filepath.Join(root, "pods"), "u1")
	if err == nil || !errors.Is(err, disk.ErrMounted) || !strings.Contains(err.Error(), "pods/u1/a/b") {
		t.Errorf("got %v", err)
	}
	kept(t, filepath.Join(source, "file"))
}

func TestDeepTreesNeedFewFiles(t *testing.T) {
	root := testRoot(t)
	dir := setUpPod(t, root, testPod(emptyDir("data")))["data"].HostPath
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range 3000 { // far longer than any path may be
		must(t, unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: was.Max}))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	must(t, TearDown(t.Context(), root, "u1"))
	must(t, EmptyTrash(t.Context(), root))
	if left, err := os.ReadDir(filepath.Join(root, trashDir)); err != nil || len(left) != 0 {
		t.Errorf("%d directories are left in the trash, %v", len(left), err)
	}
	gone(t, filepath.Join(root, "pods/u1"))
}

func TestCheckpointGoesLast(t *testing.T) {
	root := testRoot(t)
	must(t, unix.Mount("tmpfs", root, "tmpfs", 0, "size=1m")) // which lists the newest first
	dir := setUpPod(t, root, testPod(emptyDir("data")))["data"].HostPath
	checkpoint := filepath.Join(root, "pods/u1/pod.json")
	must(t, os.WriteFile(checkpoint, nil, 0o600))
	inner := filepath.Join(dir, "inner")
	must(t, os.Mkdir(inner, 0o700))
	must(t, unix.Mount("tmpfs", inner, "tmpfs", 0, "size=4096"))
	if err := removeDir(t.Context(), filepath.Join(root, "pods"), "u1"); err == nil {
		t.Fatal("removed through a mount")
	}
	kept(t, checkpoint)
}

func TestTearDownStopsWhenCancelled(t *testing.T) {
	root := testRoot(t)
	setUpPod(t, root, testPod(emptyDir("data")))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := TearDown(ctx, root, "u1"); err == nil {
		t.Error("went on")
	}
	kept(t, filepath.Join(root, "pods/u1"))
}

// Somebody may stand in a volume: TearDown neither waits nor gives up.
func TestTearDownOfABusyMount(t *testing.T) {
	root := testRoot(t)
	p := testPod(inMemory("memory", "1Mi"), secret("s"))
	m, err := SetUp(t.Context(), root, p, input())
	must(t, err)
	for _, name := range []string{"memory", "v"} {
		path := filepath.Join(m[name].HostPath, "file")
		must(t, os.WriteFile(path, []byte("x"), 0o600))
		f, err := os.Open(path)
		must(t, err)
		defer f.Close()
		if err := unix.Unmount(m[name].HostPath, unix.UMOUNT_NOFOLLOW); err != unix.EBUSY {
			t.Fatalf("not busy: %v", err)
		}
	}
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
	if below, _ := mountsBelow(root); len(below) > 0 {
		t.Errorf("mounted %v", below)
	}
}

// What happens to a shared mount happens to its peers: the machine keeps its own, and what a container
// mounted in the volume for it.
func TestTearDownOfASharedSubPath(t *testing.T) {
	root, host := testRoot(t), t.TempDir()
	must(t, unix.Mount("tmpfs", host, "tmpfs", 0, "size=65536"))
	defer unix.Unmount(host, unix.MNT_DETACH)
	must(t, unix.Mount("", host, "", unix.MS_SHARED, ""))
	must(t, os.WriteFile(filepath.Join(host, "file"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(host, "inner"), 0o755))
	must(t, Prepare(root, "u1"))
	s := subPathOf(Mount{HostPath: host}, "")
	s.Shared = true
	target, err := subPath(root, "u1", s, newMountTable(PodDir(root, "u1")))
	must(t, err)
	must(t, unix.Mount("tmpfs", filepath.Join(target, "inner"), "tmpfs", 0, "size=65536")) // as the container does
	must(t, os.WriteFile(filepath.Join(host, "inner/file"), nil, 0o600))
	kept(t, filepath.Join(target, "inner/file"))
	for _, busy := range []string{"file", "inner/file"} {
		f, err := os.Open(filepath.Join(target, busy))
		must(t, err)
		defer f.Close()
	}
	must(t, TearDown(t.Context(), root, "u1"))
	gone(t, filepath.Join(root, "pods/u1"))
	kept(t, filepath.Join(host, "file"))
	kept(t, filepath.Join(host, "inner/file"))
	if below, _ := mountsBelow(root); len(below) > 0 {
		t.Errorf("mounted %v", below)
	}
}

// Where there is no room for a directory to exchange it with, all in it goes but the file.
func TestAFolderOfTwoVersionsIsEmptiedOnAFullDisk(t *testing.T) {
	root := testRoot(t)
	dir := setUpPod(t, root, testPod(emptyDir("data")))["data"].HostPath
	must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	of := filepath.Join(root, "pods/u1")
	must(t, errors.Join(os.WriteFile(filepath.Join(of, "pod.json"), nil, 0o600), os.WriteFile(filepath.Join(of, "next.json"), nil, 0o600)))
	must(t, os.WriteFile(filepath.Join(root, trashDir), nil, 0o600)) // in the way, as a full disk is
	must(t, TearDownBut(t.Context(), root, "u1", "next.json"))
	left, err := os.ReadDir(of)
	must(t, err)
	if len(left) != 1 || left[0].Name() != "next.json" {
		t.Errorf("left: %v", left)
	}
}
