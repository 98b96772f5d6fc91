package agent

import (
	"log/slog"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/outcome"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/decode"
)

// reporter reports what the sync loop knows: the state of the manifests, and the pods without a
// worker (a worker reports its own pod). It belongs to the loop's goroutine, and changes nothing of
// what it reports.
type reporter struct {
	dirs   []string // the folders of manifests, the lowest first
	store  *status.Store
	events *events.Recorder
	log    *slog.Logger
	faults faults
	pods   *records
	limits func(*manifests.Pod) update.Limits // what a version on trial must meet
	wrong  map[string]bool                    // problems of manifests that have an event
	stale  bool                               // the state of the manifests is to be reported again
}

// manifests reports the state of the manifests to the store: the problems that the Source found,
// those of the start order, and the versions that do not run while former ones do.
func (p *reporter) manifests(s manifests.Snapshot) {
	all := p.pending()
	files := fileReports{all: s.Files, found: p.found(all)}
	files.place()
	m := status.Manifests{Problems: slices.Clone(s.Problems), Leaving: outcome.Leaving(&s, p.undesired()), Judge: p.outcomes(&s, all).Judge}
	p.name(&m)
	m.UpdateStable.Duration = p.limits(&manifests.Pod{Pod: &v1.Pod{}}).Stable
	if len(s.Files) > 0 {
		m.List = files.list
	}
	p.store.SetManifests(m)
	p.recordProblems(&m, &files)
}

// name names the folders of manifests in a report.
func (p *reporter) name(m *status.Manifests) {
	if len(p.dirs) > 0 {
		m.Dir = p.dirs[0]
	}
	if len(p.dirs) > 1 {
		m.Dirs = p.dirs
	}
}

// fileReports are the files of a snapshot, with what the loop knows of them besides. After place,
// nothing of them changes.
type fileReports struct {
	all   []*manifests.File
	found map[string]*fileFound // by path
}

// place sets the line and column of the problems of the start order.
func (s *fileReports) place() {
	if len(s.found) == 0 {
		return
	}
	for _, f := range s.all {
		if own := s.found[f.Path]; own != nil {
			own.at(f.Orders)
		}
	}
}

// list returns the files as they are reported. Any goroutine may call it.
func (s *fileReports) list() []status.File {
	all := make([]status.File, 0, len(s.all))
	for _, f := range s.all {
		now := status.File{Path: f.Path, Pods: f.Pods, SHA256: f.SHA256, Held: f.Held, MaskedBy: f.MaskedBy, Problems: s.problems(f)}
		own := s.found[f.Path]
		now.Held = now.Held || own != nil && own.held
		all = append(all, now)
	}
	return all
}

// problems returns the problems of a file.
func (s *fileReports) problems(f *manifests.File) []status.Problem {
	own := s.found[f.Path]
	if own == nil || len(own.problems) == 0 {
		return f.Problems
	}
	return slices.Concat(f.Problems, own.problems)
}

// pending is a version that does not run, as it is reported.
type pending struct {
	rollout.Pending
	of     *podRecord
	beside bool // another version runs
	said   bool // the pod's status already has what this one waits for
}

// pending returns the versions that do not run, in the order of their names.
func (p *reporter) pending() (all []pending) {
	for _, r := range p.pods.sorted(func(r *podRecord) bool { return len(r.Now.Waits) > 0 || r.Trial != nil || r.Seen.Uncommitted != "" }) {
		for _, one := range r.Pending() {
			isTrial, isSaved, runs := one.By == rollout.ByTrial, one.By == rollout.BySaved, r.sent.Pod != nil && r.sent.Halted.Reason == ""
			next := pending{Pending: one, of: r, beside: isTrial || isSaved || runs && (one.By == rollout.ByFault || !manifests.Same(r.sent.Pod, one.Pod))}
			next.said = isSaved || isTrial && r.sent.Told != "" || !isTrial && r.sent.Waits != "" && r.sent.Waits == r.Now.Line()
			all = append(all, next)
		}
	}
	return all
}

// outcomes returns what is known of the pods that the manifests give, whichever versions of them
// run.
func (p *reporter) outcomes(s *manifests.Snapshot, all []pending) *outcome.Versions {
	v := &outcome.Versions{Snapshot: s, Refused: make([]outcome.Refusal, 0, len(all)), Trials: p.judged()}
	for _, one := range all {
		v.Refused = append(v.Refused, outcome.Refusal{Pod: one.Pod, Reason: one.Text.String(), Final: one.Final})
	}
	return v
}

// judged returns the results of the trials.
func (p *reporter) judged() (all []outcome.Trial) {
	now := time.Now()
	for _, r := range p.pods.all {
		if of, state := r.Judged(now, p.limits); of != nil {
			one := outcome.Trial{Pod: of, State: state}
			if state == status.TrialFailed {
				one.Output = r.Trial.Output
			}
			all = append(all, one)
		}
	}
	return all
}

// undesired returns, by file, the pods that run though no manifest gives them.
func (p *reporter) undesired() map[string][]string {
	pods := map[string][]string{}
	for key, r := range p.pods.working() {
		if r.Offered == nil {
			pods[r.file] = append(pods[r.file], key.String())
		}
	}
	return pods
}

// fileFound is what the loop knows of a file besides what the Source found.
type fileFound struct {
	problems []status.Problem
	held     bool // an earlier version of one of its pods runs on
}

