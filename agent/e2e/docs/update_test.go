//go:build e2e

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// isUpdate reports whether the pages are to quote what the screen shows: MONOPOD_UPDATE=1. Read the
// diff before you commit it.
func isUpdate() bool { return os.Getenv("MONOPOD_UPDATE") == "1" }

// correction is what a step showed instead of what the page quotes.
type correction struct {
	step  Step
	shown string
}

// correct writes the page with what the screen showed to the folder that the test was carried in,
// from where fetchPage takes it: the checkout on the machine is forgotten.
func (r reader) correct(all []correction) {
	r.Helper()
	text, err := os.ReadFile(pageFile(r.T, r.page.Name))
	check(r.T, err)
	lines := strings.SplitAfter(string(text), "\n")
	for _, c := range slices.Backward(all) {
		first := c.step.Line - 1 + strings.Count(c.step.Command, "\n")
		end := first
		for lines[end] != "```\n" && !strings.HasPrefix(lines[end], "$ ") {
			end++
		}
		lines = slices.Replace(lines, first, end, strings.Trim(c.shown, "\n")+"\n")
	}
	check(r.T, os.WriteFile(filepath.Join(carried, r.page.Name), []byte(strings.Join(lines, "")), 0o644))
}

// fetchPage takes a page that correct has written on the machine in dir.
func fetchPage(t *testing.T, dir, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, carried, page))
	if err == nil {
		check(t, os.WriteFile(pageFile(t, page), text, 0o644))
	}
}

func pageFile(t *testing.T, page string) string {
	t.Helper()
	if page == "README.md" {
		return filepath.Join(root(t), page)
	}
	return filepath.Join(root(t), "docs", page)
}
