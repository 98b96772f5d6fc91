package check

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"monopod/agent/status"
	"monopod/manifests"
)

// Several folders are read as the agent's: a later one wins over those before it by the names of
// pods and objects, and an empty file in it, or a link to /dev/null, masks the files of its name.

// isLayered reports whether the arguments have several folders.
func (v *Result) isLayered() bool { return v.rank > 1 }

// mask takes out the files that a later folder masks, and those that mask them.
func (v *Result) mask() {
	if !v.isLayered() {
		return
	}
	masks := map[string]input{} // by name, of the last folder that masks it
	for _, in := range v.inputs {
		if in.isMask() {
			masks[filepath.Base(in.path)] = in
		}
	}
	v.inputs = slices.DeleteFunc(v.inputs, func(in input) bool {
		by, isMasked := masks[filepath.Base(in.path)]
		switch {
		case in.rank < 1 || !isMasked || in.rank > by.rank:
			return false
		case in.rank == by.rank:
			v.note(in.path, "masks the files of this name in the folders before")
		default:
			v.note(in.path, by.path+" masks it")
		}
		return true
	})
}

// isMask reports whether a file of a folder that is not the first is empty, or a link to /dev/null.
func (in input) isMask() bool { return in.rank > 1 && len(in.data) == 0 }

// note adds a file of which nothing is read.
func (v *Result) note(path, why string) {
	v.Files = append(v.Files, File{Path: path, Problems: []status.Problem{{File: path, Warning: true, Note: true, Message: why}}})
}

// byRank returns the files in the order in which they win.
func (v *Result) byRank() []input {
	all := slices.Clone(v.inputs)
	slices.SortStableFunc(all, func(a, b input) int { return cmp.Compare(b.rank, a.rank) })
	return all
}

// reorder puts the files into the order of the arguments.
func (v *Result) reorder() {
	at := func(f File) int { return slices.IndexFunc(v.inputs, func(in input) bool { return in.path == f.Path }) }
	slices.SortStableFunc(v.Files, func(a, b File) int { return cmp.Compare(at(a), at(b)) })
}

// gaveWay notes that what wins over a file gives what the file gives, and reports whether it does.
func (v *Result) gaveWay(f *File, rank int, what string, line, column int) bool {
	if by, isGiven := v.ranks[what]; !isGiven || rank == 0 || by <= rank {
		return false
	}
	f.Problems = append(f.Problems, status.Problem{File: f.Path, Line: line, Column: column, Warning: true, Note: true,
		Message: fmt.Sprintf("%s gives %s, too, and wins", v.From[what], what)})
	return true
}

// readOf reads a file of a folder; a link to /dev/null has no content where such a link masks.
func readOf(path string, rank int) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && rank > 1 && manifests.IsNull(info) {
		return nil, nil
	}
	return manifests.ReadFile(path)
}
