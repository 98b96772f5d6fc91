package cli

import (
	"fmt"
	"io"
	"strings"

	"monopod/agent/status"
)

// Checked is one file that `monopod validate` looked at.
type Checked struct {
	Path     string // as the person gave it
	Pods     []CheckedPod
	Problems []status.Problem // with File as the person gave it
}

// CheckedPod is a pod that is fit to run.
type CheckedPod struct {
	Name       string // namespace/name
	Containers int    // init containers included
}

// Counts sums up what was checked.
type Counts struct{ Files, Pods, Problems, Warnings int }

// PrintProblems prints the problems of each file, the pods of each file that
// has none but warnings, and a line that sums up. The files are good if
// Problems is 0.
func PrintProblems(w io.Writer, files []Checked) (Counts, error) {
	n := Counts{Files: len(files)}
	var out strings.Builder
	var good table
	for _, f := range files {
		n.Pods += len(f.Pods)
		warnings := 0
		for _, p := range f.Problems {
			if p.Warning {
				warnings++
			}
			fmt.Fprintln(&out, problemLine(p, ""))
		}
		n.Warnings += warnings
		n.Problems += len(f.Problems) - warnings
		if warnings == len(f.Problems) {
			addFile(&good, f)
		}
	}
	good.print(&out)
	fmt.Fprintln(&out, n)
	_, err := io.WriteString(w, out.String())
	return n, err
}

// addFile adds a line for each pod of a good file.
func addFile(t *table, f Checked) {
	for _, p := range f.Pods {
		t.add(plainCells([]string{"ok", f.Path, p.Name + " (" + count(p.Containers, "container") + ")"})...)
	}
	if len(f.Pods) == 0 {
		t.add(plainCells([]string{"ok", f.Path, "no pods"})...)
	}
}

// String is such as "3 files, 5 pods, 2 problems, 1 warning".
func (n Counts) String() string {
	s := count(n.Files, "file") + ", " + count(n.Pods, "pod") + ", " + count(n.Problems, "problem")
	if n.Warnings > 0 {
		s += ", " + count(n.Warnings, "warning")
	}
	return s
}

func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}
