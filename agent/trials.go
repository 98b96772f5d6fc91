package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// trials keeps the trials of the records: what the rules of rollout make of them, and what this
// requires of the room of the pods and of the disk. It belongs to the sync loop's goroutine.
type trials struct {
	limits func(*v1.Pod) update.Limits // what a version on trial must meet; nil: nothing

	shared  *worker.Pool
	store   *status.Store
	pods    *records
	table   *admission.Table
	filings *filings

	moved []*podRecord // of which another version may be offered now, or which have another one to roll back to
}

// inherit loads the trials that previous agents saved.
func (t *trials) inherit() {
	for _, u := range t.shared.Disk.Root.Updates(t.shared.Log) {
		key := manifests.KeyOf(u.Former)
		next := rollout.Recorded(u, t.shared.Disk.Machine.Boot.ID, t.table.Admitted(key))
		if next == nil {
			continue
		}
		t.table.Spare(next.Pinned)
		t.takeOver(t.pods.of(key), next)
	}
}

// set sets the trial of a pod name, and starts to save it if it has changed; nil: the name has
// none.
func (t *trials) set(r *podRecord, next *rollout.Trial) {
	was := r.Trial
	t.takeOver(r, next)
	isSame := (was == nil) == (next == nil) && (was == nil || was.Former == next.Former && was.Changes == next.Changes)
	if !isSame {
		t.filings.add(r)
	}
}

// takeOver sets the trial of a pod name. The room of a version that may be restored is kept for as
// long as it may.
func (t *trials) takeOver(r *podRecord, next *rollout.Trial) {
	was := r.Trial
	r.Trial = next
	t.pods.touch(r.Key)
	switch {
	case next.Reserves() && (!was.Reserves() || was.Former != next.Former):
		t.table.Reserve(next.Former)
	case !next.Reserves() && was.Reserves():
		t.table.Unreserve(r.Key)
	}
}

// reserveAgain reserves the room of a version that may be restored, which a stop by its owner
// freed, if nothing else took it meanwhile. Room that others, which stopped for it, were given
// stays theirs.
func (t *trials) reserveAgain(r *podRecord) {
	if r.Stop != nil && r.Trial.Reserves() && t.table.Room(r.Trial.Former) == nil {
		t.table.Reserve(r.Trial.Former)
	}
}

// choose returns the version of a pod that runs: the one that its manifest gives, or the former
// one. s is the snapshot that gives it.
func (t *trials) choose(r *podRecord, s *manifests.Snapshot) *manifests.Pod {
	p := r.Given
	if r.Trial == nil && r.Offered != nil && r.Offered.Digest == p.Digest {
		return p
	}
	o := t.offer(r)
	o.Unread = isUnread(p, s)
	chosen, next := r.Trial.Candidate(o)
	if next != r.Trial {
		t.set(r, next)
	}
	return chosen
}

// offer returns the input for choosing the version of a pod, as its manifest gives it.
func (t *trials) offer(r *podRecord) rollout.Offer {
	o := rollout.Offer{New: r.Given, Given: r.Offered, Policy: t.shared.Settings().UpdatePolicy, Limits: t.limitsOf(r.Given)}
	o.Runs, o.Ended = t.lasts(r)
	o.Worked = r.Proof.Holds(o.Runs, time.Now(), o.Limits.Stable+t.shared.Watch.Late())
	return o
}

// lasts returns the version of a pod that runs, or that ran when its owner stopped it, as runs, and as
// ended if it has ended; nil: none.
func (t *trials) lasts(r *podRecord) (runs, ended *manifests.Pod) {
	now := r.Record
	now.Accepted = t.table.Admitted(r.Key)
	now.Over = now.Accepted != nil && t.table.Runs(r.Key) == nil
	p, over := now.Identity()
	if over {
		return nil, p
	}
	return p, nil
}

// ofNext returns the trial of the version that the manifest gives beside one that has shown that it
// works; nil: none. The latter runs until the record of that trial is on disk.
func (t *trials) ofNext(r *podRecord) *rollout.Trial {
	if r.Given == nil {
		return nil
	}
	_, next := (*rollout.Trial)(nil).Candidate(t.offerBeside(r))
	return next
}

// offerBeside is offer for a version that comes after one that has shown that it works.
func (t *trials) offerBeside(r *podRecord) rollout.Offer {
	o := t.offer(r)
	o.Given, o.Worked = o.Runs, true
	return o
}

func (t *trials) limitsOf(p *manifests.Pod) update.Limits {
	if t.limits == nil {
		return update.Limits{}
	}
	return t.limits(p.Pod)
}

