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

// Writable returns where a user other than root and the agent's own can write to the path of a
// folder of manifests, or of one manifest, or to a file in that folder: such a user can become root
// on this machine. Each problem has its remedy. Paths that do not exist or cannot be read are left
// out.
//
// The rule is that of sshd for its keys (auth_secure_path): each folder of a path counts, and the
// sticky bit excuses none. Here the paths of links count, too; sshd checks only where they lead. A
// folder with the sticky bit that also holds the agent's root dir is accepted above the manifests,
// if what is in it belongs to root: a reboot that empties it removes the agent's state as well.
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

// unknownWriters returns the warning about a path whose file system gives no answer.
func unknownWriters(path string) []decode.Problem {
	return []decode.Problem{{File: path, Warning: true, Message: "gives no answer, so who may write it is not known: remove it, or see to its file system"}}
}

// writableFile returns the write access of other users to a file or folder and, if isWay, to the
// folders above it.
func writableFile(path, root string, isWay bool) []decode.Problem {
	t := newTrail(root)
	if isWay {
		t.follow(path)
	} else {
		t.check(path, path, true)
	}
	return t.found
}

// OpenTo returns the write access of other users to a file or folder, and to the folders and links on
// the way to it. what it is belongs into the remedies, such as archives; root is the agent's root dir.
func OpenTo(path, root, what string) []decode.Problem {
	t := newTrail(root)
	t.what = what
	t.follow(path)
	return t.found
}

// writable returns the write access of other users to the folder, its files (paths has all of
// them), and the folders above them.
func (s *Source) writable(paths []string) []decode.Problem {
	all := slices.Clone(s.openTo)
	for _, path := range paths {
		all = append(all, s.files[path].writable...)
	}
	return firstOfEach(all)
}

// firstOfEach returns the first problem of each file.
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

// trail is what was checked on the way to manifests.
type trail struct {
	root   string          // the agent's root dir; "": none
	what   string          // to keep elsewhere
	seen   map[string]bool // checked paths
	sticky map[string]bool // checked folders that are accepted although they have the sticky bit
	found  []decode.Problem
}

func newTrail(root string) *trail {
	return &trail{root: absolute(root), what: "manifests", seen: map[string]bool{}, sticky: map[string]bool{}}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// elements splits a path into its names.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// mostLinks is how many links a path may lead through, as for the kernel.
const mostLinks = 40

// follow checks each folder of a path, also of the links on the way, and the target.
func (t *trail) follow(path string) {
	path = absolute(path)
	if path == "" {
		return
	}
	here, rest := "/", elements(path)
	for links := 0; t.check(here, path, len(rest) == 0) && len(rest) > 0; {
		next := filepath.Join(here, rest[0]) // here has no links: ".." is the folder above
		rest = rest[1:]
		target, err := os.Readlink(next)
		if err != nil { // it is not a link, or does not exist
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

// check checks one folder or file; isLast: it is the target of the path of, not a folder on the
// way. It reports whether it exists.
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

// add records what is wrong with a folder or file. of is the path on whose way it is; "": it is the
// target itself.
func (t *trail) add(at, why, remedy, of string) {
	if why == "" {
		return
	}
	if of != "" {
		remedies := slices.DeleteFunc([]string{remedy, "keep " + t.what + " elsewhere than " + of}, func(s string) bool { return s == "" })
		remedy = strings.Join(remedies, ", or ")
	}
	t.found = append(t.found, decode.Problem{File: at, Message: why + ": " + remedy, Warning: true})
}

// holdsRoot reports whether the agent's root dir is below a folder.
func (t *trail) holdsRoot(folder string) bool {
	return strings.HasPrefix(t.root, strings.TrimSuffix(folder, "/")+"/")
}

// ownedByOthers returns a message with the other user whom a file or folder belongs to; "": none.
func ownedByOthers(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || isOwn(st.Uid) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d, who can run anything here as root by it", st.Uid)
}

// mayWrite reports whether a user other than root and the agent's own may write a file with this
// mode and owner.
func mayWrite(mode fs.FileMode, owner uint32) bool { return mode&0o022 != 0 || !isOwn(owner) }

// isOwn reports whether a user is root or the agent's own.
func isOwn(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// SecretReaders warns about a file with Secrets whose mode lets others than its owner read it.
func SecretReaders(path string, mode fs.FileMode, objects []documents.FoundObject) []decode.Problem {
	for _, o := range objects {
		if o.Secret != nil && mode&0o044 != 0 {
			return []decode.Problem{{File: path, Line: o.Line, Column: o.Column, Warning: true, Message: fmt.Sprintf(
				"holds a Secret, and other users may read it (mode %04o): chmod go-r %s", mode.Perm(), shell.Word(path))}}
		}
	}
	return nil
}
