package manifests

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A snapshot is Read when the folder and each file in it were read as far as
// they can be: a file that is wrong stays wrong, one that is being written does not.
func TestASnapshotSaysWhetherAllWasRead(t *testing.T) {
	put := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	rows := []struct {
		name           string
		prepare        func(t *testing.T, dir string)
		read, complete bool
	}{
		{"an empty folder", func(*testing.T, string) {}, true, true},
		{"a good file", put("a.yaml", podYAML("a")), true, true},
		{"a file that cannot be parsed", put("a.yaml", "kind: [\n"), true, false},
		{"a pod that is refused", put("a.yaml", podYAML("a", "dnsPolicy: X")), true, false},
		{"a link to nothing", func(t *testing.T, dir string) {
			must(t, os.Symlink("/nowhere/at/all", filepath.Join(dir, "a.yaml")))
		}, true, false},
		{"a file that is being written", func(t *testing.T, dir string) {
			file, err := os.Create(filepath.Join(dir, "a.yaml"))
			must(t, err)
			t.Cleanup(func() { file.Close() })
		}, false, false},
		{"no folder", func(t *testing.T, dir string) { must(t, os.Remove(dir)) }, false, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			must(t, os.Mkdir(dir, 0o755))
			row.prepare(t, dir)
			src := NewSource(SourceConfig{Dir: dir, Options: node1})
			defer src.watch.close()
			src.step(time.Now())
			s := <-src.Snapshots()
			if s.Read != row.read || s.Complete != row.complete {
				t.Errorf("Read %v, Complete %v; want %v, %v: %+v", s.Read, s.Complete, row.read, row.complete, s.Files)
			}
		})
	}
}

// A file that was being written counts as read once it was, even if it is wrong.
func TestAFileThatWasWrittenCountsAsRead(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "a.yaml"))
	must(t, err)
	src := NewSource(SourceConfig{Dir: dir, Options: node1})
	defer src.watch.close()
	src.step(time.Now())
	if s := <-src.Snapshots(); s.Read {
		t.Fatalf("an open file counts as read: %+v", s)
	}
	must(t, file.Close())
	src.step(time.Now().Add(time.Second))
	if s := <-src.Snapshots(); !s.Read {
		t.Errorf("the snapshot is %+v", s)
	}
}

// A file is known by the hash of its bytes, and each pod by that of its content, also
// where another file gives it already.
func TestASnapshotHasTheHashesOfFilesAndPods(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	put("a.yaml", podYAML("a")+"\n---\n"+podYAML("b"))
	put("b.yaml", podYAML("b", "hostNetwork: true"))
	put("c.yaml", podYAML("c", "dnsPolicy: X"))
	src := NewSource(SourceConfig{Dir: dir, Options: node1})
	defer src.watch.close()
	src.step(time.Now())
	s := <-src.Snapshots()
	for _, f := range s.Files {
		data, err := os.ReadFile(f.Path)
		must(t, err)
		if f.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) {
			t.Errorf("%s has the hash %s", f.Path, f.SHA256)
		}
		pods, _ := Decode(f.Path, data, node1)
		if len(f.Hashes) != len(pods) {
			t.Errorf("%s has %v", f.Path, f.Hashes)
		}
		for _, p := range pods {
			if f.Hashes[p.Key().String()] != string(p.UID) {
				t.Errorf("%s has %v, not %s of %s", f.Path, f.Hashes, p.UID, p.Key())
			}
		}
	}
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	must(t, os.Symlink("/nowhere/at/all", filepath.Join(dir, "a.yaml")))
	src.full = true
	src.step(time.Now())
	if s := <-src.Snapshots(); s.Files[0].SHA256 != "" {
		t.Errorf("what cannot be read has the hash %s", s.Files[0].SHA256)
	}
}
