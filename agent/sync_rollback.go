package agent

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/rollback"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// rollbacks is what the loop knows of the updates that may be rolled back.
type rollbacks struct {
	*rollback.Book
	saved chan []*rollback.Save // its records, as written
	given manifests.Snapshot    // the last one, as the manifests have it
}

func newRollbacks(shared *worker.Pool) rollbacks {
	disk := shared.Disk
	return rollbacks{Book: rollback.New(disk.Machine.Boot.ID, disk.Root.Updates(shared.Log)), saved: make(chan []*rollback.Save)}
}

// chosen returns the snapshot in which former versions stand for those that were rolled
// back or may not start yet. All else that the loop does follows it.
func (l *syncLoop) chosen(s manifests.Snapshot) manifests.Snapshot {
	l.rolled.given = s
	var pods []*manifests.Pod
	held := func(p *manifests.Pod) bool {
		return slices.ContainsFunc(l.rolled.given.Files, func(f manifests.File) bool { return f.Path == p.File && f.Held })
	}
	for k, p := range s.Pods {
		known := rollback.Pods{New: p, Runs: l.table.Runs(p.Key()), Held: held}
		if a := l.desired.Of(p.Key()); a != nil {
			known.Given = a.Pod
		}
		chosen := l.rolled.Choose(known)
		if chosen != p && pods == nil {
			pods = slices.Clone(s.Pods)
		}
		if pods != nil {
			pods[k] = chosen
		}
	}
	if pods != nil {
		s.Pods = pods
	}
	return s
}

// publishPods tells others which pods there are, with the versions that may come back.
func (l *syncLoop) publishPods() {
	all := slices.Concat(l.rolled.given.Pods, l.rolled.Formers())
	l.hideSecrets(all)
	l.needs.Publish(all)
}

// watchUpdates goes on with the updates whose versions are watched.
func (l *syncLoop) watchUpdates() {
	if l.down.On() {
		return
	}
	healthy := l.rolled.Look(time.Now(), l.shared.Watch.Up(), func(key manifests.Key) string {
		if p, ok := l.store.Pod(key.String()); ok {
			return update.Trouble(&p.Status)
		}
		return ""
	})
	for _, key := range healthy {
		l.shared.Log.Info("new version is ready and stays", "pod", key.String())
	}
	if len(healthy) > 0 {
		l.publishPods()
	}
}

// saveUpdates writes the records that have changed, beside the loop.
func (l *syncLoop) saveUpdates(ctx context.Context) {
	all := l.rolled.Start()
	if len(all) == 0 {
		return
	}
	l.running.Go(func() {
		for _, s := range all {
			s.Do(l.shared.Disk.Root, func() *v1.Pod { return l.reported(s.Key) })
		}
		select {
		case l.rolled.saved <- all:
		case <-ctx.Done():
		}
	})
}

// reported returns what was last reported of a pod, by this agent or the one before;
// nil: nothing.
func (l *syncLoop) reported(key manifests.Key) *v1.Pod {
	if p, ok := l.store.Pod(key.String()); ok {
		return p
	}
	p, _ := l.store.Previous(key.String())
	return p
}

// handleSavedUpdates lets the versions start whose turn has come with that.
func (l *syncLoop) handleSavedUpdates(ctx context.Context, all []*rollback.Save) {
	for _, s := range all {
		if l.shared.Faults.IsNew("save the update of "+s.Key.String(), s.Err) {
			l.shared.Log.Error("record of an update not saved; the version that runs stays", "pod", s.Key.String(), "err", s.Err)
			l.stale = true
		}
	}
	back, changed := l.rolled.Done(all)
	for _, b := range back {
		l.shared.Log.Warn("update rolled back", "pod", b.Tried.Key().String(), "reason", b.Text)
		l.shared.Events.Record(events.About(b.Tried.Pod), v1.EventTypeWarning, update.ReasonRolledBack, b.Text)
		l.shared.Metrics.RolledBack()
	}
	if changed {
		l.stale = true
		l.handleSnapshot(ctx, l.rolled.given)
	}
}

// addRolledBack adds the versions that were rolled back to what is wrong with files.
func (l *syncLoop) addRolledBack(found map[string][]status.Problem) {
	for _, line := range l.rolled.Lines() {
		found[line.Pod.File] = append(found[line.Pod.File], status.Problem{
			File: line.Pod.File, Pod: line.Pod.Key().String(), Message: line.Text, Waits: true})
	}
}
