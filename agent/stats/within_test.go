package stats

import (
	"errors"
	"os"
	"path/filepath"
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
	if _, _, err := within(t.Context(), at("deep"), 1); !errors.Is(err, errTooDeep) {
		t.Errorf("folders in each other: %v", err)
	}
}
