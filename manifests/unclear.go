package manifests

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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
	// Seen is the turn in which it was first seen: what was first given in it or a later one (see
	// Record.Came) was not given by it. 0: an older monopod saw it.
	Seen int `json:"seen,omitempty"`
	// Later are, of what an older monopod saw, the pods and objects that were first given after that,
	// until it ended. It is not written of other contents: a list for each of many would take the
	// product of their number and that of the pods.
	Later []string `json:"later,omitempty"`
	// Before are those that the file gave earlier, since its last content without an error.
	Before []string `json:"before,omitempty"`
}

// cameWith records which content a file has now. For another content, what it may give is determined
// from the start.
func (s *Source) cameWith(f *fileState, version string, now time.Time) {
	if f.version != "" && f.version != version {
		f.seen, f.later = s.turn, nil
	}
	if f.version != version {
		f.since = now
	}
	f.version = version
}

// isLater reports whether a pod or object was first given after the content of a file was first seen,
// and so not by it.
func (s *Source) isLater(f *fileState, name string) bool {
	came, isKnown := s.record.Came[name]
	return isKnown && came >= f.seen || f.later[name]
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
	case f.before[name] && !s.isLater(f, name) && f.mayGive():
		return true
	case f.failed:
		return isTogether
	}
	return f.Unclear && !s.isLater(f, name) && (gone == nil || isTogether || strings.Contains(f.text, s.baseOf(name)))
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

// noteLater records which contents cannot be read completely, and which pods and objects were first
// given after they were seen. Whatever the very first pass finds counts as such.
func (r *resolution) noteLater() {
	s := r.source
	if s.here == nil && s.Dir != "" || len(s.folder) > 0 {
		return
	}
	came, unclear := r.arrivals(), map[string]Unclear{}
	for path, f := range s.files {
		if (f.Unclear || f.wrong()) && f.version != "" || f.isRecalled() {
			unclear[path] = Unclear{Version: f.version, Seen: f.seen, Later: slices.Sorted(maps.Keys(f.later)), Before: slices.Sorted(maps.Keys(f.before))}
		}
	}
	if !reflect.DeepEqual(unclear, s.record.Unclear) {
		s.record.Unclear = unclear
	}
	s.record.Came = came
	s.turn++
}

// arrivals returns in which turn the pods and objects were first given: only of those that came since
// the oldest content was seen that may hide one; nil: there is none.
func (r *resolution) arrivals() map[string]int {
	s, oldest := r.source, math.MaxInt
	for _, f := range s.files {
		if f.mayGive() || !f.waited.IsZero() || f.isRecalled() {
			oldest = min(oldest, f.seen)
		}
	}
	if oldest == math.MaxInt {
		return nil
	}
	came, first := map[string]int{}, s.record.Unclear == nil
	note := func(name string, isNew bool) {
		at, isKnown := s.record.Came[name]
		switch {
		case isNew:
			came[name] = s.turn
		case isKnown && at >= oldest:
			came[name] = at
		}
	}
	for key := range r.pods {
		note(key.String(), s.current[key] == nil || first && len(r.claims[key]) > 0)
	}
	for key, o := range r.objects {
		note(key.String(), s.objects[key] == nil || first && s.files[o.File] != nil && s.files[o.File].givesObject(key))
	}
	return came
}

// lastTurn returns the latest turn in a record.
func (r *Record) lastTurn() (last int) {
	for _, u := range r.Unclear {
		last = max(last, u.Seen)
	}
	for _, turn := range r.Came {
		last = max(last, turn)
	}
	return last
}

// recallUnclear gives a file that is new to the Source what was saved of its content.
func (s *Source) recallUnclear(path string, f *fileState) {
	was, ok := s.record.Unclear[path]
	if !ok {
		return
	}
	f.version, f.seen, f.later, f.before = was.Version, cmp.Or(was.Seen, s.turn), setOf(was.Later), setOf(was.Before)
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
