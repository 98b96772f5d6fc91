package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/outcome"
	"monopod/agent/podlog"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// fileWithin is how long the disk may take for the records of trials before a verdict counts
// without that.
const fileWithin = 10 * time.Second

// trials takes over what rollout's rules say of the versions on trial, and keeps the records of
// these on disk. It belongs to the sync loop's goroutine; the disk is written beside it.
type trials struct {
	Wake   *time.Timer                 // fires when look must be called
	limits func(*v1.Pod) update.Limits // what is asked of a version; nil: nothing

	shared *worker.Pool
	store  *status.Store
	pods   *records
	table  *admission.Table
	saved  chan []*filing     // the records as written
	given  manifests.Snapshot // the last one, as the manifests have it

	back    []*podRecord // whose former versions are back, which is to be told
	unsaved []*podRecord // whose trials are not as they are on disk
	failed  []*podRecord // which the disk did not take, and takes later perhaps
	running []*filing    // that are being saved
	began   time.Time    // when that began
	next    time.Time    // when Wake fires; zero: it does not
}

// newTrials returns the trials as previous agents left them.
func newTrials(shared *worker.Pool, store *status.Store, pods *records, table *admission.Table) trials {
	t := trials{Wake: time.NewTimer(time.Hour), shared: shared, store: store, pods: pods, table: table, saved: make(chan []*filing)}
	t.Wake.Stop()
	for _, u := range shared.Disk.Root.Updates(shared.Log) {
		key := manifests.KeyOf(u.Former)
		next := rollout.Recorded(u, shared.Disk.Machine.Boot.ID, table.Admitted(key))
		if next == nil {
			continue
		}
		table.Spare(next.Pinned)
		t.set(pods.of(key), next)
	}
	t.unsaved = nil
	for _, r := range pods.all {
		r.unsaved = false
	}
	return t
}

// set makes this the trial of a pod name; nil: it has none. Room is kept for a version that may
// come back.
func (t *trials) set(r *podRecord, next *rollout.Trial) {
	was := r.Trial
	r.Trial = next
	t.pods.touch(r.Key)
	switch {
	case next.Reserves() && (!was.Reserves() || was.Former != next.Former):
		t.table.Reserve(next.Former)
	case !next.Reserves() && was.Reserves():
		t.table.Unreserve(r.Key)
	}
	isSame := (was == nil) == (next == nil) && (was == nil || was.Former == next.Former && was.Changes == next.Changes)
	if !isSame && !r.unsaved {
		r.unsaved = true
		t.unsaved = append(t.unsaved, r)
	}
}

// reserveAgain keeps the room of a version that may come back, which a stop freed, if nothing else
// took it meanwhile.
func (t *trials) reserveAgain(r *podRecord) {
	if r.Trial.Reserves() && t.table.Room(r.Trial.Former) == nil {
		t.table.Reserve(r.Trial.Former)
	}
}

// lookAt has look called at a time, or before.
func (t *trials) lookAt(at time.Time) {
	if !at.IsZero() && (t.next.IsZero() || at.Before(t.next)) {
		t.next = at
		t.Wake.Reset(time.Until(at))
	}
}

// choose returns the version of a pod that is to run: the one that its manifest gives, or the
// former one.
func (t *trials) choose(p *manifests.Pod) *manifests.Pod {
	r := t.pods.see(p.Key())
	if r.Trial == nil && r.Offered != nil && r.Offered.Digest == p.Digest {
		return p
	}
	o := rollout.Offer{New: p, Given: r.Offered, Runs: t.table.Runs(p.Key()), Unread: t.isUnread(p), Policy: t.shared.Settings().UpdatePolicy}
	o.Limits = t.limitsOf(p)
	o.Worked = r.Proof.Holds(o.Runs, time.Now(), o.Limits.Stable)
	chosen, next := r.Trial.Candidate(o)
	if next != r.Trial {
		t.set(t.pods.of(p.Key()), next)
	}
	return chosen
}

func (t *trials) limitsOf(p *manifests.Pod) update.Limits {
	if t.limits == nil {
		return update.Limits{}
	}
	return t.limits(p.Pod)
}

// isUnread reports whether it is not known what the file of a pod says of it.
func (t *trials) isUnread(p *manifests.Pod) bool {
	for k := range t.given.Files {
		if f := &t.given.Files[k]; f.Path == p.File {
			return f.Held
		}
	}
	return !t.given.Complete
}

