package agent

import (
	"maps"
	"slices"

	"monopod/agent/status"
	"monopod/manifests"
)

// refusal is why a version that was accepted does not run.
type refusal struct {
	hash, reason string
	final        bool
}

// versions is what is known of the pods of all files.
type versions struct {
	given   map[string]*manifests.Pod // the accepted ones, by namespace/name
	refused map[string]refusal        // those of them that wait or have failed
}

func (l *syncLoop) newVersions(pods []*manifests.Pod) versions {
	v := versions{map[string]*manifests.Pod{}, map[string]refusal{}}
	for _, p := range pods {
		v.given[p.Key().String()] = p
	}
	for _, r := range l.table.AllRejected() {
		v.refused[r.Pod.Key().String()] = refusal{string(r.Pod.UID), r.Message, r.Final()}
	}
	for _, d := range l.order.All() {
		if d.Held != nil {
			v.refused[d.Pod.Key().String()] = refusal{string(d.Pod.UID), d.Held.Said, false}
		}
	}
	return v
}

// of returns what became of a file as far as that does not follow from its pods, and
// of each pod that it names.
func (v versions) of(f *manifests.File) (state status.State, all []status.Version) {
	state = status.Accepted
	if f.SHA256 == "" {
		state = status.Unread
	}
	wrong, names := map[string]status.Problem{}, map[string]bool{}
	for _, p := range slices.Backward(f.Problems) {
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
func (v versions) version(f *manifests.File, pod string, wrong status.Problem) status.Version {
	out := status.Version{Pod: pod, State: status.Accepted, Hash: f.Hashes[pod]}
	given, refused := v.given[pod], v.refused[pod]
	switch {
	case out.Hash != "" && given != nil && given.File != f.Path:
		out.State, out.By = status.Superseded, given.File
	case out.Hash == "" || given == nil || string(given.UID) != out.Hash:
		out.State = status.Rejected
	case refused.hash != out.Hash:
		return out
	case refused.final:
		out.State, out.Reason = status.Rejected, refused.reason
		return out
	default:
		out.State, out.Reason, out.Waiting = status.Waiting, refused.reason, out.Hash
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
