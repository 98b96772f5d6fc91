package layers

import (
	"maps"
	"slices"

	"monopod/manifests"
)

// snapshot returns what is desired, with the files of all folders.
func (m *merged) snapshot() manifests.Snapshot {
	next := manifests.Snapshot{Read: true, Complete: true, Objects: sortedObjects(slices.Collect(maps.Values(m.objects)))}
	next.Pods = slices.SortedFunc(maps.Values(m.pods), func(a, b *manifests.Pod) int { return manifests.CompareKeys(a.Key(), b.Key()) })
	for _, one := range m.layers.all {
		s := one.seen
		next.Read, next.Complete = next.Read && s.Read, next.Complete && s.Complete
		next.Problems = append(next.Problems, s.Problems...)
		for _, f := range s.Files {
			next.Files = append(next.Files, m.file(f))
		}
	}
	slices.SortFunc(next.Files, comparePaths)
	return next
}

// file returns a file as it is reported: without the pods of which another folder's are desired,
// and with its problems of that kind. One that is unchanged stays the same.
func (m *merged) file(f *manifests.File) *manifests.File {
	lost, extra, hashes := m.lost[f.Path], m.extra[f.Path], m.hashes[f.Path]
	if len(lost)+len(extra)+len(hashes) == 0 {
		return f
	}
	of := *f
	of.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(name string) bool { return lost[name] })
	of.Problems = slices.Concat(f.Problems, extra)
	of.Hashes = maps.Clone(f.Hashes)
	for name, hash := range hashes {
		if _, gives := of.Hashes[name]; gives {
			of.Hashes[name] = hash
		}
	}
	made := &of
	if was := m.layers.copies[f]; was != nil && was.Same(made) {
		made = was
	}
	m.copies[f] = made
	return made
}
