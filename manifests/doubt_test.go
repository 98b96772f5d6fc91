package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent that died may have died of a pod: if its manifest is gone by now,
// the pod must not be among the first that start.
func TestInDoubtTheFirstSnapshotIsCertain(t *testing.T) {
	doubt := func(known []*Pod) func(*SourceConfig) {
		return func(c *SourceConfig) { c.Known, c.Doubt = known, true }
	}
	t.Run("a file is gone", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "good.yaml"), []byte(podYAML("good")), 0o644))
		f := watchFolder(t, dir, doubt(knownPods(t, filepath.Join(dir, "poison.yaml"), podYAML("poison"))))
		if got := describeSnapshot(f.next()); got != "good@good.yaml=busybox" {
			t.Errorf("first snapshot %q", got)
		}
	})
	t.Run("a file is being written", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "web.yaml")
		w, err := os.Create(path)
		must(t, err)
		defer w.Close()
		_, err = w.WriteString(image(podYAML("web"), "nginx"))
		must(t, err)
		f := watchFolder(t, dir, doubt(knownPods(t, path, podYAML("web"))))
		if got := describeSnapshot(f.next()); !strings.HasPrefix(got, "web@web.yaml=nginx") {
			t.Errorf("first snapshot %q", got)
		}
	})
	t.Run("the folder is missing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "missing")
		f := watchFolder(t, dir, doubt(knownPods(t, filepath.Join(dir, "web.yaml"), podYAML("web"))))
		if got := describeSnapshot(f.next()); got != "web@web.yaml=busybox folder ?" {
			t.Errorf("first snapshot %q", got)
		}
	})
}