// at sets the line and column of the problems of the start order.
func (f *fileFound) at(orders map[string]decode.Position) {
	for k := range f.problems {
		one := &f.problems[k]
		if one.Field != "" {
			at := orders[one.Pod]
			one.Line, one.Column = at.Line, at.Column
		}
	}
}

// found returns, by file, the reports of the versions that do not run, and the problems of the
// start order.
func (p *reporter) found(all []pending) map[string]*fileFound {
	found := map[string]*fileFound{}
	of := func(file string) *fileFound {
		if found[file] == nil {
			found[file] = &fileFound{}
		}
		return found[file]
	}
	add := func(file string, one status.Problem) {
		one.File = file
		of(file).problems = append(of(file).problems, one)
	}
	waiting := map[*podRecord]bool{} // whose wait in the start order is already reported
	for _, one := range all {
		file := one.Pod.File
		if !one.beside || one.Quiet {
			continue
		}
		of(file).held = true
		problem := status.Problem{Pod: one.Pod.Key().String(), Message: one.Text.String(), Waits: one.said}
		if one.By == rollout.ByStartOrder {
			problem.Field, waiting[one.of] = annotations.StartAfterField, true
		}
		add(file, problem)
	}
	for _, r := range p.pods.dependents() {
		if text := r.Order.Problem(&p.pods.order.names); text != "" && !waiting[r] {
			waits := r.Now.WaitsBy(rollout.ByStartOrder)
			add(r.Order.Of.File, status.Problem{Pod: r.Key.String(), Field: annotations.StartAfterField, Message: text, Warning: !waits, Waits: waits && r.worker == nil})
		}
	}
	return found
}

// recordProblems records the problems of manifests that are new since the last report.
func (p *reporter) recordProblems(m *status.Manifests, files *fileReports) {
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
	for _, f := range files.all {
		tell(f.Path, files.problems(f))
	}
	p.wrong = now
}

// turn reports what a pod waits for in its start order, if that differs from the decision before.
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
	p.events.Record(events.About(r.Offered.Pod), v1.EventTypeNormal, podstatus.ReasonWaitingForPods, text)
}

// turnHasCome logs that a pod no longer waits for its turn.
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

// waiting reports a pod that has no worker, by the first wait of its version.
func (p *reporter) waiting(r *podRecord) {
	if r.worker != nil || r.Offered == nil || len(r.Now.Waits) == 0 {
		return
	}
	for _, one := range r.Pending() {
		if manifests.Same(one.Pod, r.Offered) && one.By != rollout.ByTrial {
			_ = p.faults.ofPod(one.Pod.Pod, "report the pod", func() { p.nothingRuns(r, &one) })
		}
	}
}

// nothingRuns reports a pod that does not run. A pod that waits for its turn is reported only after
// the report of the previous agent was read.
func (p *reporter) nothingRuns(r *podRecord, why *rollout.Pending) {
	out := *why.Pod.Pod
	var public message.Book
	refused := r.Now.Refused
	switch {
	case why.By == rollout.ByOwner:
		out.Status, public = podstatus.HaltedStatus(why.Pod, rollout.StoppedWhy)
	case why.By == rollout.ByStartOrder && (r.past == nil || !r.past.known):
		return
	case why.By == rollout.ByStartOrder:
		st, said := podstatus.WaitingForPods(why.Pod, r.Order.Since, why.Text, r.past.last)
		out.Status, r.past.last, public = st, &st, said
	case refused != nil:
		out.Status, public = podstatus.RefusedStatus(why.Pod.Pod, refused.Why, metav1.NewTime(refused.Since).Rfc3339Copy())
	default:
		out.Status, public = podstatus.HaltedStatus(why.Pod, plan.Waiting{Reason: rollout.ReasonWaits, Message: why.Text})
	}
	pull := pullOf(&r.Now)
	if pull != (status.Pull{}) {
		status.SetPulls(&out, []status.Pull{pull})
	}
	p.store.SetReport(r.Key.String(), status.Report{Pod: &out, Public: public})
}

// waits reports, once, that the next version of a pod, or its removal, waits for more than its
// pulls. was: the former line. A refusal has an event of its own.
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
	_, next := d.Tries()
	p.events.RecordTry(events.About(of.Pod), v1.EventTypeWarning, rollout.ReasonWaits,
		message.Instead(line, message.Fixed("the version before runs on")), next)
}

// restartWaits reports, once, that a restart for changed config waits. was: the former line.
func (p *reporter) restartWaits(d *rollout.Decision, was string) {
	line := d.RestartLine()
	if line == "" || was != "" {
		return
	}
	p.log.Warn("containers run on with their former config", "pod", d.Run.Key().String(), "reason", line)
	p.events.Record(events.About(d.Run.Pod), v1.EventTypeWarning, rollout.ReasonRestartWaits,
		message.Instead(line, message.Fixed("containers run on with their former config")))
}

// continues reports that a version replaces the former one, if its wait was reported.
func (p *reporter) continues(r *podRecord) {
	if !r.told {
		return
	}
	p.log.Info("update continues: the new version takes the place of the one before", "pod", r.Key.String())
	p.events.Record(events.About(r.sent.Pod.Pod), v1.EventTypeNormal, rollout.ReasonContinues, message.Fixed("the new version takes the place of the one before"))
}
