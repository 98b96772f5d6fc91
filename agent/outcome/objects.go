package outcome

import (
	"maps"
	"slices"

	"monopod/agent/objects"
	"monopod/agent/status"
	"monopod/manifests"
)

// indexObjects is index for ConfigMaps and Secrets.
func (v *Versions) indexObjects() {
	v.objects, v.kept = map[manifests.ObjectKey]*manifests.Object{}, map[string][]manifests.ObjectKey{}
	for _, o := range v.Snapshot.Objects {
		v.objects[o.Key()] = o
		v.kept[o.File] = append(v.kept[o.File], o.Key())
	}
}

// usersOf returns the pods that refer to an object.
func (v *Versions) usersOf(key manifests.ObjectKey) []string {
	if v.users != nil {
		return v.users[key]
	}
	v.users = map[manifests.ObjectKey][]string{}
	for _, p := range v.Snapshot.Pods { // sorted
		for _, key := range objects.Names(p.Pod) {
			v.users[key] = append(v.users[key], p.Key().String())
		}
	}
	return v.users[key]
}

// objectsOf returns the outcome of each ConfigMap and Secret that a file names, and of those that
// an earlier version of the file gave and that are still used.
func (v *Versions) objectsOf(f *manifests.File) (all []status.Object) {
	keys := slices.AppendSeq(slices.Clone(v.kept[f.Path]), maps.Keys(f.Objects))
	slices.SortFunc(keys, manifests.ObjectKey.Compare)
	e := errorsIn(f)
	for _, key := range slices.Compact(keys) {
		all = append(all, v.object(f, key, e))
	}
	return all
}

// object returns the outcome of one object of a file.
func (v *Versions) object(f *manifests.File, key manifests.ObjectKey, e fileErrors) status.Object {
	known := known{isGiven: f.Objects[key], isForgotten: slices.Contains(f.Forgotten, key.String()), own: e.objects[key.String()]}
	if now := v.objects[key]; now != nil {
		known.by, known.isAsGiven = now.File, known.own == nil // an immutable one has its former content
	}
	r, out := v.result(f, known, e), named(key)
	out.State, out.Reason, out.Line, out.Column, out.By, out.Pods = r.state, r.reason, r.line, r.column, r.by, v.usersOf(key)
	return out
}

func named(key manifests.ObjectKey) status.Object {
	return status.Object{Kind: key.Kind, Name: key.Namespace + "/" + key.Name}
}

// Leaving returns the files that are gone although pods or objects of theirs still exist, sorted by
// path. pods has further pods by file, which no manifest gives any more.
func Leaving(s *manifests.Snapshot, pods map[string][]string) (all []status.File) {
	gone := map[string]*status.File{}
	isThere := func(path string) bool { return path == "" || s.File(path) != nil }
	of := func(path string) *status.File {
		if gone[path] == nil {
			gone[path] = &status.File{Path: path}
		}
		return gone[path]
	}
	for _, p := range s.Pods { // their removal is not certain yet
		if !isThere(p.File) {
			f := of(p.File)
			f.Pods = append(f.Pods, p.Key().String())
		}
	}
	for path, names := range pods {
		if !isThere(path) {
			f := of(path)
			f.Pods = append(f.Pods, names...)
		}
	}
	for _, o := range s.Objects {
		if !isThere(o.File) {
			f := of(o.File)
			f.Objects = append(f.Objects, named(o.Key()))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		slices.Sort(gone[path].Pods)
		all = append(all, *gone[path])
	}
	return all
}
