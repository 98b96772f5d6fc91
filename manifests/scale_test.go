package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// counted returns what it takes to count what is gone from a file with n pods and n ConfigMaps: the least
// of some tries.
func counted(t *testing.T, n int) time.Duration {
	dir := t.TempDir()
	var text strings.Builder
	for k := range n {
		text.WriteString(podYAML(fmt.Sprintf("p%05d", k)) + "---\n" + mapYAML(fmt.Sprintf("c%05d", k), "v") + "---\n")
	}
	must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text.String()), 0o600))
	p := at(t, dir, nil)
	if len(p.last.Pods) != n || len(p.last.Objects) != n {
		t.Fatalf("%d pods and %d objects of %d each", len(p.last.Pods), len(p.last.Objects), n)
	}
	least := time.Hour
	for range 7 {
		start := time.Now()
		p.countAbsences(p.now, true)
		least = min(least, time.Since(start))
	}
	return least
}

// A file may have thousands of documents, and is looked at with each look at the folder.
func TestWhatIsGoneIsCountedInTimeThatGrowsWithAFilesDocuments(t *testing.T) {
	few, many := counted(t, 200), counted(t, 2000)
	t.Logf("200 of each: %s, 2000 of each: %s", few, many)
	if many > 40*few {
		t.Errorf("ten times as many documents take %s, and %s before", many, few)
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
