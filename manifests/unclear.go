package manifests

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Unclear is a content of a file that cannot be read completely or has an error, as a Source saves
// it. Builds without this field drop it when they save a Record: the next Source that has it then
// starts as after an update.
type Unclear struct {
	Version string `json:"version"` // tells it from what the file says next
	// Later are the pods and objects that were first given after the content was first seen, and so
	// not by it.
	Later []string `json:"later,omitempty"`
	// Before are those that the file gave earlier, since its last content without an error.
	Before []string `json:"before,omitempty"`
}

// came records which content a file has now. For another content, what it may give is determined
// from the start.
func (f *fileState) came(version string, now time.Time) {
	if f.version != "" && f.version != version {
		f.later = nil
	}
	if f.version != version {
		f.since = now
	}
	f.version = version
}

// unreadable returns the version of a file that cannot be read.
func unreadable(err string, is signature) string {
	return fmt.Sprintf("%s %d %d %d %d", err, is.dev, is.ino, is.size, is.ctime)
}

// mayHide reports whether a file may give the pod or object of that name, which is gone. It need
// not be the file that gave it last. As far as the file's content is known, it may if the file gave
// it, too, before it became invalid, if the name occurs in it, or if the content was first seen
// when the other went missing, as it may have been cut short. A file that cannot be read at all may
// only in the last case.
func (s *Source) mayHide(path, name string, gone *absence) bool {
	f := s.files[path]
	isTogether := gone != nil && !f.since.Before(gone.went.Add(-s.Settle))
	switch {
	case !f.waited.IsZero(): // what the writer writes is newer than all else
		return !IsURL(path)
	case f.before[name] && !f.later[name] && f.mayGive():
		return true
	case f.failed:
		return isTogether
	}
	return f.Unclear && !f.later[name] && (gone == nil || isTogether || strings.Contains(f.text, s.baseOf(name)))
}

// baseOf returns the part of a pod's or object's name that a manifest has: without kind and
// namespace, without the node suffix, and without the ordinal of a workload's pod.
func (s *Source) baseOf(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	if s.NameSuffix {
		name = strings.TrimSuffix(name, nodeSuffix(s.NodeName))
	}
	base := strings.TrimRight(name, "0123456789")
	if base == name || !strings.HasSuffix(base, "-") || base == "-" {
		return name
	}
	return strings.TrimSuffix(base, "-")
}

// nodeSuffix returns what a node of that name appends to the names of pods.
func nodeSuffix(node string) string { return "-" + strings.ToLower(strings.TrimSpace(node)) }

// hidden returns a file that may give the pod or object of that name, which is gone; gone is nil if
// it is not known since when. It prefers a file that cannot be read as it is (isUnclear) to one
// that is being written. "": all files that may give it were read completely.
func (s *Source) hidden(name string, gone *absence) (path string, isUnclear bool) {
	var may []string
	for at := range s.files {
		if s.mayHide(at, name, gone) {
			may = append(may, at)
		}
	}
	slices.Sort(may)
	for _, at := range may {
		if s.files[at].waited.IsZero() {
			return at, true
		}
	}
	if len(may) > 0 {
		return may[0], false
	}
	return "", false
}

// noteLater records, for each content that cannot be read completely, which pods and objects were
// first given by other files after it was seen. Whatever the very first pass finds counts as such.
func (r *resolution) noteLater() {
	s := r.source
	if s.here == nil && s.Dir != "" || len(s.folder) > 0 {
		return
	}
	for path, f := range s.files {
		if f.mayGive() || !f.waited.IsZero() || f.isRecalled() {
			s.noteLaterThan(path, f, r)
		}
	}
	unclear := map[string]Unclear{}
	for path, f := range s.files {
		if (f.Unclear || f.wrong()) && f.version != "" || f.isRecalled() {
			unclear[path] = Unclear{Version: f.version, Later: slices.Sorted(maps.Keys(f.later)), Before: slices.Sorted(maps.Keys(f.before))}
		}
	}
	if !reflect.DeepEqual(unclear, s.record.Unclear) {
		s.record.Unclear = unclear
	}
}

// noteLaterThan is noteLater for one file.
func (s *Source) noteLaterThan(path string, f *fileState, r *resolution) {
	first, later := s.record.Unclear == nil, map[string]bool{}
	for key := range r.pods {
		if name := key.String(); f.later[name] || s.current[key] == nil || first && len(r.claims[key]) > 0 {
			later[name] = true
		}
	}
	for key, o := range r.objects {
		if name := key.String(); f.later[name] || s.objects[key] == nil || first && s.files[o.File] != nil && s.files[o.File].givesObject(key) {
			later[name] = true
		}
	}
	f.later = later
}

// recallUnclear gives a file that is new to the Source what was saved of its content.
func (s *Source) recallUnclear(path string, f *fileState) {
	was, ok := s.record.Unclear[path]
	if !ok {
		return
	}
	f.version, f.later, f.before = was.Version, map[string]bool{}, map[string]bool{}
	for _, name := range was.Later {
		f.later[name] = true
	}
	for _, name := range was.Before {
		f.before[name] = true
	}
}
