package manifests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/shell"
)

// Writable returns what another user than root and the agent's own may write of what leads
// to a folder of manifests, or to one manifest, and to each file in it: who writes there is
// root on this machine. Each has its remedy. What is not there or cannot be read is left out.
//
// The rule is that of sshd for its keys (auth_secure_path): each folder of a path counts, and
// the sticky bit excuses none. Here the paths of links count, too, as sshd looks only at where
// they lead. A folder with the sticky bit that holds the agent's root dir as well is accepted
// on the way, if what is in it belongs to root: at the boot that empties it, the agent is new.
func Writable(dir, root string) []decode.Problem {
	a := newAsking()
	look := func(path string) []decode.Problem {
		found, err := ask(a, &a.ways, path, func() []decode.Problem { return writableFile(path, root, true) })
		if err != nil {
			return unknownWriters(path)
		}
		return found
	}
	found := look(dir)
	paths, err := ask(a, &a.paths, dir, func() []string { paths, _ := Paths(dir); return paths })
	if err != nil {
		found = append(found, unknownWriters(dir)...)
	}
	for _, path := range paths {
		found = append(found, look(path)...)
	}
	return firstOfEach(found)
}

// unknownWriters is what there is to say of a path whose file system gives no answer.
func unknownWriters(path string) []decode.Problem {
	return []decode.Problem{{File: path, Warning: true, Message: "gives no answer, so who may write it is not known: remove it, or see to its file system"}}
}

// writableFile returns what others may write of a file or folder and, if isWay, of the way to it.
func writableFile(path, root string, isWay bool) []decode.Problem {
	t := newTrail(root)
	if isWay {
		t.follow(path)
	} else {
		t.check(path, path, true)
	}
	return t.found
}

// writable returns what others may write of the folder, its files, of which paths are all, and
// the ways to them.
func (s *Source) writable(paths []string) []decode.Problem {
	all := slices.Clone(s.openTo)
	for _, path := range paths {
		all = append(all, s.files[path].writable...)
	}
	return firstOfEach(all)
}

// firstOfEach returns the problems without a second one of the same file.
func firstOfEach(all []decode.Problem) (out []decode.Problem) {
	said := map[string]bool{}
	for _, p := range all {
		if !said[p.File] {
			out = append(out, p)
		}
		said[p.File] = true
	}
	return out
}

// trail is what was passed on the way to manifests.
type trail struct {
	root   string          // the agent's root dir; "": none
	seen   map[string]bool // what was checked
	sticky map[string]bool // of these, the folders that are accepted for their sticky bit
	found  []decode.Problem
}

func newTrail(root string) *trail {
	return &trail{root: absolute(root), seen: map[string]bool{}, sticky: map[string]bool{}}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// elements are the names that a path is made of.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// mostLinks is how many links a path may lead through, as for the kernel.
const mostLinks = 40

// follow checks each folder of a path, those of the links on the way, and what it leads to.
func (t *trail) follow(path string) {
	path = absolute(path)
	if path == "" {
		return
	}
	here, rest := "/", elements(path)
	for links := 0; t.check(here, path, len(rest) == 0) && len(rest) > 0; {
		next := filepath.Join(here, rest[0]) // here has no links: ".." leads above it
		rest = rest[1:]
		target, err := os.Readlink(next)
		if err != nil { // it is no link, or not there
			here = next
			continue
		}
		if links++; links > mostLinks {
			return
		}
		if info, err := os.Lstat(next); err == nil && t.sticky[here] {
			t.add(next, ownedByOthers(info), "chown -h root "+shell.Word(next), path)
		}
		if filepath.IsAbs(target) {
			here = "/"
		}
		rest = append(elements(target), rest...)
	}
}

// check checks one folder or file, which is where the path of leads if isLast, and else on
// the way. It reports whether it is there.
func (t *trail) check(at, of string, isLast bool) (isThere bool) {
	info, err := os.Lstat(at)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	if t.seen[at] {
		return true
	}
	t.seen[at] = true
	isSticky := info.Mode()&fs.ModeSticky != 0 && !isLast
	why, remedy := ownedByOthers(info), "chown root "+shell.Word(at)
	switch {
	case why != "" || info.Mode().Perm()&0o022 == 0:
	case isSticky && t.holdsRoot(at):
		t.sticky[at] = true
	case isSticky:
		why, remedy = fmt.Sprintf("may be written by other users (mode 1%03o), who can run anything here as root once it was cleaned up", info.Mode().Perm()), ""
	default:
		why = fmt.Sprintf("may be written by other users (mode %04o), who can run anything here as root by it", info.Mode().Perm())
		remedy = "chmod go-w " + shell.Word(at)
	}
	if isLast {
		of = ""
	}
	t.add(at, why, remedy, of)
	return true
}

// add records what is wrong with a folder or file, through which the path of leads; "": with
// what is wanted itself.
func (t *trail) add(at, why, remedy, of string) {
	if why == "" {
		return
	}
	if of != "" {
		remedies := slices.DeleteFunc([]string{remedy, "keep manifests elsewhere than " + of}, func(s string) bool { return s == "" })
		remedy = strings.Join(remedies, ", or ")
	}
	t.found = append(t.found, decode.Problem{File: at, Message: why + ": " + remedy, Warning: true})
}

// holdsRoot reports whether the agent's root dir is below a folder.
func (t *trail) holdsRoot(folder string) bool {
	return strings.HasPrefix(t.root, strings.TrimSuffix(folder, "/")+"/")
}

// ownedByOthers says which other user a file or folder belongs to; "": to none.
func ownedByOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || isOwn(st.Uid) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d, who can run anything here as root by it", st.Uid)
}

// mayWrite reports whether another user than root and the agent's own may write a file of this mode
// and owner.
func mayWrite(mode fs.FileMode, owner uint32) bool { return mode&0o022 != 0 || !isOwn(owner) }

// isOwn reports whether a user is root or the agent's own.
func isOwn(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// SecretReaders warns of a file of Secrets that others than its owner may read by its mode.
func SecretReaders(path string, mode fs.FileMode, objects []documents.FoundObject) []decode.Problem {
	for _, o := range objects {
		if o.Secret != nil && mode&0o044 != 0 {
			return []decode.Problem{{File: path, Line: o.Line, Column: o.Column, Warning: true, Message: fmt.Sprintf(
				"holds a Secret, and other users may read it (mode %04o): chmod go-r %s", mode.Perm(), shell.Word(path))}}
		}
	}
	return nil
}
