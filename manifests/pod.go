// Package manifests is the desired state: it reads Pod manifests from a folder, gives them the
// identity and the defaults that a kubelet would give them, reports problems with file, line and
// column, and offers complete snapshots of the desired pods.
//
// A pod or object that was given and is missing is removed only after a settle time, and only if
// every content that may give it was read completely. A content that does not parse, or is being
// written, in any file, may give whatever was known when it was first seen, but not what was first
// given after that: it may give what the file gave before, what it names, and, as it may have been
// cut short, what went missing at the same time. A file that cannot be read at all may give what
// went missing when it became unreadable. In a folder that was recreated the settle time is longer,
// and starts with the last new file.
package manifests

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

// The content of files, from package documents.
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

// Annotations that the kubelet sets on static pods, from package documents.
const (
	AnnotationSource = documents.AnnotationSource
	AnnotationSeen   = documents.AnnotationSeen
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

// AsGiven returns accepted versions as their manifests give them: without what their tags meant. One
// that no manifest gives stays as it is.
func AsGiven(accepted []*Pod) []*Pod {
	all := make([]*Pod, len(accepted))
	for k, p := range accepted {
		all[k] = p
		if p.Annotations[annotations.TagImages] != "" && !annotations.IsRestored(p.Pod) {
			given := *p
			given.Pod = annotations.WithTagImages(p.Pod, nil)
			given.Digest = Restored(given.Pod)
			all[k] = &given
		}
	}
	return all
}

// File is the content of one file of the folder.
type File struct {
	Path     string           `json:"path"`
	Pods     []string         `json:"pods,omitempty"`     // namespace/name of the desired pods that are its
	Held     bool             `json:"held,omitempty"`     // an earlier version runs on, the present one was refused
	Problems []decode.Problem `json:"problems,omitempty"` // in order of line
	SHA256   string           `json:"-"`                  // of what was read, in hex; "": nothing could be
	// MaskedBy is the file of another folder because of which this one is not read; "": none.
	MaskedBy string `json:"-"`
	// Hashes are the hashes of all pods in the file, by namespace/name, including pods that another
	// file gives.
	Hashes map[string]poduid.ContentHash `json:"-"`
	// Forgotten are its pods, by namespace/name, and its objects that the owner has had forgotten
	// and that no answer has given since.
	Forgotten []string `json:"-"`
	// Objects are the ConfigMaps and Secrets that the file names; true: its document is valid.
	Objects map[ObjectKey]bool `json:"-"`
	// Orders are the positions of the StartAfter annotations in the file, by namespace/name of the
	// pods that have one.
	Orders map[string]decode.Position `json:"-"`
}

// Snapshot is all desired pods, as one complete set.
type Snapshot struct {
	// Pods are the desired pods, sorted by key. A pod that the Source once knew and that is missing
	// here is proven gone.
	Pods []*Pod
	// Forgotten are its pods, by namespace/name, and its objects that the owner has had forgotten
	// and that no answer has given since.
	Forgotten []string `json:"-"`
	// Objects are the ConfigMaps and Secrets, sorted by key; a missing one is proven gone, too.
	Objects []*Object
	// Files are all manifests of the folder, sorted by path. An unchanged file is the same pointer
	// as in the snapshot before; none may be changed.
	Files []*File
	// Problems are those of the folder itself.
	Problems []decode.Problem
	// Read is true once the folder was listed and each file in it read as far as possible: problems
	// of a file are in its Problems.
	Read bool
	// Complete is false while the folder, or a file whose pods are not known, cannot be read, or
	// while the folder may be another than the one that pods came from. Then even a pod that the
	// Source never knew is not proven gone.
	Complete bool
	// Layer is what the folders around this one have to know; nil: the folder is the only one.
	Layer *Seen `json:"-"`
}

// Same reports whether two desired pods are the same: both nil, or the same content with the same
// uid.
func Same(a, b *Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.UID == b.UID
}

// File returns the file at a path; nil: there is none.
func (s *Snapshot) File(path string) *File {
	at, is := slices.BinarySearchFunc(s.Files, path, func(f *File, path string) int { return strings.Compare(f.Path, path) })
	if !is {
		return nil
	}
	return s.Files[at]
}

// Pod returns the desired pod with a key; nil: there is none.
func (s *Snapshot) Pod(key Key) *Pod {
	at, is := slices.BinarySearchFunc(s.Pods, key, func(p *Pod, key Key) int { return CompareKeys(p.Key(), key) })
	if !is {
		return nil
	}
	return s.Pods[at]
}

// equal reports whether two snapshots are equal.
func equal(a, b Snapshot) bool {
	return a.Complete == b.Complete && a.Read == b.Read && a.Layer.equal(b.Layer) && slices.Equal(a.Pods, b.Pods) && slices.Equal(a.Objects, b.Objects) &&
		a.SameFiles(&b) && slices.EqualFunc(a.Files, b.Files, func(f, g *File) bool { return f == g || maps.Equal(f.Objects, g.Objects) })
}

// Same reports whether two snapshots are equal.
func (s *Snapshot) Same(o *Snapshot) bool { return equal(*s, *o) }

// SameFiles reports whether two snapshots are equal in their files, apart from the files' objects.
func (s *Snapshot) SameFiles(o *Snapshot) bool {
	return slices.Equal(s.Problems, o.Problems) && slices.EqualFunc(s.Files, o.Files, (*File).Same)
}

// Same reports whether two files are equal, apart from their objects.
func (f *File) Same(g *File) bool {
	return f == g || f.Path == g.Path && f.Held == g.Held && f.MaskedBy == g.MaskedBy && slices.Equal(f.Pods, g.Pods) &&
		slices.Equal(f.Problems, g.Problems) && maps.Equal(f.Orders, g.Orders) &&
		f.SHA256 == g.SHA256 && slices.Equal(f.Forgotten, g.Forgotten) && maps.Equal(f.Hashes, g.Hashes)
}
