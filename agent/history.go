package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/worker"
	"monopod/manifests"
)

// histories records on disk, in the background, which versions of pods were ready. It belongs to
// the sync loop's goroutine. Nothing waits for the disk: a version that is not recorded when the
// agent ends is recorded by the next agent.
type histories struct {
	shared  *worker.Pool
	store   *status.Store
	pods    *records
	limits  func(*manifests.Pod) update.Limits // what a version on trial must meet
	late    func() time.Duration               // how late the end of a container may be observed
	running *sync.WaitGroup
	off     bool // nothing is recorded

	proving []*podRecord // the records where it is being observed whether what runs stays ready
	swept   bool         // the versions of unknown pods were removed
	saving  bool
	saved   chan []*memory // the versions that were written
}

// memory is a version that is recorded.
type memory struct {
	checkpoint.Past
	record   *podRecord
	digest   string
	runs     *manifests.Pod // the version as it runs
	formerly time.Time      // when the version before it was ready last
	unknown  bool           // it is not known which images it ran
	err      error
}

// saw is called when a worker has reported what runs.
func (h *histories) saw(r *podRecord) {
	if r.proves || !h.isNews(r) {
		return
	}
	r.proves = true
	h.proving = append(h.proving, r)
}

// isNews reports whether the running version is not recorded yet.
func (h *histories) isNews(r *podRecord) bool {
	p := r.sent.Pod
	return p != nil && !h.off && r.remembered != r.Trial.Original(p).Digest
}

// tick records the versions that have stayed ready long enough, and removes those of pods that are
// gone. isComplete: all manifests were read.
func (h *histories) tick(ctx context.Context, isComplete bool) {
	if h.saving || h.off {
		return
	}
	var all []*memory
	watched := h.proving
	h.proving = nil
	for _, r := range watched {
		r.proves = false
		one := h.memoryOf(r)
		if one != nil {
			all = append(all, one)
		}
		h.saw(r)
	}
	over, sweeps := h.pods.over, isComplete && !h.swept
	h.pods.over = nil
	if len(all)+len(over) == 0 && !sweeps {
		return
	}
	h.swept = h.swept || sweeps
	h.save(ctx, all, h.forget(over, sweeps))
}

// memoryOf returns what is to be recorded of the running version; nil: nothing, or not yet.
func (h *histories) memoryOf(r *podRecord) *memory {
	p := r.sent.Pod
	if !h.isNews(r) || r.sent.Halted.Reason != "" || r.Trial.IsOn() || !r.Proof.IsStable(p, time.Now(), h.limits(p).Stable+h.late()) {
		return nil
	}
	version := r.Trial.Original(p)
	since, former := r.Proof.Since()
	if since.IsZero() {
		return nil
	}
	return &memory{Past: checkpoint.PastOf(version, nil, since), record: r, digest: version.Digest, runs: p, formerly: former}
}

