package manifests

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
	"monopod/manifests/poduid"
)

// claim is a file that gives a pod.
type claim struct {
	path string
	*documents.Found
}

// resolution turns the contents of the files into one snapshot. A Source has one and reuses its
// memory, which grows with the folder, for each snapshot. Only what is in the snapshot outlives it.
type resolution struct {
	source  *Source
	paths   []string        // of all files, sorted
	first   []claim         // the first claim of each pod: most are claimed once
	claims  map[Key][]claim // sorted by path
	refused map[Key]string  // the first file that names a pod in an invalid document
	pods    map[Key]*Pod
	keys    []Key             // of pods, sorted; see sortKeys
	owners  map[types.UID]Key // of the pods' uids
	byFile  map[string][]Key  // the pods of each file
	held    map[Key]bool      // the last good version keeps running, its file was refused
	extra   map[string][]decode.Problem
	left    map[string][]string // by file, the names that stay forgotten
	doubt   string              // why the folder proves no removal; "": it does
	kept    bool                // a pod was kept for that reason

	objects   map[ObjectKey]*Object
	heldFiles map[string]bool // an object's last good version is used, its file was refused

	hashes map[content]poduid.ContentHash
}

func newResolution(s *Source) *resolution {
	return &resolution{source: s, claims: map[Key][]claim{}, refused: map[Key]string{}, pods: map[Key]*Pod{}, owners: map[types.UID]Key{},
		byFile: map[string][]Key{}, held: map[Key]bool{}, extra: map[string][]decode.Problem{},
		left: map[string][]string{}, objects: map[ObjectKey]*Object{}, heldFiles: map[string]bool{}, hashes: map[content]poduid.ContentHash{}}
}

// empty clears everything and keeps the memory.
func (r *resolution) empty() {
	clear(r.paths)
	clear(r.first)
	clear(r.keys)
	r.paths, r.first, r.keys = r.paths[:0], r.first[:0], r.keys[:0]
	clear(r.claims)
	clear(r.refused)
	clear(r.pods)
	clear(r.owners)
	clear(r.byFile)
	clear(r.held)
	clear(r.extra)
	clear(r.left)
	clear(r.objects)
	clear(r.heldFiles)
	clear(r.hashes)
	r.doubt, r.kept = "", false
}

// resolve decides which pods are desired and stores them in current.
func (s *Source) resolve() Snapshot {
	s.joinClaims()
	r := s.resolution
	r.doubt = s.doubt()
	r.collectClaims()
	for key := range s.current {
		r.keep(key)
	}
	for key, list := range r.claims {
		if s.current[key] == nil {
			r.take(key, list[0])
		}
	}
	r.separateUIDs()
	r.resolveObjects()
	s.recall(r)
	r.noteLater()
	r.noteMoved()
	s.noteMasks()
	s.accept(r.doubt, r.kept || r.doubt != "" && !s.hasPodsOfFiles() && !s.hasManifest())
	next := r.snapshot()
	s.current, r.pods = r.pods, s.current
	s.objects, r.objects = r.objects, s.objects
	r.empty()
	return next
}

// collectClaims records which files give or refuse which pods.
func (r *resolution) collectClaims() {
	for path := range r.source.files {
		r.paths = append(r.paths, path)
	}
	slices.Sort(r.paths)
	for _, path := range r.paths {
		f := r.source.files[path]
		for i := range f.Pods {
			r.claim(path, f, &f.Pods[i])
		}
		for _, key := range f.Refused {
			if r.refused[key] == "" {
				r.refused[key] = path
			}
		}
	}
}

// claim records that a file gives a pod.
func (r *resolution) claim(path string, f *fileState, p *documents.Found) {
	key := p.Key()
	if f.stale && r.source.isForgotten(path, key.String()) {
		r.leave(path, key.String())
		return
	}
	if was := r.source.current[key]; was != nil && was.Digest != p.Digest && f.isRecalled() {
		return // the version that runs may be the newer one
	}
	list := r.claims[key]
	if list != nil {
		r.claims[key] = append(list, claim{path, p})
		return
	}
	r.first = append(r.first, claim{path, p})
	n := len(r.first)
	r.claims[key] = r.first[n-1 : n : n]
}

