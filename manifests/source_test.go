package manifests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// folder is a manifest folder with a Source that reads it.
type folder struct {
	t    *testing.T
	dir  string
	src  *Source
	last Snapshot
}

// watchFolder starts a Source; configure may change what it is given.
func watchFolder(t *testing.T, dir string, configure func(*SourceConfig)) *folder {
	t.Helper()
	c := SourceConfig{Dir: dir, Options: node1, Settle: 50 * time.Millisecond}
	if configure != nil {
		configure(&c)
	}
	f := &folder{t: t, dir: dir, src: NewSource(c)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.src.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// write puts a file in place by rename.
func (f *folder) write(name, text string) {
	f.t.Helper()
	temp := f.path(".new")
	must(f.t, os.WriteFile(temp, []byte(text), 0o644))
	must(f.t, os.Rename(temp, f.path(name)))
}

// next returns the next snapshot.
func (f *folder) next() Snapshot {
	f.t.Helper()
	select {
	case f.last = <-f.src.Snapshots():
	case <-time.After(10 * time.Second):
		f.t.Fatalf("no snapshot; the last one: %s", describeSnapshot(f.last))
	}
	return f.last
}

// until waits for a snapshot that looks as wanted.
func (f *folder) until(want string) Snapshot {
	f.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for describeSnapshot(f.last) != want {
		if time.Now().After(deadline) {
			f.t.Fatalf("last snapshot %q, want %q", describeSnapshot(f.last), want)
		}
		select {
		case f.last = <-f.src.Snapshots():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return f.last
}

// never fails if a snapshot comes before another file makes one come for
// certain: what was to be ignored is then known to have been ignored.
func (f *folder) never(why string) {
	f.t.Helper()
	before := f.last
	f.write("zz-fence.yaml", podYAML("fence"))
	after := f.next()
	if got, want := podNames(after.Pods), strings.TrimSpace(podNames(before.Pods)+" default/fence-node1"); got != want {
		f.t.Errorf("%s: pods %q, want %q", why, got, want)
	}
	for _, p := range before.Pods {
		if q := after.find(p.Key()); q == nil || q.Pod != p.Pod {
			f.t.Errorf("%s: %s is another pod", why, p.Key())
		}
	}
	must(f.t, os.Remove(f.path("zz-fence.yaml")))
	f.until(describeSnapshot(before))
}

func (s Snapshot) find(k Key) *Pod {
	for _, p := range s.Pods {
		if p.Key() == k {
			return p
		}
	}
	return nil
}

// describeSnapshot: "pod@file:image ... | held file ... | problems", "?" if incomplete.
func describeSnapshot(s Snapshot) string {
	var parts []string
	for _, p := range s.Pods {
		parts = append(parts, strings.TrimSuffix(p.Name, "-node1")+"@"+filepath.Base(p.File)+"="+p.Spec.Containers[0].Image)
	}
	for _, file := range s.Files {
		if file.Held {
			parts = append(parts, "held:"+filepath.Base(file.Path))
		}
		for _, p := range file.Problems {
			if !p.Warning {
				parts = append(parts, "bad:"+filepath.Base(file.Path))
				break
			}
		}
	}
	if len(s.Problems) > 0 {
		parts = append(parts, "folder")
	}
	if !s.Complete {
		parts = append(parts, "?")
	}
	return strings.Join(parts, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func image(text, image string) string { return strings.Replace(text, "busybox", image, 1) }

func TestSourceFollowsTheFolder(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	if s := f.next(); describeSnapshot(s) != "" || !s.Complete {
		t.Fatalf("empty folder: %q", describeSnapshot(s))
	}
	f.write("a.yaml", podYAML("a"))
	f.until("a@a.yaml=busybox")
	f.write("a.yaml", image(podYAML("a"), "nginx"))
	f.until("a@a.yaml=nginx")
	start := time.Now() // before the file goes: the test may be held up at any line
	must(t, os.Remove(f.path("a.yaml")))
	f.until("")
	if took := time.Since(start); took < f.src.Settle {
		t.Errorf("removed after %v without settling", took)
	}
}

func TestSourceTakesFilesThere(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}]}}`), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "a.yml"), []byte(podYAML("a")+"---\n"+podYAML("c")), 0o644))
	f := watchFolder(t, dir, nil)
	f.until("a@a.yml=busybox b@b.json=i c@a.yml=busybox")
	if got := f.last.Files[0].Pods; strings.Join(got, " ") != "default/a-node1 default/c-node1" {
		t.Errorf("pods of a.yml: %v", got)
	}
}

func TestSourceIgnores(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", podYAML("a"))
	f.until("a@a.yaml=busybox")
	for _, name := range []string{".b.yaml", "b.yaml~", ".#b.yaml", "#b.yaml#", "#b.yaml", ".b.yaml.swp", "b.txt", "b", "b.YAML", "4913", "b.yaml.bak"} {
		must(t, os.WriteFile(f.path(name), []byte(podYAML("b")), 0o644))
	}
	f.never("not manifests")
}

// A folder, pipe or socket in a manifest's place proves no more than a file that
// cannot be read.
func TestAManifestThatIsNoFileAnyMoreHoldsItsPods(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a folder":         func(path string) error { return os.Mkdir(path, 0o755) },
		"a link to either": func(path string) error { return os.Symlink(t.TempDir(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := watchFolder(t, dir, nil)
			f.write("a.yaml", podYAML("a"))
			f.write("b.yaml", podYAML("b"))
			before := f.until("a@a.yaml=busybox b@b.yaml=busybox")
			must(t, replace(f.path(".new")))
			must(t, errors.Join(os.Remove(f.path("a.yaml")), os.Rename(f.path(".new"), f.path("a.yaml"))))
			held := f.until("a@a.yaml=busybox b@b.yaml=busybox held:a.yaml bad:a.yaml ?")
			if p := held.Files[0].Problems; len(p) != 1 || p[0].Message != "cannot be read: not a regular file" {
				t.Errorf("problems %v", p)
			}
			again := watchFolder(t, dir, func(c *SourceConfig) { c.Known = before.Pods })
			again.until("a@a.yaml=busybox b@b.yaml=busybox held:a.yaml bad:a.yaml ?")
			must(t, os.Remove(f.path("a.yaml")))
			f.until("b@b.yaml=busybox")
			again.until("b@b.yaml=busybox")
		})
	}
}

// Other bytes are another version of the file, which does not change the pod.
func TestSourceEqualDigestIsNoChange(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", podYAML("a"))
	pod := f.until("a@a.yaml=busybox").Pods[0]
	same := func(what string) {
		t.Helper()
		was := f.last.Files[0].SHA256
		if s := f.next(); s.Pods[0] != pod || s.Files[0].SHA256 == was {
			t.Errorf("%s: %+v in %+v", what, s.Pods[0], s.Files[0])
		}
	}
	f.write("a.yaml", "# a comment\n"+podYAML("a"))
	same("comment")
	f.write("a.yaml", `{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"image":"busybox","name":"c"}]},"metadata":{"name":"a"}}`)
	same("other order")
	must(t, os.Chtimes(f.path("a.yaml"), time.Now(), time.Now()))
	f.never("touch")
}

// TestSourceHolds: what is wrong takes nothing away.
func TestSourceHolds(t *testing.T) {
	two := podYAML("a") + "---\n" + podYAML("b")
	tests := []struct{ name, file, want string }{
		{"unparsable", "kind: [\n", "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"empty", "", "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"blank", "\n  \n", "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"one invalid, named", podYAML("a") + "---\n" + podYAML("b", "foo: bar"), "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml"},
		{"one invalid, named, one gone", podYAML("b", "foo: bar"), "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml"},
		{"one unparsable, the other edited", image(podYAML("a"), "nginx") + "---\nkind: [\n", "a@m.yaml=nginx b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"one without a name", podYAML("a") + "---\napiVersion: v1\nkind: Pod\n", "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"kind misspelt", podYAML("a") + "---\n" + strings.Replace(podYAML("b"), "Pod", "Podd", 1), "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml"},
		{"one gone", podYAML("a"), "a@m.yaml=busybox"},
		{"one gone, a config map came", podYAML("a") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", "a@m.yaml=busybox"},
		{"one gone, a wrong config map came", podYAML("a") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: B}\n", "a@m.yaml=busybox b@m.yaml=busybox held:m.yaml bad:m.yaml ?"},
		{"an empty list", "apiVersion: v1\nkind: PodList\nitems: []\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := watchFolder(t, t.TempDir(), nil)
			f.write("m.yaml", two)
			before := f.until("a@m.yaml=busybox b@m.yaml=busybox")
			f.write("m.yaml", tt.file)
			after := f.until(tt.want)
			for _, p := range after.Pods {
				if old := before.find(p.Key()); p.Digest == old.Digest && p.Pod != old.Pod {
					t.Errorf("%s is another pod", p.Key())
				}
			}
			f.write("m.yaml", two)
			f.until("a@m.yaml=busybox b@m.yaml=busybox")
		})
	}
}

func TestSourceUnknownBadIsIncomplete(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", podYAML("a", "foo: bar"))
	f.until("bad:a.yaml ?")
}

func TestSourceUnreadableFileHolds(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	must(t, os.WriteFile(f.path("target"), []byte(podYAML("a")), 0o644))
	must(t, os.Symlink("target", f.path("a.yaml")))
	f.until("a@a.yaml=busybox")
	must(t, os.Remove(f.path("target"))) // the link dangles
	f.until("a@a.yaml=busybox held:a.yaml bad:a.yaml ?")
	must(t, os.WriteFile(f.path("target"), []byte(podYAML("a")), 0o644))
	f.until("a@a.yaml=busybox")
	must(t, os.Remove(f.path("a.yaml")))
	f.until("")
}

// TestSourceFollowsConfigMapSwap: a mounted ConfigMap is links to ..data/x,
// and ..data is replaced as one.
func TestSourceFollowsConfigMapSwap(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	for i, img := range []string{"one", "two"} {
		version := f.path("..v" + string(rune('0'+i)))
		must(t, os.Mkdir(version, 0o755))
		must(t, os.WriteFile(filepath.Join(version, "a.yaml"), []byte(image(podYAML("a"), img)), 0o644))
	}
	must(t, os.Symlink("..v0", f.path("..data")))
	must(t, os.Symlink("..data/a.yaml", f.path("a.yaml")))
	f.until("a@a.yaml=one")
	must(t, os.Symlink("..v1", f.path("..tmp")))
	must(t, os.Rename(f.path("..tmp"), f.path("..data")))
	f.until("a@a.yaml=two")
}

func TestSourceRescanFindsWhatNoEventTells(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "target")
	must(t, os.WriteFile(elsewhere, []byte(podYAML("a")), 0o644))
	f := watchFolder(t, t.TempDir(), func(c *SourceConfig) { c.Rescan = 20 * time.Millisecond })
	must(t, os.Symlink(elsewhere, f.path("a.yaml")))
	f.until("a@a.yaml=busybox")
	must(t, os.WriteFile(elsewhere, []byte(image(podYAML("a"), "nginx")), 0o644))
	f.until("a@a.yaml=nginx")
}

func TestSourceWaitsForTheWriter(t *testing.T) {
	f := watchFolder(t, t.TempDir(), func(c *SourceConfig) { c.Settle = 5 * time.Second })
	f.write("m.yaml", podYAML("a")+"---\n"+podYAML("b"))
	f.until("a@m.yaml=busybox b@m.yaml=busybox")
	w, err := os.Create(f.path("m.yaml")) // truncates
	must(t, err)
	_, err = w.WriteString(podYAML("a"))
	must(t, err)
	f.write("z.yaml", podYAML("z")) // when this is seen, the half file was seen too
	f.until("a@m.yaml=busybox b@m.yaml=busybox z@z.yaml=busybox")
	_, err = w.WriteString("---\n" + image(podYAML("b"), "nginx"))
	must(t, err)
	must(t, w.Close())
	if got := describeSnapshot(f.next()); got != "a@m.yaml=busybox b@m.yaml=nginx z@z.yaml=busybox" {
		t.Errorf("saw %q", got)
	}
}

// TestSourceOpenFileProvesNothing: a file that somebody keeps open is read in
// the end, but what it lacks is not gone before it is closed.
func TestSourceOpenFileProvesNothing(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("m.yaml", podYAML("a")+"---\n"+podYAML("b"))
	f.until("a@m.yaml=busybox b@m.yaml=busybox")
	w, err := os.Create(f.path("m.yaml"))
	must(t, err)
	_, err = w.WriteString(image(podYAML("a"), "nginx"))
	must(t, err)
	f.until("a@m.yaml=nginx b@m.yaml=busybox ?")
	must(t, w.Close())
	f.until("a@m.yaml=nginx")
}

func TestSourceFolderMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	var log bytes.Buffer
	f := watchFolder(t, dir, func(c *SourceConfig) { c.RemovalSettle, c.Log = time.Second, slog.New(slog.NewTextHandler(&log, nil)) })
	s := f.next()
	if describeSnapshot(s) != "folder ?" || s.Problems[0].File != dir {
		t.Fatalf("%q %v", describeSnapshot(s), s.Problems)
	}
	must(t, os.Mkdir(dir, 0o755))
	f.until("")
	f.write("a.yaml", podYAML("a"))
	f.until("a@a.yaml=busybox")
	must(t, os.Rename(dir, dir+".old"))
	f.until("a@a.yaml=busybox folder ?")
	must(t, os.Rename(dir+".old", dir))
	f.until("a@a.yaml=busybox")
	f.write("b.yaml", podYAML("b")) // it is watched again
	f.until("a@a.yaml=busybox b@b.yaml=busybox")
	must(t, os.RemoveAll(dir))
	f.until("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	must(t, os.Mkdir(dir, 0o755))
	f.write("b.yaml", podYAML("b")) // and so it is the new folder
	f.until("b@b.yaml=busybox")
	if n := strings.Count(log.String(), "does not exist"); n != 3 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}

func TestSourceFolderReplaced(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "m")
	must(t, os.Mkdir(dir, 0o755))
	f := watchFolder(t, dir, func(c *SourceConfig) { c.RemovalSettle = time.Second })
	f.write("a.yaml", podYAML("a"))
	f.until("a@a.yaml=busybox")
	other := filepath.Join(parent, "other")
	must(t, os.Mkdir(other, 0o755))
	must(t, os.WriteFile(filepath.Join(other, "b.yaml"), []byte(podYAML("b")), 0o644))
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Rename(other, dir))
	f.until("b@b.yaml=busybox")
	f.write("c.yaml", podYAML("c"))
	f.until("b@b.yaml=busybox c@c.yaml=busybox")
}

func TestSourceSingleFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest") // any name
	must(t, os.WriteFile(path, []byte(podYAML("a")), 0o644))
	f := watchFolder(t, path, nil)
	f.until("a@manifest=busybox")
	must(t, os.WriteFile(path+".new", []byte(image(podYAML("a"), "nginx")), 0o644))
	must(t, os.Rename(path+".new", path))
	f.until("a@manifest=nginx")
	must(t, os.Remove(path))
	f.until("a@manifest=nginx folder ?")
}

// knownPods are what checkpoints would say of a file.
func knownPods(t *testing.T, path, text string) []*Pod {
	t.Helper()
	pods, problems := Decode(path, []byte(text), node1)
	if len(pods) == 0 {
		t.Fatal(problems)
	}
	return pods
}

func TestSourceKnown(t *testing.T) {
	t.Run("folder missing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		known := knownPods(t, filepath.Join(dir, "a.yaml"), podYAML("a"))
		f := watchFolder(t, dir, func(c *SourceConfig) { c.Known = known })
		if s := f.next(); describeSnapshot(s) != "a@a.yaml=busybox folder ?" || s.Pods[0] != known[0] {
			t.Errorf("%q", describeSnapshot(s))
		}
	})
	t.Run("unchanged keeps its uid", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.yaml")
		known := knownPods(t, path, podYAML("a"))
		must(t, os.WriteFile(path, []byte("# more\n"+podYAML("a")), 0o644))
		f := watchFolder(t, dir, func(c *SourceConfig) { c.Known = known })
		if s := f.next(); describeSnapshot(s) != "a@a.yaml=busybox" || s.Pods[0].Pod != known[0].Pod {
			t.Errorf("%q", describeSnapshot(s))
		}
	})
	t.Run("spoilt meanwhile", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.yaml")
		known := knownPods(t, path, podYAML("a"))
		must(t, os.WriteFile(path, []byte("kind: [\n"), 0o644))
		f := watchFolder(t, dir, func(c *SourceConfig) { c.Known = known })
		if s := f.next(); describeSnapshot(s) != "a@a.yaml=busybox held:a.yaml bad:a.yaml ?" {
			t.Errorf("%q", describeSnapshot(s))
		}
	})
	t.Run("removed meanwhile", func(t *testing.T) {
		dir := t.TempDir()
		known := knownPods(t, filepath.Join(dir, "a.yaml"), podYAML("a"))
		f := watchFolder(t, dir, func(c *SourceConfig) { c.Known, c.Record = known, recordOf(t, dir) })
		if s := f.next(); describeSnapshot(s) != "a@a.yaml=busybox" {
			t.Errorf("%q", describeSnapshot(s))
		}
		f.until("")
	})
}

func TestSourceTwoFilesForOnePod(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.next()
	f.write("b.yaml", podYAML("a"))
	f.until("a@b.yaml=busybox")
	f.write("a.yaml", image(podYAML("a"), "nginx"))
	s := f.until("a@b.yaml=busybox bad:a.yaml")
	if p := s.Files[0].Problems[0]; !strings.Contains(p.Message, f.path("b.yaml")) || p.Pod != "default/a-node1" {
		t.Errorf("problem %+v", p)
	}
	f.write("b.yaml", "kind: [\n") // the version that runs is in no other file
	f.until("a@b.yaml=busybox bad:a.yaml held:b.yaml bad:b.yaml ?")
	f.write("b.yaml", podYAML("a"))
	f.until("a@b.yaml=busybox bad:a.yaml")
	f.write("a.yaml", podYAML("a", "# the same"))
	f.write("b.yaml", "kind: [\n")
	f.until("a@a.yaml=busybox bad:b.yaml ?")
	f.write("b.yaml", image(podYAML("a"), "nginx"))
	f.until("a@a.yaml=busybox bad:b.yaml")
	must(t, os.Remove(f.path("a.yaml")))
	f.until("a@b.yaml=nginx")
}

func TestSourceTwoFilesAtStart(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yaml"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(podYAML("a")), 0o644))
	}
	watchFolder(t, dir, nil).until("a@a.yaml=busybox bad:b.yaml")
}

func TestSourceMovedPodStays(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.write("a.yaml", podYAML("a"))
	before := f.until("a@a.yaml=busybox")
	must(t, os.Rename(f.path("a.yaml"), f.path("b.yaml")))
	for describeSnapshot(f.last) != "a@b.yaml=busybox" {
		s := f.next()
		if len(s.Pods) != 1 || s.Pods[0].Pod != before.Pods[0].Pod || strings.Contains(describeSnapshot(s), "bad") {
			t.Fatalf("%q", describeSnapshot(s))
		}
	}
	f.write("c.yaml", podYAML("a", "foo: bar")) // moved and spoilt
	f.until("a@b.yaml=busybox bad:c.yaml")
	must(t, os.Remove(f.path("b.yaml")))
	f.until("a@c.yaml=busybox held:c.yaml bad:c.yaml")
}

func TestSourceOneUIDOnePod(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	withUID := func(name string) string {
		return strings.Replace(podYAML(name), "metadata:", "metadata:\n  uid: u-1", 1)
	}
	f.write("b.yaml", withUID("b"))
	f.until("b@b.yaml=busybox")
	f.write("a.yaml", withUID("a"))
	f.until("b@b.yaml=busybox bad:a.yaml")
	checkWords(t, f.last.Files[0].Problems, "4:8 metadata.uid: "+f.path("b.yaml")+" gives the pod default/b-node1 with the uid u-1 already")
	must(t, os.Remove(f.path("b.yaml")))
	f.until("a@a.yaml=busybox")
}

func TestSourceBurst(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.next()
	want := make([]string, 0, 30)
	for i := range 30 {
		name := "p" + string(rune('a'+i/10)) + string(rune('0'+i%10))
		f.write(name+".yaml", podYAML(name))
		want = append(want, name+"@"+name+".yaml=busybox")
	}
	f.until(strings.Join(want, " "))
}

// TestSourceLatency: a manifest that is renamed into place is offered at once, without a time to settle
// and without a poll. A busy machine is busy sometimes.
func TestSourceLatency(t *testing.T) {
	f := watchFolder(t, t.TempDir(), nil)
	f.next()
	best := time.Hour
	for n := range 20 {
		must(t, os.WriteFile(f.path(".new"), []byte(image(podYAML("a"), fmt.Sprint("i", n))), 0o644))
		start := time.Now()
		must(t, os.Rename(f.path(".new"), f.path("a.yaml")))
		f.next()
		best = min(best, time.Since(start))
	}
	t.Logf("offered after %v", best)
	if best > 50*time.Millisecond {
		t.Errorf("offered after %v at best", best)
	}
}
