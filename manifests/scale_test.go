package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/documents"
)

// lookedThrough returns what a Source allocates that looks through a folder of n files: mallocs for
// each when it reads them first, and for each later when none has changed.
func lookedThrough(t *testing.T, n int) (first, again float64) {
	dir := t.TempDir()
	var pods []string
	for k := range n {
		pods = append(pods, fmt.Sprintf("p%04d", k))
	}
	fill(t, dir, pods...)
	strict := func(c *SourceConfig) { c.Strict, c.Root = true, dir+".root" }
	time.Sleep(30 * time.Millisecond) // so old that another write is seen
	first = testing.AllocsPerRun(1, func() { at(t, dir, strict) })
	p := at(t, dir, strict)
	again = testing.AllocsPerRun(5, func() {
		p.full = true
		p.step(p.now)
	})
	if len(p.last.Pods) != n {
		t.Fatalf("%d pods of %d files", len(p.last.Pods), n)
	}
	return first / float64(n), again / float64(n)
}

// A folder is read in time that grows with its files, and looked through at little cost for each.
func TestAFolderIsReadInLinearTime(t *testing.T) {
	few, _ := lookedThrough(t, 100)
	many, again := lookedThrough(t, 1000)
	t.Logf("mallocs for each file: %.1f of 100 read first, %.1f of 1000; %.1f of 1000 looked at again", few, many, again)
	if many > 1.2*few {
		t.Errorf("%.1f mallocs for each of 1000 files, %.1f for each of 100", many, few)
	}
	if again > 6 {
		t.Errorf("%.1f mallocs for each file that is as it was", again)
	}
}

// besideBad returns what a Source saves of a folder with n files that cannot be read and n that can, in
// bytes, and what it allocates when it looks at them again.
func besideBad(t *testing.T, n int) (saved int, again float64) {
	dir := t.TempDir()
	for k := range n {
		fill(t, dir, fmt.Sprintf("p%04d", k))
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("bad%04d.yaml", k)), []byte("kind: ["), 0o600))
	}
	time.Sleep(30 * time.Millisecond) // so old that another write is seen
	p := at(t, dir, nil)
	text, err := json.Marshal(p.kept)
	must(t, err)
	again = testing.AllocsPerRun(3, func() {
		p.full = true
		p.step(p.now)
	})
	if len(p.last.Pods) != n || len(p.kept.Unclear) != n {
		t.Fatalf("%d pods, %d unclear files of %d each", len(p.last.Pods), len(p.kept.Unclear), n)
	}
	return len(text), again
}

// Of each file that cannot be read it is known which pods came later: that is saved, and made, in room
// that grows with the files and the pods, not with their product.
func TestFilesThatCannotBeReadCostLittleBesideManyPods(t *testing.T) {
	few, fewAgain := besideBad(t, 30)
	many, manyAgain := besideBad(t, 300)
	t.Logf("bytes saved: %d beside 30, %d beside 300; mallocs to look again: %.0f, %.0f", few, many, fewAgain, manyAgain)
	if many > 12*few || manyAgain > 12*fewAgain {
		t.Errorf("ten times as many files cost %d bytes after %d, %.0f mallocs after %.0f", many, few, manyAgain, fewAgain)
	}
}

// withMany returns a Source whose one file gives n pods and n ConfigMaps.
func withMany(t *testing.T, n int) *looker {
	p := at(t, t.TempDir(), nil)
	path := filepath.Join(p.dir, "all.yaml")
	f := &fileState{}
	for k := range n {
		pod := &Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%05d", k)}}, File: path}
		object := documents.NewObject(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("c%05d", k)}}, nil, path)
		f.Pods, f.Objects = append(f.Pods, documents.Found{Pod: pod}), append(f.Objects, documents.FoundObject{Object: object})
		p.current[pod.Key()], p.objects[object.Key()] = pod, object
	}
	p.files[path] = f
	return p
}

// noteEach makes one pass over what a file names, with a map, which is what counting must cost at least.
func noteEach(f *fileState) int {
	pods, objects := map[Key]bool{}, map[ObjectKey]bool{}
	for k := range f.Pods {
		pods[f.Pods[k].Key()] = true
	}
	for k := range f.Objects {
		objects[f.Objects[k].Key()] = true
	}
	return len(pods) + len(objects)
}

// A file may have thousands of documents, and is looked at with each look at the folder. Counting takes as
// long as some passes over them; a search for each of them takes as long as hundreds. The two are measured
// in turn, and the least of each counts: what else runs meanwhile slows down both.
func TestWhatIsGoneIsCountedInAFewPassesOverAFilesDocuments(t *testing.T) {
	const n = 10000
	p := withMany(t, n)
	f := p.files[filepath.Join(p.dir, "all.yaml")]
	pass, count := time.Hour, time.Hour
	for range 7 {
		start := time.Now()
		if noted := noteEach(f); noted != 2*n {
			t.Fatalf("%d are noted", noted)
		}
		pass, start = min(pass, time.Since(start)), time.Now()
		p.countAbsences(p.now, true)
		count = min(count, time.Since(start))
	}
	t.Logf("a pass: %s, counting: %s", pass, count)
	if count > 30*pass {
		t.Errorf("counting takes %s, where a pass over the documents takes %s", count, pass)
	}
	if gone := len(p.absent) + len(p.objectsGone); gone > 0 {
		t.Errorf("%d count as gone", gone)
	}
}

// The room of a resolution is used again, and what came of it is not in it.
func TestASnapshotStaysAsItWas(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a", "b", "c", "d")
	p := at(t, dir, nil)
	before := *p.last
	said := describeSnapshot(before)
	must(t, errors.Join(os.Remove(filepath.Join(dir, "a.yaml")), os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("no"), 0o600)))
	p.expect("a@c.yaml=busybox b@b.yaml=busybox c@c.yaml=busybox d@d.yaml=busybox held:c.yaml bad:c.yaml ?") // where a may be, too
	if now := describeSnapshot(before); now != said {
		t.Errorf("the snapshot was %q, and became %q", said, now)
	}
}

// What is decided of pods that are as they were costs the lists in the snapshot, and no more.
func TestAResolutionCostsLittleForEachPod(t *testing.T) {
	dir := t.TempDir()
	var pods []string
	for k := range 500 {
		pods = append(pods, fmt.Sprintf("p%04d", k))
	}
	fill(t, dir, pods...)
	p := at(t, dir, nil)
	spent := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			p.resolve()
		}
	})
	if of := spent.AllocedBytesPerOp() / 500; of > 30 || spent.AllocsPerOp() > 50 {
		t.Errorf("%d bytes for each pod, %d allocations in all", of, spent.AllocsPerOp())
	}
}