// forget returns the func that removes the versions of these names, and if all is set also those of
// all names that are not known.
func (h *histories) forget(names []manifests.Key, all bool) func() error {
	root := h.shared.Disk.Root
	if all {
		var known []manifests.Key
		for key := range h.pods.all {
			known = append(known, key)
		}
		return func() error { return root.ForgetOtherHistories(known) }
	}
	return func() error {
		for _, key := range names {
			err := root.ForgetHistory(key)
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (h *histories) save(ctx context.Context, all []*memory, forget func() error) {
	h.saving = true
	h.running.Go(func() {
		var writes []func() error
		for _, m := range all {
			writes = append(writes, func() error { m.write(h.shared.Disk.Root, h.store); return nil })
		}
		err := diskWrites{h.shared}.await(ctx, "versions that were ready", append(writes, forget)...)
		if h.shared.Faults.IsNew("forget the versions of former pods", err) {
			h.shared.Log.Error("versions of former pods are still remembered", "err", err)
		}
		select {
		case h.saved <- all:
		case <-ctx.Done():
		}
	})
}

// write records the version, if it is known which images it ran. Any goroutine may call it.
func (m *memory) write(root *checkpoint.Root, reported *status.Store) {
	p, known := reported.Last(m.record.Key.String())
	if !known || p.UID != m.runs.UID {
		m.unknown = true
		return
	}
	m.Images = update.ImagesOf(&p.Status)
	_, all := update.Pin(m.Pod, m.Images, nil)
	m.unknown = !all
	if !all {
		return
	}
	past, err := root.History(m.record.Key)
	if err == nil { // else Remember says so, or moves the damaged file aside
		m.Past = checkpoint.PastOf(rollout.Remembered(past, m.Version()), m.Images, m.Since)
	}
	m.err = root.Remember(m.Past, m.formerly)
}

// wereSaved handles the result. Failed writes are retried at the next tick.
func (h *histories) wereSaved(all []*memory) {
	h.saving = false
	for _, m := range all {
		if m.err == nil && !m.unknown {
			m.record.remembered = m.digest
		}
		if h.shared.Faults.IsNew("remember the version of "+m.record.Key.String(), m.err) {
			h.shared.Log.Error("a version that is ready is not remembered; it is tried again", "pod", m.record.Key.String(), "err", m.err)
		}
	}
}

// versionsRequest requests the versions of a pod.
type versionsRequest struct {
	key    manifests.Key
	past   []checkpoint.Past
	answer chan []status.PastVersion // one slot; nil: there is no such pod
}

// history answers a versionsRequest.
func (a *applier) history(q *versionsRequest) []status.PastVersion {
	r := a.recordOf(q.key)
	if r.Given == nil && r.Running() == nil && len(q.past) == 0 {
		return nil
	}
	return slices.Concat([]status.PastVersion{}, r.History(q.past))
}

// rollbackRequest requests a rollback of a pod to a former version.
type rollbackRequest struct {
	key    manifests.Key
	past   []checkpoint.Past
	to     string // the beginning of its hash; "": the one that was ready last
	why    string
	answer chan error // one slot

	before *rollout.Trial // the trial that stays valid if the disk does not take the request
	former *manifests.Pod // the version to roll back to
}

// askedBack returns the trial for a rollback request. last is the last snapshot; nil: none yet.
func (a *applier) askedBack(q *rollbackRequest, last *manifests.Snapshot) (*rollout.Trial, error) {
	asked := a.pods.see(q.key).asked
	r := a.recordOf(q.key)
	_, reported := a.shared.Store.Pod(q.key.String())
	switch {
	case r.Given == nil && reported:
		return nil, &status.Refusal{Why: "no manifest gives pod " + q.key.String() + " any more: there is nothing that gives way"}
	case r.Given == nil:
		return nil, &status.Refusal{Unknown: true, Why: "there is no pod " + q.key.String()}
	case asked != nil:
		return nil, &status.Refusal{Why: "pod " + q.key.String() + " is just being rolled back by another request"}
	case isUnread(r.Given, last):
		return nil, &status.Refusal{Why: "what the manifest of pod " + q.key.String() + " gives cannot be read now, so nothing of it can give way"}
	}
	next, err := r.AskedBack(q.key.String(), q.past, q.to, checkpoint.Asked{At: time.Now(), Why: q.why}, a.world())
	if err != nil {
		return nil, err
	}
	missing := a.shared.Disk.Objects.Missing(next.Pinned)
	if missing != "" {
		return nil, &status.Refusal{Why: "pod " + q.key.String() + " is not rolled back, as the former version lacks what is gone: " + missing}
	}
	return next, nil
}

// answer answers the request after its record was saved or the save failed; in the latter case the
// former trial is restored.
func (t *trials) answer(f *filing) {
	r := f.record
	q := r.asked
	switch {
	case q == nil:
	case r.Trial == nil || r.Trial.Former != q.former:
		r.asked = nil
		q.answer <- &status.Refusal{Why: "the manifest of pod " + r.Key.String() + " was changed meanwhile: nothing is rolled back"}
	case f.Trial == nil || f.Trial.Former != q.former: // it was written before the request
	case f.Err != nil:
		r.asked = nil
		t.set(r, q.before)
		q.answer <- f.Err
	default:
		r.asked = nil
		q.answer <- nil
	}
}
