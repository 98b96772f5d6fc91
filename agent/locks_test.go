package agent

import (
	"os"
	"path/filepath"
	"testing"

	"monopod/agent/rollout"
)

func TestWhatIsALock(t *testing.T) {
	dir := t.TempDir()
	noErr(t, os.MkdirAll(filepath.Join(dir, "run"), 0o755))
	noErr(t, os.WriteFile(filepath.Join(dir, "run/file"), nil, 0o600))
	noErr(t, os.Mkdir(filepath.Join(dir, "run/folder"), 0o755))
	noErr(t, os.Symlink("nowhere", filepath.Join(dir, "run/link")))
	noErr(t, os.Symlink("run", filepath.Join(dir, "other")))
	for below, want := range map[string]rollout.Locked{
		"run/file": rollout.Held, "run/folder": rollout.Held, "run/link": rollout.Held,
		"run/none": rollout.Free, "none/file": rollout.Free, "run/file/lock": rollout.Free,
		"other/file": rollout.Free, // a link that the workload made may lead anywhere
	} {
		if got := (lockFile{dir, below}).look(); got != want {
			t.Errorf("%s: %v, want %v", below, got, want)
		}
	}
	if got := (lockFile{filepath.Join(dir, "gone"), "lock"}).look(); got != rollout.Free {
		t.Errorf("without its volume: %v", got)
	}
}
