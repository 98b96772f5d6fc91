// Package check checks manifests as the agent would.
package check

import (
	"fmt"
	"io"
	"strings"

	"monopod/agent/print"
	"monopod/agent/status"
)

// File is one file that `monopod validate` has checked.
type File struct {
	Path     string // as given
	Pods     []Pod
	Objects  []string         // ConfigMaps and Secrets, such as "ConfigMap default/app"
	Problems []status.Problem // with File as given
}

// Pod is a pod that is fit to run.
type Pod struct {
	Name       string // namespace/name
	Containers int    // init containers included
}

// Counts summarizes what was checked.
type Counts struct{ Files, Pods, Problems, Warnings, Notes int }

// Print prints notes of folders, the problems of each file, the pods of each file that has only
// warnings, and a line with the counts. The files are good if Problems is 0.
func Print(w io.Writer, files []File, notes ...status.Problem) (Counts, error) {
	n := Counts{Files: len(files), Notes: len(notes)}
	var out strings.Builder
	var good print.Table
	for _, p := range notes {
		fmt.Fprintln(&out, print.ProblemLine(p, ""))
	}
	for _, f := range files {
		n.Pods += len(f.Pods)
		problems := n.Problems
		for _, p := range f.Problems {
			switch {
			case p.Note:
				n.Notes++
			case p.Warning:
				n.Warnings++
			default:
				n.Problems++
			}
			fmt.Fprintln(&out, print.ProblemLine(p, ""))
		}
		if n.Problems == problems {
			addFile(&good, f)
		}
	}
	good.Print(&out)
	fmt.Fprintln(&out, n)
	_, err := io.WriteString(w, out.String())
	return n, err
}

// addFile adds a line for each pod of a good file.
func addFile(t *print.Table, f File) {
	for _, p := range f.Pods {
		t.Line("ok", f.Path, p.Name+" ("+count(p.Containers, "container")+")")
	}
	for _, o := range f.Objects {
		t.Line("ok", f.Path, o)
	}
	if len(f.Pods)+len(f.Objects) == 0 {
		t.Line("ok", f.Path, "no pods")
	}
}

// String returns such as "3 files, 5 pods, 2 problems, 1 warning".
func (n Counts) String() string {
	s := count(n.Files, "file") + ", " + count(n.Pods, "pod") + ", " + count(n.Problems, "problem")
	if n.Warnings > 0 {
		s += ", " + count(n.Warnings, "warning")
	}
	if n.Notes > 0 {
		s += ", " + count(n.Notes, "note")
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
