package manifests

import (
	"fmt"
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