// keep decides on a current pod: a claim by its own file wins, and only proof removes the pod.
func (r *resolution) keep(key Key) {
	s, list := r.source, r.claims[key]
	pod := s.current[key]
	if r.isRenamed(pod) {
		return
	}
	if IsURL(pod.File) {
		r.keepOfURL(key, pod)
		return
	}
	if i := slices.IndexFunc(list, func(c claim) bool { return c.path == pod.File }); i >= 0 {
		r.take(key, list[i])
		return
	}
	f, gone := s.files[pod.File], s.absent[key]
	proven := gone != nil && gone.proven
	switch {
	case f == nil && r.doubt != "" && len(s.folder) == 0 && len(list) > 0 && !IsURL(list[0].path):
		r.take(key, list[0])
	case s.Dir == "" && len(list) > 0: // the URL gives it now
		r.take(key, list[0])
	case f == nil && r.doubt != "":
		r.pods[key], r.kept = pod, true
		r.rejectURL(key, pod.File)
	case f == nil && len(s.folder) > 0:
		r.pods[key] = pod
		r.rejectURL(key, pod.File)
	case f == nil && !proven:
		// Its file may come back at once. A claim by another file waits until that is ruled out.
		r.pods[key] = pod
	case f != nil && slices.Contains(f.Refused, key):
		r.pods[key], r.held[key] = pod, true
		r.rejectOthers(key, pod.File)
	case len(list) > 0 && f != nil && f.mayGive():
		r.keepOfTwo(key, pod, f)
	case r.doubt != "" && len(list) > 0 && IsURL(list[0].path): // its file is there and may be another one
		r.pods[key], r.kept = pod, true
		r.rejectURL(key, pod.File)
	case len(list) > 0 && IsURL(list[0].path) && !s.filled.IsZero() && !proven: // a file with it may come yet
		r.pods[key] = pod
	case len(list) > 0:
		r.take(key, list[0])
	case f != nil && f.mayGive():
		r.pods[key], r.held[key] = pod, f.wrong()
	case r.refused[key] != "":
		r.pods[key], r.held[key] = pod.In(r.refused[key]), true // moved, and made invalid at the same time
	case r.doubt != "": // its file is there and may be another one
		r.pods[key], r.kept = pod, true
	case !proven: // another file may give it at once
		r.pods[key] = pod
	default:
		r.keepHidden(key, pod, gone)
	}
}

// isRenamed reports whether a pod has a former name of the node in its name, and is given under the
// present one: as no manifest can give the former again, no other proof of its end will come.
func (r *resolution) isRenamed(pod *Pod) bool {
	s := r.source
	if !s.NameSuffix || strings.EqualFold(pod.Spec.NodeName, strings.TrimSpace(s.NodeName)) {
		return false
	}
	base, ok := strings.CutSuffix(pod.Name, nodeSuffix(pod.Spec.NodeName))
	return ok && len(r.claims[Key{Namespace: pod.Namespace, Name: base + nodeSuffix(s.NodeName)}]) > 0
}

// keepOfTwo decides on a pod that its file may still give and that others give, too. A claim with
// the same content is taken at once; another version is taken only once the pod's own file
// certainly does not give it.
func (r *resolution) keepOfTwo(key Key, pod *Pod, f *fileState) {
	list := r.claims[key]
	same := slices.IndexFunc(list, func(c claim) bool { return !IsURL(c.path) && c.Digest == pod.Digest })
	if same >= 0 {
		r.take(key, list[same])
		return
	}
	r.pods[key], r.held[key] = pod, f.wrong()
	r.rejectOthers(key, pod.File)
}

// keepHidden keeps a pod if a file that cannot be read completely may give it: the pod may have
// moved there while that file became invalid.
func (r *resolution) keepHidden(key Key, pod *Pod, gone *absence) {
	switch path, isUnclear := r.source.hidden(key.String(), gone); {
	case isUnclear:
		r.pods[key], r.held[key] = pod.In(path), true
	case path != "":
		r.pods[key] = pod
	}
}

