package agent

import (
	"log/slog"
	"slices"
	"time"

	"monopod/agent/admission"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/outcome"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"

	v1 "k8s.io/api/core/v1"
)

// reporter tells others what the sync loop knows: the state of the manifests, and the pods that
// have no worker, which reports them otherwise. It belongs to the loop's goroutine, and changes
// nothing of what it tells.
type reporter struct {
	dir    string // the manifest folder
	store  *status.Store
	events *events.Recorder
	log    *slog.Logger
	faults faults
	pods   *records
	table  *admission.Table
	trials *trials
	wrong  map[string]bool // problems of manifests that have an event
	stale  bool            // the state of the manifests is to be told again
}

// manifests gives the store the state of the manifests: the problems that the Source
// found, those of the start order itself, and the pods whose previous versions run
// because the new ones are not admitted or held.
func (p *reporter) manifests(s manifests.Snapshot) {
	waiting, held := p.waitingVersions(), map[string]bool{}
	for _, r := range p.pods.working() {
		if next := r.sent.Next; next != nil {
			held[next.File] = true
		}
	}
	order := p.orderProblems(s.Files, held)
	m := status.Manifests{Dir: p.dir, Problems: slices.Clone(s.Problems), Leaving: outcome.Leaving(&s, p.undesired()), Judge: p.outcomes().Judge}
	for _, f := range s.Files {
		m.Files = append(m.Files, status.File{Path: f.Path, Pods: f.Pods, SHA256: f.SHA256,
			Held:     f.Held || held[f.Path] || len(waiting[f.Path]) > 0,
			Problems: slices.Concat(f.Problems, waiting[f.Path], order[f.Path])})
	}
	p.store.SetManifests(m)
	p.recordProblems(&m)
}

// outcomes is what is known of the pods that the manifests give, whichever versions of them
// run.
func (p *reporter) outcomes() *outcome.Versions {
	given, rejected := p.trials.given, p.table.AllRejected()
	v := &outcome.Versions{Snapshot: &given, Refused: make([]outcome.Refusal, 0, len(rejected))}
	for _, r := range rejected {
		v.Refused = append(v.Refused, outcome.Refusal{Pod: r.Pod, Reason: r.Message.String(), Final: r.Final()})
	}
	for _, r := range p.pods.dependents() {
		if r.Offered != nil && r.AwaitsTurn() {
			text, _ := r.Now.Wait(rollout.ByStartOrder)
			v.Refused = append(v.Refused, outcome.Refusal{Pod: r.Offered, Reason: text.String()})
		}
	}
	for _, line := range p.trials.lines() {
		v.Refused = append(v.Refused, outcome.Refusal{Pod: line.Pod, Reason: line.Text, Final: line.Final})
	}
	return v
}

// undesired returns the pods by file that run though no manifest gives them.
func (p *reporter) undesired() map[string][]string {
	pods := map[string][]string{}
	for key, r := range p.pods.working() {
		if r.Offered == nil {
			pods[r.file] = append(pods[r.file], key.String())
		}
	}
	return pods
}

// waitingVersions returns, by file, the versions that are not admitted while their
// previous versions run.
func (p *reporter) waitingVersions() map[string][]status.Problem {
	found := map[string][]status.Problem{}
	for _, r := range p.table.AllRejected() {
		if key := r.Pod.Key(); p.table.Admitted(key) != nil {
			found[r.Pod.File] = append(found[r.Pod.File], status.Problem{
				File: r.Pod.File, Pod: key.String(), Message: r.Message.String(), Waits: p.saysRefused(key)})
		}
	}
	p.addRolledBack(found)
	return found
}

// saysRefused reports whether the previous version's status says why the new one waits.
func (p *reporter) saysRefused(key manifests.Key) bool {
	r := p.pods.see(key)
	return r.worker != nil && r.Now.Refused != nil && r.Now.Run != nil && r.Now.Halt.Reason == ""
}

// orderProblems returns, by file, the problems of the start order itself and the new
// versions that are held while their previous versions run. It adds the files of the
// latter to held.
func (p *reporter) orderProblems(files []manifests.File, held map[string]bool) map[string][]status.Problem {
	all := p.pods.dependents()
	if len(all) == 0 {
		return nil
	}
	orders := make(map[string]map[string]decode.Position, len(files))
	for _, f := range files {
		orders[f.Path] = f.Orders
	}
	found := map[string][]status.Problem{}
	for _, r := range all {
		key, file := r.Key, r.Order.Of.File
		text := r.Order.Problem(&p.pods.order.names)
		waits, isWaiting := r.Now.Wait(rollout.ByStartOrder)
		if isWaiting && p.pods.running(key) != nil {
			text, held[file] = waits.String(), true
		}
		if text != "" {
			at := orders[file][key.String()]
			found[file] = append(found[file], status.Problem{
				File: file, Line: at.Line, Column: at.Column, Pod: key.String(), Field: decode.StartAfterField, Message: text, Warning: !isWaiting})
		}
	}
	return found
}

// addRolledBack adds the versions that were rolled back to what is wrong with files.
func (p *reporter) addRolledBack(found map[string][]status.Problem) {
	for _, line := range p.trials.lines() {
		found[line.Pod.File] = append(found[line.Pod.File], status.Problem{
			File: line.Pod.File, Pod: line.Pod.Key().String(), Message: line.Text, Waits: true})
	}
}

