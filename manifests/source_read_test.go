package manifests

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
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
			if string(f.Hashes[p.Key().String()]) != string(p.UID) {
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

// One content has one hash, in whichever files it stands: a uid has the path in it.
func TestOneContentHasOneHashInAllFiles(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("b.yaml", podYAML("web"))
	p.place("a.yaml", "# the same\n"+podYAML("web"))
	p.place("c.yaml", podYAML("web", "hostNetwork: true"))
	p.place("d.yaml", podYAML("web", "hostNetwork: true"))
	p.place("e.yaml", strings.Replace(podYAML("web"), "  name: web\n", "  name: web\n  uid: u-1\n", 1))
	var got []string
	for _, f := range p.last.Files {
		got = append(got, string(f.Hashes["default/web-node1"]))
	}
	runs := string(p.last.Pods[0].UID)
	if len(got) != 5 || got[0] != runs || got[1] != runs || got[2] == runs || got[3] != got[2] || got[4] != "u-1" {
		t.Errorf("the hashes of a to e are %v; %s of b runs", got, runs)
	}
}

// A pod that changed in place keeps the uid of its first content. The next agent knows it
// by its checkpoint; the hash in its file is that of what the file says.
func TestAPodThatChangedInPlaceHasTheHashOfItsContentAfterARestart(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	must(t, os.WriteFile(filepath.Join(p.dir, "a.yaml"), []byte(podYAML("a")), 0o644))
	p.expect("a@a.yaml=busybox")
	changed := *p.last.Pods[0].Pod
	want := string(changed.UID)
	changed.UID = "00000000000000000000000000000001" // of the content before
	known := &Pod{Pod: &changed, File: p.last.Pods[0].File, Digest: p.last.Pods[0].Digest}
	p = p.next(func(c *SourceConfig) { c.Known = []*Pod{known} })
	p.expect("a@a.yaml=busybox")
	if got := p.last.Pods[0].UID; got != changed.UID {
		t.Errorf("its uid is %s, not %s", got, changed.UID)
	}
	if got := string(p.last.Files[0].Hashes["default/a-node1"]); got != want {
		t.Errorf("its hash is %s, not %s", got, want)
	}
}

// What is forgotten is known by its content: a uid may be that of the content before.
func TestAForgottenPodIsRecordedByTheHashOfItsContent(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	must(t, os.WriteFile(filepath.Join(p.dir, "a.yaml"), []byte(podYAML("a")), 0o644))
	p.expect("a@a.yaml=busybox")
	changed := *p.last.Pods[0].Pod
	hash := string(changed.UID)
	changed.UID = "00000000000000000000000000000001"
	known := &Pod{Pod: &changed, File: p.last.Pods[0].File, Digest: p.last.Pods[0].Digest}
	must(t, os.WriteFile(filepath.Join(p.dir, "a.yaml"), []byte("kind: [\n"), 0o644))
	p = p.next(func(c *SourceConfig) { c.Known = []*Pod{known} })
	p.forgets("a", "")
	if got := string(p.kept.Forgotten["default/a-node1"]); got != hash {
		t.Errorf("it is recorded as %s, not %s", got, hash)
	}
}

func TestASnapshotSaysWhereOrdersStand(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", strings.Replace(podYAML("a"), "spec:", "  annotations:\n    monopod.start-after: db\nspec:", 1))
	s := f.until("a@a.yaml=busybox")
	if got := s.Files[0].Orders["default/a-node1"]; got != (decode.Position{Line: 6, Column: 26}) {
		t.Errorf("%s: %+v", filepath.Base(s.Files[0].Path), s.Files[0].Orders)
	}
}

// With no replicas the pod goes as if its document were gone.
func TestAWorkloadOfNoPodHoldsNone(t *testing.T) {
	for _, file := range []string{workloadYAML("Deployment", "replicas: 0"), workloadYAML("Job", "suspend: true", "restartPolicy: Never")} {
		c := documents.Read("/m/x.yaml", []byte(file), node1)
		if f := (&fileState{Content: c}); len(c.Refused) > 0 || len(c.Pods) > 0 || len(c.Problems) != 1 || f.mayGive() {
			t.Errorf("%+v\n%s", c, file)
		}
	}
}
