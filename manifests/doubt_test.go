package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"monopod/manifests/decode"
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

func TestAPanicOverADocumentIsAProblemOfItsFile(t *testing.T) {
	f := &fileDecoder{file: "/m/a.yaml", options: node1}
	f.contained(decode.Document{Root: &yaml.Node{Kind: yaml.MappingNode, Line: 3, Column: 1, Content: []*yaml.Node{nil, nil}}, Line: 4})
	if len(f.problems) != 1 || !f.unclear || len(f.faults) != 1 {
		t.Fatalf("problems %v, unclear %v, faults %v", f.problems, f.unclear, f.faults)
	}
	if got := f.problems[0].Error(); !strings.HasPrefix(got, "/m/a.yaml:7:1: monopod itself went wrong over this document, please report it") {
		t.Errorf("it is said as %q", got)
	}
	if !strings.Contains(f.faults[0], "manifests.(*fileDecoder).document") {
		t.Errorf("the stack is %s", f.faults[0])
	}
}
