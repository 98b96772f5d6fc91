package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inMemory is a folder on a file system of its own, with names that mean nothing to the disk.
func inMemory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=100m,nr_inodes=0"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// nest makes folders of that name in each other, as a container can: no path is as long. In
// each there is a file, before and behind the folder in the listing.
func nest(t *testing.T, dir, name string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mknodat(at, "first", unix.S_IFREG|0o600, 0))
		must(t, unix.Mkdirat(at, name, 0o700))
		must(t, unix.Mknodat(at, "last", unix.S_IFREG|0o600, 0))
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
}

func opened(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := OpenDir(dir, 0)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// spent calls do and returns how many bytes it allocated, and how many are in use behind it.
func spent(do func()) (all, kept uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.HeapSys - min(before.HeapSys, after.HeapSys)
}

func TestAWalkComesByEachFolderTwiceAndByAllElseOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, "", dir, "a", "b", "file")
	write(t, "", dir, "file")
	must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "mount"), 0o700))
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, unix.Mount(t.TempDir(), filepath.Join(dir, "mount"), "", unix.MS_BIND, "")) // its device says nothing
	defer unix.Unmount(filepath.Join(dir, "mount"), 0)
	var seen []string
	must(t, Walk(t.Context(), opened(t, dir), func(f Found) error {
		path, _ := filepath.Rel(dir, f.In.Path(f.Name))
		seen = append(seen, fmt.Sprint([]string{"leaf", "enter", "leave", "mounted"}[f.Step], " ", path, " ", f.Depth))
		return nil
	}))
	at := func(what string) int { return slices.Index(seen, what) }
	for _, row := range [][]string{
		{"enter a 1", "enter a/b 2", "leaf a/b/file 3", "leave a/b 2", "leave a 1"},
		{"enter empty 1", "leave empty 1"}, {"leaf file 1"}, {"leaf link 1"}, {"leaf pipe 1"}, {"mounted mount 1"},
	} {
		for k, what := range row {
			if at(what) < 0 || k > 0 && at(what) < at(row[k-1]) {
				t.Errorf("%q is not among %q, or in another order", what, seen)
			}
		}
	}
	if len(seen) != 11 {
		t.Errorf("%d steps: %q", len(seen), seen)
	}
}

func TestAWalkOfDeepFoldersTakesLittleAndTimeByTheirNumber(t *testing.T) {
	const depth = 100_000
	dir := inMemory(t)
	nest(t, dir, strings.Repeat("d", 250), depth)
	leaves, left, most, open := 0, 0, 0, 0
	all, kept := spent(func() {
		must(t, Walk(t.Context(), opened(t, dir), func(f Found) error {
			switch f.Step {
			case Leaf:
				leaves++
			case Leave:
				left++
				if f.Name == "" || len(f.Folder.path) > len(dir)+pathLimit+300 {
					t.Fatalf("%q is left at %d, in a path of %d bytes", f.Name, f.Depth, len(f.Folder.path))
				}
			}
			if most = max(most, f.Depth); f.Depth == depth && f.Step == Enter {
				fds, err := os.ReadDir("/proc/self/fd")
				must(t, err)
				open = len(fds)
			}
			return nil
		}))
	})
	if leaves != 2*depth || left != depth || most != depth {
		t.Errorf("%d leaves, %d folders, %d deep", leaves, left, most)
	}
	if open > maxOpen+30 {
		t.Errorf("%d files are open", open)
	}
	if kept > 32<<20 || all > 768<<20 { // a buffer for each listing is 1.6 GB; the race detector has a pool drop one in four
		t.Errorf("%d MB allocated, %d MB kept", all>>20, kept>>20)
	}
}

func TestAWalkOfManyNamesHoldsFew(t *testing.T) {
	const many = 300_000
	dir := inMemory(t)
	d, name := opened(t, dir), strings.Repeat("n", 200)
	for k := range many {
		must(t, unix.Mknodat(d.fd, fmt.Sprint(name, k), unix.S_IFREG|0o600, 0))
	}
	n := 0
	_, kept := spent(func() {
		must(t, Walk(t.Context(), d, func(Found) error { n++; return nil }))
	})
	if n != many || kept > 16<<20 {
		t.Errorf("%d names, %d MB kept", n, kept>>20)
	}
	must(t, d.Empty(t.Context()))
	must(t, d.Each(func(name string) error { return fmt.Errorf("%s is left", name) }))
}

