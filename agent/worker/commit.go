package worker

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/rollout"
	"monopod/agent/update"
	"monopod/manifests"
)

// commit is a version that is to replace one that runs. Until that is on disk, the worker follows
// the update before: nothing stops, and what crashes starts again.
type commit struct {
	next  Update    // with that version; without one, nothing is pending
	why   string    // why the last try failed; "": it did not
	sent  State     // to the sync loop
	tries int       // failed tries
	retry time.Time // of the next try
}

// byFormer returns what the worker follows in place of an update whose version is to replace one
// that runs: the update before, until commitNext has committed the new one.
func (w *Worker) byFormer(u Update) Update {
	if !w.takesPlace(u) {
		w.commit = commit{}
		return u
	}
	if !manifests.Same(w.commit.next.Pod, u.Pod) {
		w.commit = commit{}
	}
	w.commit.next = u
	former := w.pod.current
	former.Next = nil
	if w.commit.why != "" {
		former.Waits = "update waits: " + w.commit.why
	}
	return former
}

// takesPlace reports whether the version of an update replaces one that runs, which is the
// accepted one on disk. A halted pod stops whether or not the disk takes anything. A version that
// was never made is replaced whether its successor can run or not: it must not start while that is
// not recorded.
func (w *Worker) takesPlace(u Update) bool {
	former := w.pod.current.Pod
	if u.Pod == nil || former == nil || u.Halted.Reason != "" || w.pod.current.Halted.Reason != "" || manifests.Same(former, u.Pod) {
		return false
	}
	if w.report.sent.Unmade && w.report.sent.UID == former.UID {
		return false
	}
	c := w.pod.known[string(former.UID)]
	if c == nil || c.Next || c.Unwritten || c.IsRemoving() || c.Ended() != "" || c.Result != nil {
		return false
	}
	return former.UID != u.Pod.UID || update.Planned(c.Version(), u.Pod, w.pod.shared.Settings().UpdatePolicy).Kind == update.Replace
}

// commitNext commits that another version replaces the one that runs, and returns the update with
// it, or else the one that the worker follows. retry is the time of the next try; zero: there is
// none.
func (w *Worker) commitNext(ctx context.Context, u Update) (now Update, retry time.Time) {
	x := &w.commit
	if x.next.Pod == nil {
		return u, time.Time{}
	}
	if x.next.Kept != "" {
		x.why, x.retry = x.next.Kept, time.Time{}
		w.reportCommit(ctx)
		return w.byFormer(x.next), x.retry
	}
	if time.Now().Before(x.retry) {
		return u, x.retry
	}
	if ctx.Err() != nil { // another update has come, which may revert it
		return u, time.Time{}
	}
	firm, cancel := w.pod.detached()
	defer cancel()
	s := &plan.Facts{Now: time.Now(), Mark: w.pod.shared.Disk.Machine.Boot.Mark(), Pod: x.next.Pod, Known: w.pod.known}
	err := w.commitTo(firm, s, string(u.Pod.UID))
	if err != nil {
		w.commitFailed(err)
		w.reportCommit(ctx)
		return w.byFormer(x.next), x.retry
	}
	if x.why != "" {
		w.pod.log.Info("update continues: the disk takes the record of it")
		w.pod.shared.Events.Record(events.About(x.next.Pod.Pod), v1.EventTypeNormal, rollout.ReasonContinues, message.Fixed("the new version takes the place of the one before"))
	}
	w.pod.log.Info(plan.DoMarkRemoving.Done(), "reason", plan.WhyReplaced)
	now = x.next
	x.why = ""
	w.reportCommit(ctx)
	w.commit = commit{}
	return now, time.Time{}
}

// reportCommit reports to the sync loop whether the version is committed, if that has changed.
func (w *Worker) reportCommit(ctx context.Context) {
	x := &w.commit
	now := State{Key: w.pod.key, Generation: x.next.Generation, OfCommit: true, Uncommitted: x.why}
	if now == x.sent || x.why == "" && x.sent.Uncommitted == "" {
		return
	}
	select {
	case w.pod.shared.States <- now:
		x.sent = now
	case <-ctx.Done():
	}
}