// take selects a claim. A pod that equals the running one is replaced by that, which keeps its uid
// and the time it was first seen.
func (r *resolution) take(key Key, c claim) {
	pod, prev := c.Pod, r.source.current[key]
	if prev != nil && prev.Digest == pod.Digest && prev.Spec.NodeName == pod.Spec.NodeName && mayHave(c.Found, prev.UID) {
		pod = prev.In(c.path)
		c.Pod = pod // one copy in memory is enough
	}
	r.pods[key] = pod
	r.rejectOthers(key, c.path)
}

// mayHave reports whether the manifest's pod may have the uid: the one that it sets, or else any
// computed one, even if this build would compute another.
func mayHave(f *documents.Found, uid types.UID) bool {
	if f.Pinned {
		return f.UID == uid
	}
	return poduid.IsComputed(uid)
}

// rejectOthers reports in every other file that claims a pod which file is used.
func (r *resolution) rejectOthers(key Key, winner string) {
	for _, c := range r.claims[key] {
		if c.path != winner {
			r.drop(key, c, decode.Position{Line: c.Line, Column: c.Column}, "metadata.name", fmt.Sprintf("%s gives the pod %s already: remove one of the two, or rename it", winner, key))
		}
	}
}

func (r *resolution) drop(key Key, c claim, at decode.Position, field, why string) {
	r.extra[c.path] = append(r.extra[c.path], decode.Problem{
		File: c.path, Line: at.Line, Column: at.Column, Pod: key.String(), Field: field, Message: why,
	})
}

// separateUIDs lets only one pod use a uid, as folders are named by it: the pod that has it
// already, else the first by name.
func (r *resolution) separateUIDs() {
	owner := r.owners
	r.sortKeys()
	for _, key := range r.keys {
		if p := r.source.current[key]; p != nil && p.UID == r.pods[key].UID {
			owner[p.UID] = key
		}
	}
	for _, key := range r.keys {
		pod := r.pods[key]
		first, taken := owner[pod.UID]
		if !taken || first == key {
			owner[pod.UID] = key
			continue
		}
		delete(r.pods, key)
		if prev := r.source.current[key]; prev != nil && prev.UID != pod.UID {
			r.pods[key], r.held[key] = prev, true
		}
		for _, c := range r.claims[key] {
			if c.path == pod.File {
				r.drop(key, c, c.UIDAt, "metadata.uid", UIDTaken(r.pods[first]))
			}
		}
	}
}

// sortKeys sets keys to the keys of pods, sorted.
func (r *resolution) sortKeys() {
	r.keys = r.keys[:0]
	for key := range r.pods {
		r.keys = append(r.keys, key)
	}
	slices.SortFunc(r.keys, CompareKeys)
}

// UIDTaken returns the message for another pod with p's uid.
func UIDTaken(p *Pod) string {
	return fmt.Sprintf("%s gives the pod %s with the uid %s already: leave metadata.uid out of one of the two, or remove one", p.File, p.Key(), p.UID)
}

// CompareKeys orders the keys of pods.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// snapshot returns the finished snapshot.
func (r *resolution) snapshot() Snapshot {
	s := r.source
	next := Snapshot{Problems: slices.Concat(s.folder, s.doubted), Read: len(s.folder) == 0 || s.Dir == ""}
	next.Complete = len(next.Problems) == 0
	next.Problems = append(next.Problems, s.writable(r.paths)...)
	if len(s.folder) == 0 {
		next.Problems = append(next.Problems, s.inside...)
		next.Problems = append(next.Problems, s.oddities()...)
	}
	next.Objects = sorted(r.objects)
	r.sortKeys()
	next.Pods, next.Files = make([]*Pod, 0, len(r.keys)), make([]*File, 0, len(r.paths))
	for k, key := range r.keys {
		next.Pods = append(next.Pods, r.pods[key])
		file := r.pods[key].File
		list := r.byFile[file]
		if list == nil {
			r.byFile[file] = r.keys[k : k+1 : k+1]
		} else {
			r.byFile[file] = append(list, key)
		}
	}
	r.hashContents()
	for _, path := range r.paths {
		f := s.files[path]
		next.Read = next.Read && (!f.pending || IsURL(path)) // a URL's server may never answer
		if f.uncertain() || slices.ContainsFunc(f.Refused, func(k Key) bool { return r.pods[k] == nil }) {
			next.Complete = false
		}
		next.Files = append(next.Files, r.file(path, f, r.byFile[path]))
	}
	s.addLayer(&next)
	return next
}

