package manifests

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// objectClaim is a file that gives an object.
type objectClaim struct {
	path string
	documents.FoundObject
}

// resolveObjects decides which ConfigMaps and Secrets exist, by the same rules as pods: only proof
// removes one, files take precedence over the URL, and of two files that give an object the one in
// use wins.
func (r *resolution) resolveObjects() {
	s := r.source
	claims, refused := map[ObjectKey][]objectClaim{}, map[ObjectKey]string{}
	for _, path := range r.paths {
		f := s.files[path]
		for _, o := range f.Objects {
			if f.stale && s.isForgotten(path, o.String()) {
				r.leave(path, o.String())
				continue
			}
			claims[o.Key()] = append(claims[o.Key()], objectClaim{path, o})
		}
		for _, key := range f.RefusedObjects {
			if refused[key] == "" {
				refused[key] = path
			}
		}
	}
	for key, o := range s.objects {
		r.keepObject(key, o, claims[key], refused[key])
	}
	for key, list := range claims {
		if s.objects[key] == nil {
			r.takeObject(key, nil, list[0], list)
		}
	}
}

// keepObject decides on an existing object. list are the claims of it, and refused is a file that
// names it but whose document of it is invalid.
func (r *resolution) keepObject(key ObjectKey, o *Object, list []objectClaim, refused string) {
	own := slices.IndexFunc(list, func(c objectClaim) bool { return c.path == o.File })
	switch {
	case own >= 0 && (!IsURL(o.File) || own == 0):
		r.takeObject(key, o, list[own], list)
	case IsURL(o.File):
		r.keepObjectOfURL(key, o, list, refused)
	default:
		r.keepObjectOfFile(key, o, list, refused)
	}
}

// keepObjectOfURL decides on an object that the URL gave, and gives no more or a file gives, too.
func (r *resolution) keepObjectOfURL(key ObjectKey, o *Object, list []objectClaim, refused string) {
	f := r.source.files[o.File]
	switch {
	case len(list) > 0:
		r.takeObject(key, o, list[0], list)
	case refused != "" || f == nil || f.doubtful():
		r.objects[key] = o
		r.heldFiles[o.File] = f != nil && (f.wrong() || f.trouble != "")
	default:
		r.keepHiddenObject(key, o, f.lacks())
	}
}

// keepObjectOfFile decides on an object that a file gave, and does not give now.
func (r *resolution) keepObjectOfFile(key ObjectKey, o *Object, list []objectClaim, refused string) {
	s := r.source
	f, gone := s.files[o.File], s.objectsGone[key]
	proven, isRead, isFilled := gone != nil && gone.proven, len(s.folder) == 0, s.filled.IsZero()
	isGiven := len(list) > 0
	byURL := isGiven && IsURL(list[0].path)
	switch {
	case isGiven && s.Dir == "": // no folder counts any more, and the URL gives it
		r.takeObject(key, nil, list[0], list)
	case isGiven && !byURL && f == nil && isRead && r.doubt != "": // the manifests of another folder count
		r.takeObject(key, o, list[0], list)
	case f == nil && (r.doubt != "" || !isRead || !proven),
		f != nil && (slices.Contains(f.RefusedObjects, key) || f.mayGive()),
		byURL && (r.doubt != "" || !isFilled && !proven): // its file may be another one now, or one with it may come
		r.objects[key] = o
		if f != nil && f.wrong() {
			r.heldFiles[o.File] = true
		}
		r.rejectObjects(o, list)
	case isGiven:
		r.takeObject(key, nil, list[0], list) // it was deleted there, and is created here
	case refused != "": // moved, and spoilt on the way
		r.objects[key], r.heldFiles[refused] = o.In(refused), true
	case r.doubt != "" || !proven:
		r.objects[key] = o
	default:
		r.keepHiddenObject(key, o, gone)
	}
}

// keepHiddenObject is keepHidden for an object.
func (r *resolution) keepHiddenObject(key ObjectKey, o *Object, gone *absence) {
	switch path, isUnclear := r.source.hidden(key.String(), gone); {
	case isUnclear:
		r.objects[key], r.heldFiles[path] = o.In(path), true
	case path != "":
		r.objects[key] = o
	}
}

// takeObject selects a claim. A claim with the same content as before is the same object.
func (r *resolution) takeObject(key ObjectKey, before *Object, c objectClaim, all []objectClaim) {
	switch {
	case before == nil:
		r.objects[key] = c.Object
	case before.Same(c.Object):
		r.objects[key] = before.In(c.path)
	case !before.MayBecome(c.Object):
		r.objects[key], r.heldFiles[c.path] = before.In(c.path), true
		r.dropObject(c, fmt.Sprintf("%s is immutable, and its content stays: give the new content another name, "+
			"or remove the object and add it again", key))
	default:
		r.objects[key] = c.Object
	}
	r.rejectObjects(r.objects[key], all)
}

