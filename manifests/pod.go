// Package manifests is the desired state: it reads Pod manifests from a folder,
// gives them the identity and the defaults that a kubelet would give them,
// reports problems with file, line and column, and offers complete snapshots of
// the desired pods.
//
// A pod or object that was given and is missing goes only if every content that may give it was
// read completely, after a settle time. A content of any file that does not parse, or is being
// written, may give what was known when it came, and not what was first given after that: what the
// file gave before, what it names, and, as it may have been cut short, whatever went when it came. One that cannot be read
// at all may if it became so when the other went. In a folder that was made again what is missing
// waits for longer, from the last new file on.
package manifests

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

// What files say, in the words of package documents.
type (
	Key       = documents.Key
	Pod       = documents.Pod
	ObjectKey = documents.ObjectKey
	Object    = documents.Object
	Options   = documents.Options
	Fill      = documents.Fill
	Placed    = documents.Placed
	Place     = documents.Place
)

// NewObject is documents.NewObject.
func NewObject(m *v1.ConfigMap, s *v1.Secret, path string) *Object {
	return documents.NewObject(m, s, path)
}

// KeyOf is documents.KeyOf.
func KeyOf(p *v1.Pod) Key { return documents.KeyOf(p) }

// Decode is documents.Decode.
func Decode(file string, data []byte, o Options) ([]*Pod, []decode.Problem) {
	return documents.Decode(file, data, o)
}

// DecodePlaced is documents.DecodePlaced.
func DecodePlaced(file string, data []byte, o Options) ([]Placed, []documents.FoundObject, []decode.Problem) {
	return documents.DecodePlaced(file, data, o)
}

// Restored is documents.Restored.
func Restored(accepted *v1.Pod) string { return documents.Restored(accepted) }

// File is what one file of the folder gives.
type File struct {
	Path     string           `json:"path"`
	Pods     []string         `json:"pods,omitempty"`     // namespace/name of the pods it gives
	Held     bool             `json:"held,omitempty"`     // an earlier version runs on, the present one was refused
	Problems []decode.Problem `json:"problems,omitempty"` // in order of line
	SHA256   string           `json:"-"`                  // of what was read, in hex; "": nothing could be
	// Hashes are those of the contents of all pods in the file, by namespace/name, also if another file gives them.
	Hashes map[string]poduid.ContentHash `json:"-"`
	// Forgotten are those of its pods, by namespace/name, and of its objects that were forgotten
	// by hand and that no answer has given since.
	Forgotten []string `json:"-"`
	// Objects are the ConfigMaps and Secrets that the file names; true: its document is good.
	Objects map[ObjectKey]bool `json:"-"`
	// Orders are the places of the StartAfter annotations in the file, by
	// namespace/name of the pods that have one.
	Orders map[string]decode.Position `json:"-"`
}

// Snapshot is all desired pods, as one complete set.
type Snapshot struct {
	// Pods are the desired pods, sorted by key. A pod that the Source once knew
	// and that is absent here is proven gone.
	Pods []*Pod
	// Forgotten are those of its pods, by namespace/name, and of its objects that were forgotten
	// by hand and that no answer has given since.
	Forgotten []string `json:"-"`
	// Objects are the ConfigMaps and Secrets, sorted by key; for them the same holds.
	Objects []*Object
	// Files are all manifests of the folder, sorted by path. One of which nothing has changed is the
	// same as in the snapshot before; none may be changed.
	Files []*File
	// Problems are those of the folder itself.
	Problems []decode.Problem
	// Read is true once the folder was listed and each file in it read, as far as
	// that is possible: problems of a file are in its Problems.
	Read bool
	// Complete is false while the folder, or a file whose pods are not known,
	// cannot be read, or the folder may be another than the one that pods came
	// from: then no pod that the Source never knew is gone either.
	Complete bool
}

// Same reports whether two desired pods are the same: both none, or the same
// content under the same uid.
func Same(a, b *Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.UID == b.UID
}

// File returns the file of a path; nil: there is none.
func (s *Snapshot) File(path string) *File {
	at, is := slices.BinarySearchFunc(s.Files, path, func(f *File, path string) int { return strings.Compare(f.Path, path) })
	if !is {
		return nil
	}
	return s.Files[at]
}

// Pod returns the desired pod of a name; nil: there is none.
func (s *Snapshot) Pod(key Key) *Pod {
	at, is := slices.BinarySearchFunc(s.Pods, key, func(p *Pod, key Key) int { return compareKeys(p.Key(), key) })
	if !is {
		return nil
	}
	return s.Pods[at]
}

// equal reports whether two snapshots say the same.
func equal(a, b Snapshot) bool {
	return a.Complete == b.Complete && a.Read == b.Read && slices.Equal(a.Pods, b.Pods) && slices.Equal(a.Objects, b.Objects) &&
		a.SameFiles(&b) && slices.EqualFunc(a.Files, b.Files, func(f, g *File) bool { return f == g || maps.Equal(f.Objects, g.Objects) })
}

// SameFiles reports whether two snapshots say the same of their files.
func (s *Snapshot) SameFiles(o *Snapshot) bool {
	return slices.Equal(s.Problems, o.Problems) && slices.EqualFunc(s.Files, o.Files, (*File).same)
}

// same reports whether two files say the same, as far as their objects do not tell.
func (f *File) same(g *File) bool {
	return f == g || f.Path == g.Path && f.Held == g.Held && slices.Equal(f.Pods, g.Pods) &&
		slices.Equal(f.Problems, g.Problems) && maps.Equal(f.Orders, g.Orders) &&
		f.SHA256 == g.SHA256 && slices.Equal(f.Forgotten, g.Forgotten) && maps.Equal(f.Hashes, g.Hashes)
}