// lives reports whether the kernel has a process of each container of a version that is to run. Its
// status is newer than what its worker has sent so far.
func (t *trials) lives(p *manifests.Pod) bool {
	now, known := t.store.Pod(p.Key().String())
	return known && update.HealthOf(p.Pod, &now.Status, podstatus.IsReady(&now.Status)).Ready &&
		t.shared.Disk.Cgroups.Live(p.Pod, update.Running(&now.Status))
}

// isUnread reports whether the content of the pod's file is unknown to a snapshot.
func isUnread(p *manifests.Pod, s *manifests.Snapshot) bool {
	f := s.File(p.File)
	if f == nil {
		return !s.Complete
	}
	return f.Held
}

// saw records the health of a running version. It reports whether this shows that the former
// version is back, which must be reported.
func (t *trials) saw(r *podRecord, now *worker.State) (isBack bool) {
	p := r.sent.Pod
	if p != nil && now.Health.Seen {
		r.Proof = r.Proof.Saw(p, now.Health, time.Now(), t.limitsOf(p).Stable+t.shared.Watch.Late())
	}
	next := r.Trial.Saw(p, now.Health)
	if next != r.Trial {
		if st, known := t.store.Pod(r.Key.String()); known && !r.Trial.Health.Seen {
			next = next.After(update.Ended(&st.Status))
		}
		t.set(r, next)
		t.pods.mark(r.Key)
	}
	isBack = next.IsBack(p) && !next.Said && now.Health.Seen && !now.Unmade
	if isBack {
		t.set(r, next.WithSaid())
	}
	if isBack && next.Next != nil {
		t.moved = append(t.moved, r)
	}
	return isBack
}

// goOn applies what a decision makes of the trial of its name. From then on the record has the
// trial.
func (t *trials) goOn(r *podRecord, d *rollout.Decision) {
	next := d.Trial
	switch d.Outcome {
	case rollout.Healthy:
		t.shared.Log.Info("new version is ready and stays", "pod", r.Key.String())
		next = t.ofNext(r)
		t.moved = append(t.moved, r)
	case rollout.RollBack:
		next = next.Because(t.trouble(r))
		t.shared.Log.Warn("new version does not work; the former one comes back", "pod", r.Key.String(), "reason", next.Reason)
	case rollout.Overdue:
		t.moved = append(t.moved, r)
	case rollout.Fit:
		next = next.Again(t.offerBeside(r))
		t.moved = append(t.moved, r)
	}
	if next == nil && r.Trial != nil && r.Offered == nil {
		t.moved = append(t.moved, r) // its pod is removed, which frees the images of the former version
	}
	if next != r.Trial {
		t.set(r, next)
	}
	d.Trial, d.Outcome = nil, rollout.Watching
}

// trouble returns what is wrong with the containers of a version on trial.
func (t *trials) trouble(r *podRecord) string {
	if p, ok := t.store.Pod(r.Key.String()); ok {
		return update.Trouble(&p.Status, r.Trial.Ended)
	}
	return ""
}

// interrupt voids what was observed of pods during a shutdown that was cancelled.
func (t *trials) interrupt() {
	for r := range t.pods.onTrial() {
		t.set(r, r.Trial.Interrupted())
		t.pods.mark(r.Key)
	}
}

// forget ends the trials of pods that no manifest gives and of which nothing is left. isComplete: all
// manifests were read. Other trials last until the removal of their pods, which may wait.
func (t *trials) forget(isComplete bool) {
	for _, r := range t.pods.all {
		if r.Trial != nil && r.Offered == nil && !r.IsThere() && (r.Gone || isComplete) {
			t.set(r, nil)
		}
	}
}

// wereSaved handles the results of saving trials.
func (t *trials) wereSaved(all []*filing) {
	t.filings.wereSaved(all)
	for _, f := range all {
		was := f.record.Trial
		if was != nil && f.Trial != nil {
			t.wasSaved(f.record, was.Filed(f.Filed))
		}
	}
}

func (t *trials) wasSaved(r *podRecord, next *rollout.Trial) {
	was := r.Trial
	t.set(r, next)
	if next.Stuck != was.Stuck {
		t.pods.mark(r.Key) // the status of the pod contains this
	}
	if next.Safe != was.Safe || next.Unfit != was.Unfit || next.Judged != was.Judged {
		t.moved = append(t.moved, r)
	}
}

// takeMoved returns the records of which another version may be offered now, or which have another
// one to roll back to.
func (t *trials) takeMoved() []*podRecord {
	all := t.moved
	t.moved = nil
	return all
}

// formers returns the versions that may be restored: what they need must stay.
func (t *trials) formers() (all []*manifests.Pod) {
	for _, r := range t.pods.all {
		if r.Trial != nil && r.Trial.Pinned != nil {
			all = append(all, r.Trial.Pinned)
		}
	}
	return all
}
