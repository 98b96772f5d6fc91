package docs

import (
	"strings"
	"testing"
)

func allPages(t *testing.T) []Page {
	t.Helper()
	pages, err := ReadPages("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// Each block of the docs is run by the tests, or has a reason why not.
func TestEachBlockIsRunOrHasAReason(t *testing.T) {
	seen := 0
	for _, page := range allPages(t) {
		for _, b := range page.Blocks {
			seen++
			steps, err := b.Steps()
			if err != nil {
				t.Errorf("%s: %v", page.Name, err)
			}
			if len(steps) == 0 && b.NotRun(page.Name) == "" {
				t.Errorf("%s:%d: nothing is done with this block (%q): give it a kind and a place, as doc.go says, or a reason in notrun.go", page.Name, b.Line, b.First())
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d blocks", seen)
	}
}

// A reason is that of one block, and where another page is said to have its lines, it has them.
func TestReasonsAreOfBlocks(t *testing.T) {
	for _, row := range notRun {
		found := 0
		for _, page := range allPages(t) {
			for _, b := range page.Blocks {
				if page.Name == row.page && b.First() == row.first {
					found++
					hasLines(t, page, b, row.in)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s has %d blocks that begin with %q", row.page, found, row.first)
		}
	}
}

// hasLines checks that blocks of the page in, which are run, have each line of a block.
func hasLines(t *testing.T, page Page, b Block, in string) {
	t.Helper()
	if in == "" {
		return
	}
	typed := map[string]bool{}
	for _, other := range allPages(t) {
		for _, o := range other.Blocks {
			if other.Name == in && o.NotRun(in) == "" {
				for line := range strings.Lines(o.Text) {
					typed[strings.TrimSpace(strings.TrimPrefix(line, "$ "))] = true
				}
			}
		}
	}
	for line := range strings.Lines(b.Text) {
		if !typed[strings.TrimSpace(line)] {
			t.Errorf("%s:%d: %s does not run this: %s", page.Name, b.Line, in, line)
		}
	}
}