// The way back from far down leads through folders that are not open: what a container
// moves meanwhile must not lead the walk elsewhere.
func TestAWalkThatIsLedAwayEnds(t *testing.T) {
	dir := t.TempDir()
	top := filepath.Join(dir, "top")
	deep := filepath.Join(top, strings.Repeat("d/", maxOpen+10))
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "outside"), 0o700))
	write(t, "", dir, "outside", "file")
	err := Walk(t.Context(), opened(t, top), func(f Found) error {
		if f.Depth == maxOpen+10 && f.Step == Enter {
			must(t, os.Rename(filepath.Join(top, "d/d/d"), filepath.Join(dir, "outside/d")))
		}
		if f.Name == "file" {
			t.Error("the walk came outside")
		}
		return nil
	})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("%v", err)
	}
}

func TestAWalkCanBeCancelled(t *testing.T) {
	dir := t.TempDir()
	for k := range 10 {
		write(t, "", dir, fmt.Sprint(k))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why, n := errors.New("SIGINT"), 0
	err := Walk(ctx, opened(t, dir), func(Found) error { n++; cancel(why); return nil })
	if err != why || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestRemoveAllRemovesDeepFoldersAndThoseThatComeMeanwhile(t *testing.T) {
	dir := inMemory(t)
	nest(t, filepath.Join(dir), "d", 20_000)
	d, late := opened(t, dir), 0
	must(t, d.until(t.Context(), func(f Found) error {
		if f.Step == Leave && f.Depth%1000 == 1 && late < 20 { // as if the listing had not shown it
			late++
			must(t, unix.Mknodat(f.Folder.fd, "late", unix.S_IFREG|0o600, 0))
		}
		return remove(f)
	}))
	must(t, d.Each(func(name string) error { return fmt.Errorf("%s is left", name) }))
	if late != 20 {
		t.Errorf("%d came late", late)
	}
}

func TestRemoveAllStopsAtMounts(t *testing.T) {
	dir, source := t.TempDir(), t.TempDir()
	write(t, "text", source, "file")
	at := filepath.Join(dir, "logs", "c")
	must(t, os.MkdirAll(at, 0o700))
	must(t, unix.Mount(source, at, "", unix.MS_BIND, ""))
	if err := RemoveAll(t.Context(), filepath.Join(dir, "logs")); !errors.Is(err, ErrMounted) || !strings.Contains(err.Error(), at) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(source, "file")); err != nil {
		t.Error(err)
	}
	must(t, unix.Unmount(at, 0))
	must(t, os.Symlink(source, filepath.Join(at, "link")))
	for range 2 {
		must(t, RemoveAll(t.Context(), filepath.Join(dir, "logs")))
	}
	for path, want := range map[string]error{filepath.Join(source, "file"): nil, filepath.Join(dir, "logs"): fs.ErrNotExist} {
		if _, err := os.Lstat(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	must(t, RemoveAll(t.Context(), filepath.Join(dir, "none", "none")))
	file := write(t, "", dir, "file")
	must(t, RemoveAll(t.Context(), file))
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file stays")
	}
}

func TestMountsAreToldByTheirDeviceWithoutOpenat2(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain", "mount"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	must(t, os.Symlink("plain", filepath.Join(dir, "link")))
	must(t, unix.Mount("tmpfs", filepath.Join(dir, "mount"), "tmpfs", 0, "size=4096"))
	defer unix.Unmount(filepath.Join(dir, "mount"), 0)
	for name, want := range map[string]error{"plain": nil, "mount": unix.EXDEV, "link": unix.ENOTDIR} {
		fd, err := opened(t, dir).openHereOld(name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != want {
			t.Errorf("%s: %v", name, err)
		}
		unix.Close(fd)
	}
}

// A folder that is passed over is not left either, and the walk goes on behind it.
func TestAWalkPassesOverAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/c", "a/d/e", "f"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	var got []string
	must(t, Walk(t.Context(), opened(t, dir), func(f Found) error {
		got = append(got, fmt.Sprint(f.In.Path(f.Name)[len(dir):], " ", f.Step == Leave))
		if f.Step == Enter && f.Name == "b" {
			return ErrSkip
		}
		return nil
	}))
	slices.Sort(got)
	want := []string{"/a false", "/a true", "/a/b false", "/a/d false", "/a/d true", "/a/d/e false", "/a/d/e true", "/f false", "/f true"}
	if !slices.Equal(got, want) {
		t.Errorf("visited %q", got)
	}
}

// Where the kernel has no openat2 a bind mount of the same file system is told, too.
func TestAMountIsToldWithoutOpenat2(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mount", "own"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	must(t, unix.Mount(t.TempDir(), filepath.Join(dir, "mount"), "", unix.MS_BIND, ""))
	defer unix.Unmount(filepath.Join(dir, "mount"), 0)
	d := opened(t, dir)
	for name, want := range map[string]error{"mount": unix.EXDEV, "own": nil} {
		fd, err := d.openHereOld(name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err == nil {
			unix.Close(fd)
		}
	}
}
