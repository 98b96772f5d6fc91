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
	v.objects, v.users = map[manifests.ObjectKey]*manifests.Object{}, map[manifests.ObjectKey][]string{}
	v.kept = map[string][]manifests.ObjectKey{}
	for _, o := range v.Snapshot.Objects {
		v.objects[o.Key()] = o
		v.kept[o.File] = append(v.kept[o.File], o.Key())
	}
	for _, p := range v.Snapshot.Pods { // sorted
		for _, key := range objects.Names(p.Pod) {
			v.users[key] = append(v.users[key], p.Key().String())
		}
	}
}

// objectsOf returns what became of each ConfigMap and Secret that a file names, and of
// those that an earlier version of it gave and that count still.
func (v *Versions) objectsOf(f *manifests.File) (all []status.Object) {
	keys := slices.AppendSeq(slices.Clone(v.kept[f.Path]), maps.Keys(f.Objects))
	slices.SortFunc(keys, manifests.ObjectKey.Compare)
	for _, key := range slices.Compact(keys) {
		all = append(all, v.object(f, key))
	}
	return all
}

// object returns what became of one object of a file.
func (v *Versions) object(f *manifests.File, key manifests.ObjectKey) status.Object {
	out, now := named(key), v.objects[key]
	out.State, out.Pods = status.Accepted, v.users[key]
	good, isNamed := f.Objects[key]
	about := key.String()
	if !isNamed {
		about = "" // the file as a whole
	}
	k := slices.IndexFunc(f.Problems, func(p status.Problem) bool { return !p.Warning && p.Object == about && p.Pod == "" })
	switch {
	case good && now != nil && now.File != f.Path:
		out.State, out.By = status.Superseded, now.File
	case k < 0 && now != nil: // or the file waits to be read again
		return out
	default:
		out.State = status.Rejected
	}
	if k < 0 {
		out.Reason = "it was forgotten by hand, and no answer has given it since"
		return out
	}
	p := f.Problems[k]
	out.Line, out.Column, out.Reason = p.Line, p.Column, p.Message
	if p.Field != "" {
		out.Reason = p.Field + ": " + p.Message
	}
	return out
}

func named(key manifests.ObjectKey) status.Object {
	return status.Object{Kind: key.Kind, Name: key.Namespace + "/" + key.Name}
}

// Leaving returns the files that are gone while pods or objects of theirs are not, sorted
// by path. pods are more pods by file, which no manifest gives any more.
func Leaving(s *manifests.Snapshot, pods map[string][]string) (all []status.File) {
	there, gone := map[string]bool{"": true}, map[string]*status.File{}
	for _, f := range s.Files {
		there[f.Path] = true
	}
	of := func(path string) *status.File {
		if there[path] {
			return &status.File{}
		}
		if gone[path] == nil {
			gone[path] = &status.File{Path: path}
		}
		return gone[path]
	}
	for _, p := range s.Pods { // whose removal is not certain yet
		f := of(p.File)
		f.Pods = append(f.Pods, p.Key().String())
	}
	for path, names := range pods {
		f := of(path)
		f.Pods = append(f.Pods, names...)
	}
	for _, o := range s.Objects {
		f := of(o.File)
		f.Objects = append(f.Objects, named(o.Key()))
	}
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		slices.Sort(gone[path].Pods)
		all = append(all, *gone[path])
	}
	return all
}
