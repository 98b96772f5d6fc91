// Package outcome says what became of manifest files and of the pods in them.
package outcome

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"monopod/agent/status"
	"monopod/manifests"
)

// Refusal is why a version that was accepted does not run.
type Refusal struct {
	Pod    *manifests.Pod
	Reason string
	Final  bool // it never will
}

// Versions is what is known of the pods of all files. What costs a look at each is made
// when the first file is judged, away from the sync loop.
type Versions struct {
	Snapshot *manifests.Snapshot
	Refused  []Refusal // the accepted pods that wait or have failed

	once    sync.Once
	files   map[string]*manifests.File // by path
	given   map[string]*manifests.Pod  // the accepted ones, by namespace/name
	refused map[string]Refusal         // the same way
	objects map[manifests.ObjectKey]*manifests.Object
	users   map[manifests.ObjectKey][]string // the pods that refer to them, also to those that are not there
	kept    map[string][]manifests.ObjectKey // by file
}

func (v *Versions) index() {
	v.refused = map[string]Refusal{}
	for _, r := range v.Refused {
		v.refused[r.Pod.Key().String()] = r
	}
	v.files, v.given = map[string]*manifests.File{}, map[string]*manifests.Pod{}
	for k := range v.Snapshot.Files {
		v.files[v.Snapshot.Files[k].Path] = &v.Snapshot.Files[k]
	}
	for _, p := range v.Snapshot.Pods {
		v.given[p.Key().String()] = p
	}
	v.indexObjects()
}

// Judge fills in what became of a file and of its pods. Any goroutine may call it, one
// at a time.
func (v *Versions) Judge(f *status.File) {
	v.once.Do(v.index)
	file := v.files[f.Path]
	f.State, f.Versions = v.of(file)
	f.Objects = v.objectsOf(file)
	for _, o := range f.Objects {
		f.State = status.Worse(f.State, o.State)
	}
}

// of returns what became of a file as far as that does not follow from its pods, and
// of each pod that it names.
func (v *Versions) of(f *manifests.File) (state status.State, all []status.Version) {
	state = status.Accepted
	if f.SHA256 == "" {
		state = status.Unread
	}
	wrong, names := map[string]status.Problem{}, map[string]bool{}
	for _, p := range slices.Backward(f.Problems) {
		if p.Object != "" {
			continue
		}
		if !p.Warning {
			wrong[""], wrong[p.Pod] = p, p
			names[p.Pod] = true
		}
		if !p.Warning && p.Pod == "" {
			state = status.Rejected
		}
	}
	for pod := range f.Hashes {
		names[pod] = true
	}
	for _, pod := range f.Pods {
		names[pod] = true
	}
	delete(names, "")
	for _, pod := range slices.Sorted(maps.Keys(names)) {
		why, named := wrong[pod]
		if !named {
			why = wrong[""]
		}
		all = append(all, v.version(f, pod, why))
	}
	return state, all
}

// version returns what became of one pod of a file. wrong is what is wrong with it in
// the file, if something is.
func (v *Versions) version(f *manifests.File, pod string, wrong status.Problem) status.Version {
	out := status.Version{Pod: pod, State: status.Accepted, Hash: f.Hashes[pod]}
	given, refused := v.given[pod], v.refused[pod]
	switch {
	case out.Hash != "" && given != nil && given.File != f.Path:
		out.State, out.By = status.Superseded, given.File
	case out.Hash == "" || given == nil || hashOf(given) != out.Hash:
		out.State = status.Rejected
	case refused.Pod == nil || hashOf(refused.Pod) != out.Hash:
		return out
	case refused.Final:
		out.State, out.Reason = status.Rejected, refused.Reason
		return out
	default:
		out.State, out.Reason, out.Waiting = status.Waiting, refused.Reason, out.Hash
		return out
	}
	if out.Reason = wrong.Message; wrong.Field != "" {
		out.Reason = wrong.Field + ": " + wrong.Message
	}
	if out.Reason == "" {
		out.Reason = "it was forgotten by hand, and no answer has given it since"
	}
	out.Line, out.Column = wrong.Line, wrong.Column
	return out
}

// hashOf returns the hash of a pod's content; a pod that changed in place has another uid.
func hashOf(p *manifests.Pod) string { return cmp.Or(p.Annotations[status.AnnHash], string(p.UID)) }
