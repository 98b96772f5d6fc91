package stats

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a container makes in its volume, and others in the folder of logs, leads
// the count nowhere else and does not hold it up.
func TestCountsWhatIsThereAndNoMore(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(filepath.Join(outside, "big"), make([]byte, 1<<20), 0o600),
		os.MkdirAll(at("pod/c/sub"), 0o755), os.WriteFile(at("pod/c/sub/file"), make([]byte, 8192), 0o600),
		os.Symlink(outside, at("pod/c/link")), os.Symlink(outside, at("pod/d")), unix.Mkfifo(at("pod/c/pipe"), 0o600),
		os.MkdirAll(at("deep/"+strings.Repeat("x/", 200)), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bytes, inodes, err := within(t.Context(), at("pod/c"), 2)
	if err != nil || inodes != 5 || bytes < 8192 || bytes > 100_000 {
		t.Errorf("%d bytes, %d inodes, %v", bytes, inodes, err)
	}
	if _, _, err := within(t.Context(), at("pod/d"), 2); err == nil {
		t.Error("a link was counted through")
	}
	if _, inodes, err := within(t.Context(), at("deep"), 1); inodes != 201 || err != nil {
		t.Errorf("folders in each other: %d inodes, %v", inodes, err)
	}
}

// What others have mounted there, by a file's or a folder's name, is not the pod's.
func TestCountsNothingThatIsMounted(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "big"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	mount := filepath.Join(dir, "mount")
	if err := errors.Join(os.Mkdir(mount, 0o755), unix.Mount(outside, mount, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(mount, 0)
	if bytes, inodes, err := within(t.Context(), dir, 0); bytes > 100_000 || inodes != 1 || err != nil {
		t.Errorf("%d bytes, %d inodes, %v", bytes, inodes, err)
	}
}

func TestCountsUpToABound(t *testing.T) {
	dir := t.TempDir()
	for k := range maxFiles {
		if err := unix.Mknod(filepath.Join(dir, strconv.Itoa(k)), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := within(t.Context(), dir, 0); !errors.Is(err, errTooMany) {
		t.Errorf("%v", err)
	}
}