// recordProblems records the problems of manifests that are new since the last report.
func (p *reporter) recordProblems(m *status.Manifests) {
	now := map[string]bool{}
	tell := func(about string, all []status.Problem) {
		for _, one := range all {
			if one.Waits {
				continue // the pod has the event
			}
			text := one.Error()
			now[text] = true
			if !p.wrong[text] {
				p.events.Record(events.FileRef(about), v1.EventTypeWarning, "FailedValidation", message.Private(text))
			}
		}
	}
	tell(m.Dir, m.Problems)
	for _, f := range m.Files {
		tell(f.Path, f.Problems)
	}
	p.wrong = now
}

// turn tells for what a pod waits in its start order, if that is another than in its decision
// before.
func (p *reporter) turn(r *podRecord, before *rollout.Decision) {
	was, waited := before.Wait(rollout.ByStartOrder)
	text, waits := r.Now.Wait(rollout.ByStartOrder)
	if waits {
		p.pods.tell(r)
	}
	if waited == waits && was == text {
		return
	}
	p.stale = true
	if !waits {
		return
	}
	log := p.log.With("pod", r.Key.String(), "reason", text.String())
	if r.Order.Problem(&p.pods.order.names) != "" {
		log.Warn("pod held; it may wait forever", "file", r.Offered.File)
	} else {
		log.Info("pod held by its start order")
	}
	p.events.Record(events.About(r.Offered.Pod), v1.EventTypeNormal, podstatus.ReasonHeld, text)
}

// turnHasCome tells that a pod waits for its turn no longer.
func (p *reporter) turnHasCome(r *podRecord) {
	waited, until := time.Since(r.Order.Since), r.Order.Until()
	text, wasTold := r.Now.Wait(rollout.ByStartOrder)
	switch {
	case !until.IsZero() && !time.Now().Before(until):
		p.log.Warn("start-after timeout passed; pod starts", "pod", r.Key.String(), "waited", waited.Round(time.Second), "reason", text.String())
	case wasTold:
		p.log.Info("start order fulfilled; pod starts", "pod", r.Key.String())
	}
}

// waiting reports a pod that is stopped, refused or waits for its turn, and has no worker.
func (p *reporter) waiting(r *podRecord) {
	if r.worker != nil {
		return
	}
	p.stopped(r)
	p.held(r)
	refused, waits := p.table.Rejected(r.Key)
	if !waits {
		return
	}
	_ = p.faults.ofPod(refused.Pod.Pod, "report the pod", func() {
		out := *refused.Pod.Pod
		st, public := podstatus.RefusedStatus(refused.Pod.Pod, refused.Rejection, refused.Since)
		out.Status = st
		p.store.SetReport(r.Key.String(), status.Report{Pod: &out, Public: public})
	})
}

// waits tells, once, that the next version of a pod, or its removal, waits for more than the
// end of pulls. was: what it waited for before. A refusal has an event of its own.
func (p *reporter) waits(r *podRecord, d *rollout.Decision, was string) {
	line := d.Line()
	lasts := d.Gated() != "" || d.Prepare != nil && r.Prepared.Is(d.Prepare) && r.Prepared.Lasting
	of := d.Prepare
	switch {
	case d.Refused != nil:
		r.told = r.told || d.Prepare != nil
		return
	case of == nil && line != was:
		of, r.told = d.Run, false
	case of == nil:
		return
	}
	if line == "" || !lasts || r.told {
		return
	}
	r.told = true
	p.log.Warn("the version before runs on", "pod", r.Key.String(), "reason", line)
	p.events.Record(events.About(of.Pod), v1.EventTypeWarning, rollout.ReasonWaits,
		message.Instead(line, message.Fixed("the version before runs on")))
}

// restartWaits tells, once, that a restart for changed config waits. was: what it waited for before.
func (p *reporter) restartWaits(d *rollout.Decision, was string) {
	line := d.RestartLine()
	if line == "" || was != "" {
		return
	}
	p.log.Warn("containers run on with their former config", "pod", d.Run.Key().String(), "reason", line)
	p.events.Record(events.About(d.Run.Pod), v1.EventTypeWarning, rollout.ReasonRestartWaits,
		message.Instead(line, message.Fixed("containers run on with their former config")))
}

// continues tells that a version takes the place of the one before, if it was told that it waits.
func (p *reporter) continues(r *podRecord) {
	if !r.told {
		return
	}
	p.log.Info("update continues: the new version takes the place of the one before", "pod", r.Key.String())
	p.events.Record(events.About(r.sent.Pod.Pod), v1.EventTypeNormal, rollout.ReasonContinues, message.Fixed("the new version takes the place of the one before"))
}

// held reports a pod that waits for its turn, once it is known what a previous agent reported.
func (p *reporter) held(r *podRecord) {
	text, waits := r.Now.Wait(rollout.ByStartOrder)
	if !waits || r.past == nil || !r.past.known {
		return
	}
	_ = p.faults.ofPod(r.Offered.Pod, "report the pod", func() {
		out := *r.Offered.Pod
		st, public := podstatus.HeldStatus(r.Offered, r.Order.Since, text, r.past.last)
		out.Status, r.past.last = st, &st
		p.store.SetReport(r.Key.String(), status.Report{Pod: &out, Public: public})
	})
}

func (p *reporter) stopped(r *podRecord) {
	if !r.IsHalted() || r.Offered == nil {
		return
	}
	_ = p.faults.ofPod(r.Offered.Pod, "report the pod", func() {
		out := *r.Offered.Pod
		st, public := podstatus.HaltedStatus(r.Offered, rollout.StoppedWhy)
		out.Status = st
		p.store.SetReport(r.Key.String(), status.Report{Pod: &out, Public: public})
	})
}