// rejectObjects reports in every other file that gives an object which file is used.
func (r *resolution) rejectObjects(o *Object, all []objectClaim) {
	for _, c := range all {
		if c.path != o.File {
			r.dropObject(c, fmt.Sprintf("%s gives the %s already: remove one of the two, or rename it", o.File, o))
		}
	}
}

func (r *resolution) dropObject(c objectClaim, why string) {
	r.extra[c.path] = append(r.extra[c.path], decode.Problem{
		File: c.path, Line: c.Line, Column: c.Column, Object: c.String(), Field: "metadata.name", Message: why,
	})
}

// sorted returns the objects sorted by key.
func sorted(objects map[ObjectKey]*Object) []*Object {
	var all []*Object
	for _, key := range slices.SortedFunc(maps.Keys(objects), ObjectKey.Compare) {
		all = append(all, objects[key])
	}
	return all
}

// givesObject reports whether the file's content has the object.
func (f *fileState) givesObject(key ObjectKey) bool {
	return slices.ContainsFunc(f.Objects, func(o documents.FoundObject) bool { return o.Key() == key })
}

// namedObjects returns the objects that the file names; true: its document is valid.
func (f *fileState) namedObjects() map[ObjectKey]bool {
	named := map[ObjectKey]bool{}
	for _, key := range f.RefusedObjects {
		named[key] = false
	}
	for _, o := range f.Objects {
		named[o.Key()] = true
	}
	return named
}

// countObjects is countAbsences for objects.
func (s *Source) countObjects(now time.Time, complete bool) {
	named := s.namedObjectsOfFiles()
	for key, o := range s.objects {
		f, a := s.files[o.File], s.objectsGone[key]
		switch {
		case IsURL(o.File), f != nil && (named[o] || f.mayGive()):
			delete(s.objectsGone, key)
		case a == nil:
			s.objectsGone[key] = &absence{went: now, since: now}
		case complete && !now.Before(s.provenAt(a)):
			a.proven = true
		}
	}
	maps.DeleteFunc(s.objectsGone, func(key ObjectKey, _ *absence) bool { return s.objects[key] == nil })
}

// namedObjectsOfFiles is namedPods for objects.
func (s *Source) namedObjectsOfFiles() map[*Object]bool {
	named := make(map[*Object]bool, len(s.objects))
	note := func(key ObjectKey, path string) {
		o := s.objects[key]
		if o != nil && o.File == path {
			named[o] = true
		}
	}
	for path, f := range s.files {
		for k := range f.Objects {
			note(f.Objects[k].Key(), path)
		}
		for _, key := range f.RefusedObjects {
			note(key, path)
		}
	}
	return named
}

// absences yields the absences of pods and of objects, and the changes of masks.
func (s *Source) absences() iter.Seq[*absence] {
	return func(yield func(*absence) bool) {
		for _, a := range s.absent {
			if !yield(a) {
				return
			}
		}
		for _, a := range s.objectsGone {
			if !yield(a) {
				return
			}
		}
		for _, a := range s.masking.changes {
			if !yield(a) {
				return
			}
		}
	}
}

// forgetAbsences restarts all absences with the next complete pass through the folder.
func (s *Source) forgetAbsences() {
	clear(s.absent)
	clear(s.objectsGone)
	clear(s.masking.changes)
}

// knowObjects takes over the objects that a former Source saved.
func (s *Source) knowObjects() {
	for _, o := range s.KnownObjects {
		switch {
		case !IsURL(o.File):
		case s.URL != "": // another one before: this one's answer decides
			o = o.In(s.urlName)
		default:
			s.knowFormerURL(o.File)
		}
		s.objects[o.Key()] = o
	}
	s.savedObjects = sorted(s.objects)
}

// rememberObjects saves the objects if they have changed, as remember saves the record.
func (s *Source) rememberObjects(now time.Time) {
	all := sorted(s.objects)
	if now.Before(s.saveObjectsAt) {
		return
	}
	err := s.saveObjects(all)
	if err == nil {
		return
	}
	if s.saveObjectsAt.IsZero() {
		s.Log.Error("the ConfigMaps and Secrets cannot be saved; after a restart only those that the manifests give then are known", "err", err)
	}
	s.saveObjectsAt = now.Add(retryFolder)
}

// saveObjects saves these objects, unless they are saved already.
func (s *Source) saveObjects(all []*Object) error {
	if s.SaveObjects == nil || slices.Equal(all, s.savedObjects) {
		return nil
	}
	if err := s.SaveObjects(all); err != nil {
		return err
	}
	s.savedObjects, s.saveObjectsAt = all, time.Time{}
	return nil
}
