// Package outcome determines the outcome of manifest files and of the pods in them.
package outcome

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Refusal is why an accepted version does not run.
type Refusal struct {
	Pod    *manifests.Pod
	Reason string
	Final  bool // it never will
}

// Trial is the outcome of a version on trial, which is rolled back if it does not work.
type Trial struct {
	Pod    *manifests.Pod
	State  status.Trial
	Output string // its last output, if it was rolled back
}

// Versions is what is known of the pods of all files. The indexes, which take a pass over all of
// them, are made when the first file is judged, outside of the sync loop.
type Versions struct {
	Snapshot *manifests.Snapshot
	Refused  []Refusal // the accepted pods that wait or have failed
	Trials   []Trial

	once    sync.Once
	refused map[string]Refusal // by namespace/name
	trials  map[string]Trial   // likewise
	objects map[manifests.ObjectKey]*manifests.Object
	users   map[manifests.ObjectKey][]string // the pods that refer to them, also to missing ones; nil: not made yet
	kept    map[string][]manifests.ObjectKey // by file
}

func (v *Versions) index() {
	v.refused = map[string]Refusal{}
	for _, r := range v.Refused {
		v.refused[r.Pod.Key().String()] = r
	}
	v.trials = map[string]Trial{}
	for _, t := range v.Trials {
		v.trials[t.Pod.Key().String()] = t
	}
	v.indexObjects()
}

// Judge sets the outcome of a file, and appends that of its pods to its Versions. Any goroutine may
// call it, one at a time.
func (v *Versions) Judge(f *status.File) {
	v.once.Do(v.index)
	file := v.Snapshot.File(f.Path)
	f.State, f.Versions = v.of(file, f.Versions)
	f.Objects = v.objectsOf(file)
	for _, o := range f.Objects {
		f.State = status.Worse(f.State, o.State)
	}
}

// of returns the outcome of a file without that of its pods, and appends the outcome of each pod
// that it names to all.
func (v *Versions) of(f *manifests.File, all []status.Version) (status.State, []status.Version) {
	if f.MaskedBy != "" {
		return status.Masked, all
	}
	state := status.Accepted
	if f.SHA256 == "" {
		state = status.Unread
	}
	e := errorsIn(f)
	if e.file != nil {
		state = status.Rejected
	}
	for _, pod := range podsIn(f, e) {
		all = append(all, v.version(f, pod, e))
	}
	return state, all
}

// podsIn returns the pods that a file gives, has errors for or keeps, sorted.
func podsIn(f *manifests.File, e fileErrors) []string {
	if len(f.Pods) == 1 && len(f.Hashes) == 1 && len(e.pods) == 0 && f.Hashes[f.Pods[0]] != "" {
		return f.Pods
	}
	names := slices.Concat(f.Pods, slices.Collect(maps.Keys(f.Hashes)), slices.Collect(maps.Keys(e.pods)))
	slices.Sort(names)
	return slices.Compact(names)
}

// version returns the outcome of one pod of a file.
func (v *Versions) version(f *manifests.File, pod string, e fileErrors) status.Version {
	hash, isGiven := f.Hashes[pod]
	known := known{isGiven: isGiven, isForgotten: slices.Contains(f.Forgotten, pod), own: e.pods[pod]}
	namespace, name, _ := strings.Cut(pod, "/")
	if now := v.Snapshot.Pod(manifests.Key{Namespace: namespace, Name: name}); now != nil {
		known.by, known.isAsGiven = now.File, poduid.HashOf(now) == hash
	}
	r := v.result(f, known, e)
	out := status.Version{Pod: pod, Hash: hash, State: r.state, Reason: r.reason, Line: r.line, Column: r.column, By: r.by}
	if out.State == status.Accepted {
		v.admit(&out)
	}
	if out.State == status.Waiting {
		out.Waiting = hash
	}
	if t, is := v.trials[pod]; is && out.By == "" && poduid.HashOf(t.Pod) == hash {
		out.Trial, out.Output = t.State, t.Output
	}
	return out
}

// admit corrects the outcome of a desired version: it may wait, or have failed.
func (v *Versions) admit(out *status.Version) {
	refused, isRefused := v.refused[out.Pod]
	switch {
	case !isRefused || poduid.HashOf(refused.Pod) != out.Hash:
	case refused.Final:
		out.State, out.Reason = status.Rejected, refused.Reason
	default:
		out.State, out.Reason = status.Waiting, refused.Reason
	}
}
