// Package archives has the runtime import the archives of images that stand in folders.
package archives

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"monopod/manifests"
	"monopod/manifests/imagename"
)

// State is what becomes of an archive.
type State string

// States of archives.
const (
	BeingWritten State = "being written" // a program has it open for writing
	Unread       State = "unread"        // what it has is not known yet
	Due          State = "due"           // waits for its turn, or for the runtime
	Importing    State = "importing"
	Imported     State = "imported" // the runtime has its images
	Broken       State = "broken"
)

// Known is what is known of an archive.
type Known struct {
	Path  string
	State State
	Index Index  // empty while it is not known
	Why   string // it is broken: a sentence with what to do; "": it is not
}

// Names returns the full names of the archive's images.
func (k *Known) Names() []string { return namesOf(k.Index) }

func namesOf(i Index) (names []string) {
	for _, image := range i.Images {
		names = append(names, image.Name)
	}
	return names
}

// names reports whether the archive has an image, by its full name.
func (k *Known) names(full string) bool {
	return slices.ContainsFunc(k.Index.Images, func(i Image) bool { return i.Name == full })
}

// full returns the full name of an image as in a manifest; "": it is no name.
func full(name string) string {
	n, err := imagename.Parse(name)
	if err != nil {
		return ""
	}
	return n.Canonical()
}

// Is reports whether a name in a folder is that of an archive: *.tar, *.tar.gz, *.tgz and *.tar.zst,
// not hidden.
func Is(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	return slices.ContainsFunc([]string{".tar", ".tar.gz", ".tgz", ".tar.zst"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// signature distinguishes versions of an archive without reading it. It survives an unmount. Changed
// is the time that only the kernel sets: a file that replaces another one may have its size and Mod.
type signature struct {
	Size    int64     `json:"size"`
	Mod     time.Time `json:"mod"`
	Changed time.Time `json:"changed,omitzero"`
}

func signatureOf(info os.FileInfo) signature {
	sig := signature{Size: info.Size(), Mod: info.ModTime().Round(0).UTC()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.Changed = time.Unix(st.Ctim.Unix()).UTC()
	}
	return sig
}

// file is an archive that was found.
type file struct {
	path    string
	sig     signature
	written bool // a process may have it open for writing; only of news
}

// list returns the archives of a folder, sorted. isNews is asked of each.
func list(dir string, isNews func(file) bool) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if !Is(e.Name()) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		f := file{path: path, sig: signatureOf(info)}
		f.written = isNews(f) && beingWritten(path, info)
		all = append(all, f)
	}
	return all, nil
}

// beingWritten reports whether a process has the file open for writing.
func beingWritten(path string, info os.FileInfo) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // the read of it says why
	}
	defer f.Close()
	return manifests.BeingWritten(f, info)
}

// openTo is the error of what other users may write.
type openTo struct{ words string }

func (o *openTo) Error() string { return o.words }

// refuse returns an *openTo if other users than root and the agent's may write a folder or an archive,
// or what leads to it. root is the agent's root dir.
func refuse(path, root string) error {
	for _, p := range manifests.OpenTo(path, root, "archives") {
		return &openTo{p.File + " " + p.Message}
	}
	return nil
}
