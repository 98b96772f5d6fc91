package manifests

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// reportOf returns what the last snapshot says of a file.
func (p *looker) reportOf(name string) *File {
	p.Helper()
	k := slices.IndexFunc(p.last.Files, func(f *File) bool { return filepath.Base(f.Path) == name })
	if k < 0 {
		p.Fatalf("there is no %s among %v", name, p.last.Files)
	}
	return p.last.Files[k]
}

// says checks that a problem of a file has these words.
func (p *looker) says(name, words string) {
	p.Helper()
	problems := p.reportOf(name).Problems
	if len(problems) != 1 || !strings.Contains(problems[0].Message, words) {
		p.Errorf("%s: problems %v, want %q", name, problems, words)
	}
}

// A folder that proves no removal proves what it holds: another version of a pod counts, in whatever file.
func TestAPodOfAFolderThatProvesNothingMayChange(t *testing.T) {
	p, _ := doubtful(t)
	p.put("x.yaml", image(podYAML("a"), "nginx"))
	p.expect("a@x.yaml=nginx b@b.yaml=busybox folder ?")
}

// A pod stays with its own file as long as that may give it, even beside one that names the pod and is wrong
// about it: once both are mended, what runs is not replaced by the other's version.
func TestAPodStaysWithItsFileWhileAnotherMisspellsIt(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("a.yaml", "kind: [")
	p.put("b.yaml", podYAML("a", "foo: bar"))
	p.expect("a@a.yaml=busybox held:a.yaml bad:a.yaml bad:b.yaml ?")
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(podYAML("a")), 0o644))
	p.put("b.yaml", image(podYAML("a"), "nginx"))
	p.expect("a@a.yaml=busybox bad:b.yaml")
}

// Another file's version waits until it is certain that the pod's own file is gone: until then the pod
// is not said to be that file's.
func TestAPodIsOfNoFileWhoseVersionWaits(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte(image(podYAML("a"), "nginx")), 0o644))
	p.full = true
	p.step(p.now)
	if got, b := describeSnapshot(*p.last), p.reportOf("b.yaml"); got != "a@a.yaml=busybox" || len(b.Pods) > 0 || len(b.Hashes) != 1 {
		t.Errorf("while it waits: %q, and b.yaml has %v and gives %v", got, b.Pods, b.Hashes)
	}
	p.expect("a@b.yaml=nginx")
	if b := p.reportOf("b.yaml"); !slices.Equal(b.Pods, []string{"default/a-node1"}) {
		t.Errorf("b.yaml has %v", b.Pods)
	}
}

// A pod that moved is held by the file that names it and is wrong about it.
func TestAPodThatMovedWithATypoIsHeldByTheFileThatNamesIt(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("a.yaml", podYAML("c"))
	p.put("b.yaml", podYAML("a", "foo: bar"))
	p.expect("a@b.yaml=busybox c@a.yaml=busybox held:b.yaml bad:b.yaml")
}

// A version with the uid of another pod does not count: the one before does.
func TestAVersionWithTheUIDOfAnotherPodIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	withUID := func(text string) string { return strings.Replace(text, "metadata:", "metadata:\n  uid: u-1", 1) }
	fill(t, dir, "b")
	p := at(t, dir, nil)
	p.put("a.yaml", withUID(podYAML("a")))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
	p.put("b.yaml", withUID(image(podYAML("b"), "nginx")))
	p.put("c.yaml", withUID(podYAML("c")))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox held:b.yaml bad:b.yaml bad:c.yaml")
	p.says("b.yaml", "gives the pod default/a-node1 with the uid u-1 already")
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	p.expect("b@b.yaml=nginx bad:c.yaml")
}

func TestAFileThatIsSpoiltHoldsAllItsPods(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "b")
	p := at(t, dir, nil)
	p.put("m.yaml", podYAML("a")+"---\n"+podYAML("c"))
	p.expect("a@m.yaml=busybox b@b.yaml=busybox c@m.yaml=busybox")
	p.put("m.yaml", "kind: [")
	p.expect("a@m.yaml=busybox b@b.yaml=busybox c@m.yaml=busybox held:m.yaml bad:m.yaml ?")
	if pods := p.reportOf("m.yaml").Pods; !slices.Equal(pods, []string{"default/a-node1", "default/c-node1"}) {
		t.Errorf("it holds %v", pods)
	}
}

// The report of a file is made once for each content, whatever becomes of others.
func TestTheReportOfAFileIsMadeOnceForEachContent(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	was := *p.reportOf("a.yaml")
	made := func() bool {
		is := p.reportOf("a.yaml")
		return reflect.ValueOf(is.Hashes).Pointer() != reflect.ValueOf(was.Hashes).Pointer()
	}
	p.put("b.yaml", podYAML("b"))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
	if made() {
		t.Error("it is made again as another file comes")
	}
	p.put("b.yaml", "kind: [")
	p.expect("a@a.yaml=busybox b@b.yaml=busybox held:b.yaml bad:b.yaml ?")
	if made() {
		t.Error("it is made again as another file is spoilt")
	}
	p.put("a.yaml", "# web\n"+podYAML("a"))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox held:b.yaml bad:b.yaml ?")
	if is := p.reportOf("a.yaml"); !made() || is.SHA256 == was.SHA256 {
		t.Errorf("it has the hash %s of a content that has a comment more", is.SHA256)
	}
}

// What is said of a file because of others follows what becomes of these.
func TestWhatIsSaidOfAFileFollowsTheOthers(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("b.yaml", podYAML("a"))
	p.put("c.yaml", podYAML("a"))
	p.expect("a@a.yaml=busybox bad:b.yaml bad:c.yaml")
	p.says("c.yaml", "a.yaml gives the pod default/a-node1 already")
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	p.expect("a@b.yaml=busybox bad:c.yaml")
	p.says("c.yaml", "b.yaml gives the pod default/a-node1 already")
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	p.expect("a@c.yaml=busybox")
	if problems := p.reportOf("c.yaml").Problems; len(problems) > 0 {
		t.Errorf("it has the problems %v", problems)
	}
}

// A folder that is missing does not prove that the URL gives a pod now that a file of it gave.
func TestTheURLTakesNoPodOfAFolderThatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	p := at(t, dir, func(c *SourceConfig) {
		asks(c)
		c.Known = knownPods(t, filepath.Join(dir, "a.yaml"), podYAML("a"))
	})
	p.gets(Answer{Data: []byte(image(podYAML("a"), "nginx"))}, "a@a.yaml=busybox bad:pods folder ?")
	p.says("pods", "a.yaml gives the pod default/a-node1 already")
}