// saw takes over the health of a version that runs.
func (t *trials) saw(r *podRecord, now *worker.State) {
	p := r.sent.Pod
	if p != nil && now.Health.Seen {
		r.Proof = r.Proof.Saw(p, now.Health, time.Now(), t.limitsOf(p).Stable)
	}
	next := r.Trial.Saw(p, now.Health)
	if next != r.Trial {
		if st, known := t.store.Pod(r.Key.String()); known && !r.Trial.Health.Seen {
			next = next.After(update.Ended(&st.Status))
		}
		t.set(r, next)
		t.lookAt(time.Now())
	}
	if next.IsBack(p) && !next.Said && now.Health.Seen && !now.Unmade {
		t.set(r, next.WithSaid())
		t.back = append(t.back, r)
	}
}

// takeBack returns the records of the pods whose former versions are back.
func (t *trials) takeBack() []*podRecord {
	all := t.back
	t.back = nil
	return all
}

// look goes on with all trials. isBlind: nothing can be seen of the pods. It returns the names
// whose versions were found healthy; judged: versions give way.
func (t *trials) look(isBlind bool) (healthy []manifests.Key, judged bool) {
	now := time.Now()
	t.next = time.Time{}
	judged = t.late(now)
	for key, r := range t.pods.onTrial() {
		if !r.Trial.Health.Seen {
			continue
		}
		on, outcome, again := r.Trial.Look(rollout.Sight{Now: now, Limits: t.limitsOf(r.Trial.Tried), Blind: isBlind})
		switch outcome {
		case rollout.Healthy:
			healthy = append(healthy, key)
		case rollout.RollBack:
			on = on.Because(t.trouble(r))
			t.shared.Log.Warn("new version does not work; the former one comes back", "pod", key.String(), "reason", on.Reason)
		}
		t.set(r, on)
		t.lookAt(again)
	}
	return healthy, judged
}

// late lets the verdicts count that the disk does not take in time. It reports whether there
// are any.
func (t *trials) late(now time.Time) (judged bool) {
	if len(t.running) == 0 {
		return false
	}
	waiting := slices.Clone(t.unsaved)
	for _, f := range t.running {
		waiting = append(waiting, f.record)
	}
	isLate := !now.Before(t.began.Add(fileWithin))
	for _, r := range waiting {
		switch {
		case r.Trial == nil || r.Trial.Reason == "" || r.Trial.Judged:
		case isLate:
			t.set(r, r.Trial.JudgeAnyway())
			judged = true
		default:
			t.lookAt(t.began.Add(fileWithin))
		}
	}
	return judged
}

// trouble says what is wrong with the containers of a version on trial.
func (t *trials) trouble(r *podRecord) string {
	if p, ok := t.store.Pod(r.Key.String()); ok {
		return update.Trouble(&p.Status, r.Trial.Ended)
	}
	return ""
}

// interrupt is for a shutdown that was cancelled: what pods did meanwhile does not count.
func (t *trials) interrupt() {
	for _, r := range t.pods.onTrial() {
		t.set(r, r.Trial.Interrupted())
	}
	t.lookAt(time.Now())
}

// forget ends the trials of pods that no manifest gives. isComplete: all manifests were read.
func (t *trials) forget(isComplete bool) {
	for _, r := range t.pods.all {
		if r.Trial != nil && r.Offered == nil && (r.Gone || isComplete) {
			t.set(r, nil)
		}
	}
}

// retry lets records be saved again that the disk did not take.
func (t *trials) retry() {
	t.unsaved = append(t.unsaved, t.failed...)
	t.failed = nil
}

// filing is a record that is written to disk beside the sync loop.
type filing struct {
	rollout.Filed
	record *podRecord
	file   *checkpoint.Update // nil: it is removed
	stable time.Duration      // for how long a version must be ready to work
	logs   string             // the folder of the pods' logs
	Key    manifests.Key
}

// start begins to save the records that have changed, unless others are being saved. The
// result comes over saved.
func (t *trials) start(ctx context.Context, all *sync.WaitGroup) {
	if len(t.running) > 0 || len(t.unsaved) == 0 {
		return
	}
	t.running, t.began = t.filings(t.unsaved), time.Now()
	t.unsaved = nil
	running := t.running
	t.lookAt(t.began.Add(fileWithin))
	all.Go(func() {
		for _, f := range running {
			f.write(t.shared.Disk.Root, t.reported)
		}
		select {
		case t.saved <- running:
		case <-ctx.Done():
		}
	})
}

