package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// The table of annotations has all that the code knows: what looks like one in a string of
// it is in the table, or a label or a file.
func TestTheTableHasEveryAnnotation(t *testing.T) {
	others := map[string]bool{podspec.LabelInstance: true, "monopod.sock": true, "monopod.service": true, "monopod.conf": true, "monopod.log": true, "monopod.yaml": true}
	seen := 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/e2e/") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range regexp.MustCompile(`"(monopod\.[a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			if _, known := annotations.Named(m[1]); known {
				seen++
			} else if !others[m[1]] {
				t.Errorf("%s: %s is not in the table", file, m[1])
			}
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%v, %d found", err, seen)
	}
}

// docs/annotations.md is the table in prose; MONOPOD_UPDATE=1 writes it again.
func TestTheDocsHaveTheTableOfAnnotations(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Annotations\n\nAll names that begin with `monopod.` are monopod's: one that it does not know is an error on a pod and on a signed list, which says what\n" +
		"may be meant. On a workload, a ConfigMap, a Secret, a claim or another list it is a warning, as it has no effect there, nor has one that it knows.\n" +
		"A version of a pod that a former monopod accepted with such an annotation runs on, with a warning.\n")
	for _, on := range annotations.Places() {
		fmt.Fprintf(&b, "\n## %s\n\n| annotation | what it is for | value |\n|---|---|---|\n", on.Title)
		for _, a := range annotations.All() {
			if a.On == on.Where {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Name, a.About, a.Values)
			}
		}
	}
	const file = "../docs/annotations.md"
	if os.Getenv("MONOPOD_UPDATE") != "" {
		noErr(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != b.String() {
		t.Errorf("%s is not the table: MONOPOD_UPDATE=1 go test ./agent -run Annotation (%v)", file, err)
	}
}
