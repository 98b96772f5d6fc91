package stats

import (
	"os"
	"path/filepath"
	"testing"
)

// The path of a disk is where it is mounted, not the folder that was asked for.
func TestADiskIsNamedByItsMount(t *testing.T) {
	if got := MountOf("/proc/self"); got != "/proc" {
		t.Errorf("of /proc/self: %s", got)
	}
	dir := filepath.Join(t.TempDir(), "none")
	if got := MountOf(dir); got != dir {
		t.Errorf("of what is not there: %s", got)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := MountOf(dir), MountOf(filepath.Dir(dir)); got != want {
		t.Errorf("of a folder %s, of the one above %s", got, want)
	}
}