func (t *trials) filings(of []*podRecord) (out []*filing) {
	for _, r := range of {
		r.unsaved, r.saving = false, true
		f := &filing{record: r, Key: r.Key, logs: t.shared.Disk.PodLogs, Filed: rollout.Filed{Trial: r.Trial}}
		if r.Trial != nil && !r.Trial.Unfit {
			f.file, f.stable = r.Trial.Record(t.shared.Disk.Machine.Boot.ID), t.limitsOf(r.Trial.Former).Stable
		}
		out = append(out, f)
	}
	return out
}

// leave saves how far the watches are, as the agent ends.
func (t *trials) leave(all *sync.WaitGroup) {
	var on []*podRecord
	for _, r := range t.pods.onTrial() {
		on = append(on, r)
	}
	last := t.filings(on)
	all.Go(func() {
		for _, f := range last {
			f.write(t.shared.Disk.Root, t.reported)
		}
	})
}

// write saves the record. reported returns what was last reported of the pod. Any goroutine may
// call it.
func (f *filing) write(root *checkpoint.Root, reported func(manifests.Key) *v1.Pod) {
	if f.file != nil && f.Trial.Pinned == nil {
		p, all := reported(f.Key), false
		if p != nil && p.UID == f.Trial.Former.UID {
			f.Images = update.ImagesOf(&p.Status)
			_, all = update.Pin(f.Trial.Former.Pod, f.Images, nil)
			all = all && (f.Trial.Worked || update.HasWorked(&p.Status, time.Now(), f.stable))
		}
		f.file.Images = f.Images
		if f.Unfit = !all; f.Unfit {
			f.file = nil
		}
	}
	if f.file != nil && f.Trial.Reason != "" && !f.Trial.Judged { // else what failed is gone, or going
		f.Output = f.output(reported(f.Key))
		f.file.Output = f.Output
	}
	f.Err = root.SaveUpdate(f.Key, f.file)
}

// What is kept of the output of a container that made its version give way.
const (
	outputLines = 20
	outputBytes = 4 << 10
)

// output returns what the containers of a version wrote last that made it give way.
func (f *filing) output(p *v1.Pod) string {
	if p == nil {
		return ""
	}
	var all []string
	for _, name := range update.Troubled(&p.Status, f.Trial.Ended) {
		dir := podlog.Dir(f.logs, p, name)
		attempt, err := podlog.AttemptOf(dir, podlog.StatusOf(p, name), false)
		if err != nil {
			continue
		}
		text := podlog.Last(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), outputLines, outputBytes)
		if text = strings.TrimRight(text, "\n"); text != "" {
			all = append(all, name+": "+strings.ReplaceAll(text, "\n", "\n"+name+": "))
		}
	}
	return strings.Join(all, "\n")
}

// take takes over what was saved. It reports whether other versions may be chosen now.
func (t *trials) take(all []*filing) (changed bool) {
	t.running = nil
	for _, f := range all {
		r := f.record
		r.saving = false
		t.pods.drop(f.Key)
		if f.Err != nil && !r.unsaved {
			r.unsaved = true
			t.failed = append(t.failed, r)
		}
		was := r.Trial
		if was == nil || f.Trial == nil {
			continue
		}
		next := was.Filed(f.Filed)
		t.set(r, next)
		if next.Stuck != was.Stuck {
			t.pods.mark(f.Key) // the status of the pod says so
		}
		changed = changed || next.Safe != was.Safe || next.Unfit != was.Unfit || next.Judged != was.Judged
	}
	return changed
}

// reported returns what was last reported of a pod, by this agent or the one before; nil:
// nothing.
func (t *trials) reported(key manifests.Key) *v1.Pod {
	if p, ok := t.store.Pod(key.String()); ok {
		return p
	}
	p, _ := t.store.Previous(key.String())
	return p
}

// outcomes returns what became of the versions that give way if they do not work.
func (t *trials) outcomes() (all []outcome.Trial) {
	now := time.Now()
	for _, r := range t.pods.all {
		if of, state := r.Judged(now, t.limitsOf); of != nil {
			one := outcome.Trial{Pod: of, State: state}
			if state == status.TrialFailed {
				one.Output = r.Trial.Output
			}
			all = append(all, one)
		}
	}
	return all
}

// formers returns the versions that may come back: what they need must stay.
func (t *trials) formers() (all []*manifests.Pod) {
	for _, r := range t.pods.all {
		if r.Trial != nil && r.Trial.Pinned != nil {
			all = append(all, r.Trial.Pinned)
		}
	}
	return all
}
