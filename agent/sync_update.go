package agent

import (
	"context"

	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// keepsFormer reports whether the former version of a pod runs until p can: unless it
// has ended, no container of it was ever created, or p says that it stops first. What
// the worker said before it knew of a next version may be true no longer.
func (l *syncLoop) keepsFormer(ctx context.Context, p *manifests.Pod) bool {
	key := p.Key()
	former, w := l.table.Runs(key), l.workers[key]
	if former == nil || manifests.Same(former, p) {
		return false
	}
	if former.UID == p.UID && l.becomes(former, p) == update.Resize { // which needs nothing but its place
		_, open := l.gateOf(ctx, key)
		return !open
	}
	if l.shared.StopsFirst(p.Pod) {
		if _, open := l.gateOf(ctx, key); open {
			return false
		}
	}
	if w == nil {
		return l.restored[key] != nil
	}
	return manifests.Same(w.update.Pod, former) && (w.update.Next == nil || !w.unmade)
}

// isPrepared reports whether p is the next version of its name and has what it needs.
func (l *syncLoop) isPrepared(p *manifests.Pod) bool {
	w := l.workers[p.Key()]
	return w != nil && w.prepared && manifests.Same(w.update.Next, p)
}

// setVersions gives the worker the version that is to run, which may be p, and if it
// keeps a former one, the one that is prepared meanwhile.
func (l *syncLoop) setVersions(ctx context.Context, p, version *manifests.Pod, keeps bool, gated string) {
	u := worker.Update{Pod: version}
	if version != nil && !manifests.Same(p, version) {
		r, refused := l.table.Rejected(p.Key())
		u.Refused = r.Message
		if keeps && !(refused && r.Final()) {
			u.Next, u.Gated = p, gated
		}
	}
	l.send(ctx, p.Key(), u)
}

// continueUpdates tries to let the next versions start of which something has changed.
func (l *syncLoop) continueUpdates(ctx context.Context) {
	all := l.due
	l.due = nil
	for _, key := range all {
		if w := l.workers[key]; w != nil && w.update.Next != nil {
			l.admit(ctx, w.update.Next)
		}
	}
}
