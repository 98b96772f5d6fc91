package agent

import (
	"slices"

	"monopod/agent/outcome"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// report gives the store the state of the manifests: the problems that the Source
// found, those of the start order itself, and the pods whose previous versions run
// because the new ones are not admitted or held.
func (l *syncLoop) report(s manifests.Snapshot) {
	waiting, held := l.waitingVersions(), map[string]bool{}
	for _, w := range l.workers {
		if next := w.update.Next; next != nil {
			held[next.File] = true
		}
	}
	order := l.orderProblems(s.Files, held)
	m := status.Manifests{Dir: l.dir, Problems: slices.Clone(s.Problems), Leaving: outcome.Leaving(&s, l.undesired()), Judge: l.outcomes(&s).Judge}
	for _, f := range s.Files {
		m.Files = append(m.Files, status.File{Path: f.Path, Pods: f.Pods, SHA256: f.SHA256,
			Held:     f.Held || held[f.Path] || len(waiting[f.Path]) > 0,
			Problems: slices.Concat(f.Problems, waiting[f.Path], order[f.Path])})
	}
	l.store.SetManifests(m)
	l.recordProblems(&m)
}

// outcomes is what is known of the pods of a snapshot.
func (l *syncLoop) outcomes(s *manifests.Snapshot) *outcome.Versions {
	rejected, held := l.table.AllRejected(), l.order.All()
	v := &outcome.Versions{Snapshot: s, Refused: make([]outcome.Refusal, 0, len(rejected)+len(held))}
	for _, r := range rejected {
		v.Refused = append(v.Refused, outcome.Refusal{Pod: r.Pod, Reason: r.Message, Final: r.Final()})
	}
	for _, d := range held {
		if d.Held != nil {
			v.Refused = append(v.Refused, outcome.Refusal{Pod: d.Pod, Reason: d.Held.Said})
		}
	}
	return v
}

// undesired returns the pods by file that run though no manifest gives them.
func (l *syncLoop) undesired() map[string][]string {
	pods := map[string][]string{}
	for key, w := range l.workers {
		if !l.desired.Has(key) {
			pods[w.file] = append(pods[w.file], key.String())
		}
	}
	return pods
}

// waitingVersions returns, by file, the versions that are not admitted while their
// previous versions run.
func (l *syncLoop) waitingVersions() map[string][]status.Problem {
	found := map[string][]status.Problem{}
	for _, r := range l.table.AllRejected() {
		if key := r.Pod.Key(); l.table.Admitted(key) != nil {
			found[r.Pod.File] = append(found[r.Pod.File], status.Problem{
				File: r.Pod.File, Pod: key.String(), Message: r.Message, Waits: l.saysRefused(key)})
		}
	}
	l.addRolledBack(found)
	return found
}

// saysRefused reports whether the previous version's status says why the new one waits.
func (l *syncLoop) saysRefused(key manifests.Key) bool {
	w := l.workers[key]
	return w != nil && w.update.Refused != ""
}

// orderProblems returns, by file, the problems of the start order itself and the new
// versions that are held while their previous versions run. It adds the files of the
// latter to held.
func (l *syncLoop) orderProblems(files []manifests.File, held map[string]bool) map[string][]status.Problem {
	all := l.order.All()
	if len(all) == 0 {
		return nil
	}
	orders := make(map[string]map[string]decode.Position, len(files))
	for _, f := range files {
		orders[f.Path] = f.Orders
	}
	found := map[string][]status.Problem{}
	for _, d := range all {
		key, file := d.Pod.Key(), d.Pod.File
		text := d.Problem
		if d.Held != nil && l.desiredOf(key) != nil {
			text, held[file] = d.Held.Said, true
		}
		if text != "" {
			at := orders[file][key.String()]
			found[file] = append(found[file], status.Problem{
				File: file, Line: at.Line, Column: at.Column, Pod: key.String(), Field: decode.StartAfterField, Message: text, Warning: !d.Decision.Held})
		}
	}
	return found
}