// content identifies a pod's content, in whatever file it is.
type content struct {
	pod    Key
	digest string
}

// hashContents gives equal contents one hash, although a pod's computed uid depends on the path of
// its file: the hash of the current pod, else that of the first file by name.
func (r *resolution) hashContents() {
	for key, pod := range r.pods {
		if poduid.IsComputed(pod.UID) {
			r.hashes[content{key, pod.Digest}] = poduid.HashOf(pod.Pod)
		}
	}
	for _, path := range r.paths {
		for _, p := range r.source.files[path].Pods {
			is := content{p.Key(), p.Digest}
			if _, known := r.hashes[is]; !known && !p.Pinned {
				r.hashes[is] = poduid.HashOf(p.Pod)
			}
		}
	}
}

// hashOf returns the hash of a pod in a file: its uid, if the manifest sets one.
func (r *resolution) hashOf(p documents.Found) poduid.ContentHash {
	if p.Pinned {
		return poduid.HashOf(p.Pod)
	}
	return r.hashes[content{p.Key(), p.Digest}]
}

// plainReport is the report of a file that depends on the file's own content only, and the inputs
// other than that content from which it was made.
type plainReport struct {
	file   *File
	keys   []Key // of its desired pods
	mode   fs.FileMode
	hashes []poduid.ContentHash // of its pods
}

// isPlain reports whether the report of a file depends on the file's own content only.
func (r *resolution) isPlain(path string, f *fileState, keys []Key) bool {
	if f.trouble != "" || f.unproven || f.waitsLong || r.heldFiles[path] || len(f.alone.Lacking)+len(f.alone.Unnamed) > 0 {
		return false
	}
	if len(r.extra[path])+len(r.left[path]) > 0 {
		return false
	}
	return len(r.held) == 0 || !slices.ContainsFunc(keys, func(key Key) bool { return r.held[key] })
}

// isOf reports whether the report is still that of the file, which must be plain.
func (p *plainReport) isOf(r *resolution, f *fileState, keys []Key) bool {
	if p == nil || p.file.SHA256 != f.hash || p.mode != f.mode || len(p.hashes) != len(f.Pods) || !slices.Equal(p.keys, keys) {
		return false
	}
	for k := range f.Pods {
		if r.hashOf(f.Pods[k]) != p.hashes[k] {
			return false
		}
	}
	return true
}

// file returns the report of one file. That of a plain file is made once for each content.
func (r *resolution) file(path string, f *fileState, keys []Key) *File {
	if !r.isPlain(path, f, keys) {
		f.plain = nil
		return r.report(path, f, keys)
	}
	if !f.plain.isOf(r, f, keys) {
		f.plain = &plainReport{keys: slices.Clone(keys), mode: f.mode, file: r.report(path, f, keys)}
		for _, p := range f.Pods {
			f.plain.hashes = append(f.plain.hashes, r.hashOf(p))
		}
	}
	return f.plain.file
}

// report makes the report of one file: its problems and its desired pods, keys.
func (r *resolution) report(path string, f *fileState, keys []Key) *File {
	report := &File{Path: path, SHA256: f.hash, Forgotten: r.left[path], Hashes: map[string]poduid.ContentHash{}, Orders: map[string]decode.Position{}, Objects: f.namedObjects()}
	for _, p := range f.Pods {
		key := p.Key()
		report.Hashes[key.String()] = r.hashOf(p)
		if p.Order != (decode.Position{}) {
			report.Orders[key.String()] = p.Order
		}
	}
	slices.SortFunc(keys, CompareKeys)
	for _, key := range keys {
		report.Pods = append(report.Pods, key.String())
		report.Held = report.Held || r.held[key] && r.pods[key].File == path
	}
	report.Held = report.Held || r.heldFiles[path] || f.trouble != "" && len(keys)+len(f.Objects) > 0
	report.Problems = slices.Concat(f.asked(path), SecretReaders(path, f.mode, f.Objects), f.Problems, r.extra[path])
	if f.waitsLong {
		report.Problems = append(report.Problems, changing(path))
	}
	slices.SortStableFunc(report.Problems, func(a, b decode.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return report
}