// soonest returns the earlier of two times, of which zero is none.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// commitFailed records a failed commit, and logs the first failure.
func (w *Worker) commitFailed(err error) {
	x := &w.commit
	isNew := x.why == ""
	x.why = "it cannot be recorded, so that the version before runs on: " + err.Error()
	x.tries++
	x.retry = time.Now().Add(plan.RetryIn(x.tries))
	if !isNew {
		return
	}
	line := "update waits: " + x.why
	w.pod.log.Warn("the version before runs on", "reason", line)
	w.pod.shared.Events.Record(events.About(x.next.Pod.Pod), v1.EventTypeWarning, rollout.ReasonWaits,
		message.Instead(line, message.Fixed("the version before runs on")))
}

// markRemoving records that an instance must go. It waits for the disk only if another version is
// to run in its place.
func (w *Worker) markRemoving(ctx context.Context, s *plan.Facts, uid string) error {
	if s.Pod != nil && s.Halted.Reason == "" {
		return plan.Because("FailedCheckpoint", w.commitTo(ctx, s, uid))
	}
	var err error
	if s.Pod == nil {
		err = w.discard(ctx, uid)
	} else {
		err = w.saveNext(ctx, s, uid)
	}
	if w.pod.unsaved.IsNew("next version", err) {
		w.pod.log.Warn("the next version is not recorded; a restarted agent does not know it without its manifest", "err", err)
	}
	w.pod.rememberOrWarn(w.removing(s, uid), "that the pod is being stopped")
	return nil
}

// commitTo records that an instance must go. A version that replaces it is on disk before that,
// and is the accepted one from then on: whenever the agent dies, one of the two is accepted.
func (w *Worker) commitTo(ctx context.Context, s *plan.Facts, uid string) error {
	err := w.saveNext(ctx, s, uid)
	if err == nil {
		err = w.pod.save(w.removing(s, uid), w.pod.shared.Disk.Root.SaveLightly)
	}
	if err == nil {
		w.knowNext(s.Pod)
	}
	return err
}

// knowNext makes the worker know the version accepted now as an agent that starts now would: it
// may start even if the disk takes no more.
func (w *Worker) knowNext(accepted *manifests.Pod) {
	next := w.pod.shared.Disk.Root.NextOf(w.pod.key)
	if next == nil || next.Digest != accepted.Digest || w.pod.known[next.Uid()] != nil {
		return
	}
	known := *next
	known.Next = true
	w.pod.known[next.Uid()] = &known
}

func (w *Worker) removing(s *plan.Facts, uid string) *checkpoint.Checkpoint {
	return w.checkpointOf(s, uid).Removing(metav1.Now(), w.pod.shared.Disk.Machine.Boot.Mark())
}

// saveNext records the desired version, of which this instance is not, unless it is recorded.
func (w *Worker) saveNext(ctx context.Context, s *plan.Facts, uid string) error {
	if w.isAccepted(s.Pod, uid) {
		return nil
	}
	next := w.pod.shared.Disk.Root.NextOf(w.pod.key)
	if next != nil && next.Uid() == string(s.Pod.UID) && next.Digest == s.Pod.Digest {
		return nil
	}
	return w.pod.files.SaveNext(ctx, w.newCheckpoint(s), uid)
}

// discard removes what was prepared of a pod that is removed, of which this is an instance.
func (w *Worker) discard(ctx context.Context, uid string) error {
	next := w.pod.shared.Disk.Root.NextOf(w.pod.key)
	if next != nil && w.pod.known[next.Uid()] != nil {
		uid = next.Uid() // next is an instance, and is removed as one
	}
	return w.pod.files.Discard(ctx, next, uid)
}

// isAccepted reports whether the desired version is already accepted, as an instance other than
// this one.
func (w *Worker) isAccepted(desired *manifests.Pod, uid string) bool {
	c := w.pod.known[string(desired.UID)]
	return c != nil && c.Uid() != uid && !c.Next && !c.Unwritten && !c.IsRemoving()
}
