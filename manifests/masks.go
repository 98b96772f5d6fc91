package manifests

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Layer is the place of a folder among several.
type Layer struct {
	// Masks says that there are folders below it: an empty file, or a link to /dev/null, masks the
	// files of its name there, as in a folder of systemd's units.
	Masks bool
	// Offered gets a value, if it has room, after each snapshot.
	Offered chan<- struct{}
}

// tell says that there is another snapshot.
func (l *Layer) tell() {
	if l == nil {
		return
	}
	select {
	case l.Offered <- struct{}{}:
	default:
	}
}

func (l *Layer) mayMask() bool { return l != nil && l.Masks }

// Outside is what a folder has to know of those around it.
type Outside struct {
	Masked map[string]string // by the names of files that are not read here: the paths of those that mask them
	Claims map[Key]bool      // PersistentVolumeClaims that the files of other folders give
	Turn   int               // numbers them
}

// Seen is what the folders around one have to know of it.
type Seen struct {
	Masks  []string // the names of the files that it masks, sorted
	Claims []Key    // the PersistentVolumeClaims that its files give, sorted
	Turn   int      // of the Outside by which its files were read
}

func (s *Seen) equal(o *Seen) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Turn == o.Turn && slices.Equal(s.Masks, o.Masks) && slices.Equal(s.Claims, o.Claims)
}

// Surround tells a Source, which has a Layer, of the folders around its own. The newest counts.
// One goroutine may call it.
func (s *Source) Surround(o Outside) {
	select {
	case <-s.outside:
	default:
	}
	s.outside <- o // the slot is free: there is no other sender
}

// takeOutside takes over what is known of the folders around before this one is read.
func (s *Source) takeOutside() {
	select {
	case o := <-s.outside:
		s.surround(o)
	default:
	}
}

// surround takes over what is known of the folders around.
func (s *Source) surround(o Outside) {
	s.full = s.full || !maps.Equal(o.Masked, s.around.Masked)
	s.around = o
}

// masksAny reports whether the folder masks files of others.
func (s *Source) masksAny() bool { return s.Layer.mayMask() && len(s.masking.names) > 0 }

// maskOf returns the file of another folder that masks the one at path; "": none does.
func (s *Source) maskOf(path string) string { return s.around.Masked[filepath.Base(path)] }

// withoutMasked returns the paths that no other folder masks, and records the others.
func (s *Source) withoutMasked(paths []string) []string {
	s.masked = nil
	return slices.DeleteFunc(paths, func(path string) bool {
		by := s.maskOf(path)
		if by != "" {
			s.masked = append(s.masked, &File{Path: path, MaskedBy: by})
		}
		return by != ""
	})
}

// masking is the names of the files of other folders that a folder masks. To mask one removes what
// it gives, and to unmask one starts that: both take the same proof as the removal of a file.
type masking struct {
	names   map[string]bool
	changes map[string]*absence // of the names that are about to be masked, or to be unmasked
}

// knowMasks takes over the masks of the record.
func (s *Source) knowMasks() {
	s.masking = masking{names: map[string]bool{}, changes: map[string]*absence{}}
	for _, name := range s.record.Masks {
		s.masking.names[name] = true
	}
}

// countMasks records which files have begun or ceased to be masks, as countAbsences does for pods.
// What the folder has when it is read for the first time counts at once, as no pod runs yet for it.
func (s *Source) countMasks(now time.Time, complete bool) {
	if !s.Layer.mayMask() {
		return
	}
	names := maps.Clone(s.masking.names)
	for path, f := range s.files {
		if f.isMask {
			names[filepath.Base(path)] = true
		}
	}
	for name := range names {
		s.countMask(name, now, complete)
	}
	maps.DeleteFunc(s.masking.changes, func(name string, _ *absence) bool { return !names[name] })
}

func (s *Source) countMask(name string, now time.Time, complete bool) {
	f, masks, a := s.files[s.pathOf(name)], s.masking.names[name], s.masking.changes[name]
	switch {
	case f != nil && (f.isMask == masks || f.mayGive() || f.failed):
		delete(s.masking.changes, name)
	case f != nil && (masks || s.last == nil): // it has a content again, or all is new
		s.setMask(name, f.isMask)
	case a == nil:
		s.masking.changes[name] = &absence{went: now, since: now}
	case complete && !now.Before(s.provenAt(a)):
		s.setMask(name, !masks)
	}
}

func (s *Source) setMask(name string, masks bool) {
	delete(s.masking.changes, name)
	if masks {
		s.masking.names[name] = true
	} else {
		delete(s.masking.names, name)
	}
}

// pathOf returns the path of a manifest of that name.
func (s *Source) pathOf(name string) string {
	if filepath.Base(s.Dir) == name && s.files[s.Dir] != nil { // one file in place of a folder
		return s.Dir
	}
	return filepath.Join(s.Dir, name)
}

// noteMasks records the masks: while the folder cannot be read, they last.
func (s *Source) noteMasks() {
	s.record.Masks = nil
	if len(s.masking.names) > 0 {
		s.record.Masks = slices.Sorted(maps.Keys(s.masking.names))
	}
}

// addLayer adds to a snapshot what the folders around must know, and the masked files.
func (s *Source) addLayer(next *Snapshot) {
	if s.Layer == nil {
		return
	}
	next.Layer = &Seen{Masks: s.record.Masks, Turn: s.around.Turn}
	for _, f := range s.files {
		next.Layer.Claims = append(next.Layer.Claims, f.alone.Claims...)
	}
	slices.SortFunc(next.Layer.Claims, CompareKeys)
	next.Layer.Claims = slices.Compact(next.Layer.Claims)
	if len(s.masked) > 0 {
		next.Files = append(next.Files, s.masked...)
		slices.SortFunc(next.Files, func(f, g *File) int { return strings.Compare(f.Path, g.Path) })
	}
}

// IsNull reports whether a path leads to /dev/null.
func IsNull(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Mode&syscall.S_IFMT == syscall.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}
