package rollout

import (
	"time"

	"monopod/agent/message"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// Pending is a version that a manifest gives and that does not run, and why. The report for its
// file, and for a pod without a worker, is made of this; a pod with a worker gets the decision's
// Line.
type Pending struct {
	Pod   *manifests.Pod
	By    Cause        // the first cause
	Text  message.Text // all that it waits for and what ends that, in one line
	Final bool         // it will not run until its manifest changes
	Quiet bool         // the wait ends in a moment and is not reported
}

// Pending returns the versions of the name that do not run: the offered one, also if it may start
// but its record is not on disk; and the one on trial, if it was rolled back or waits for its
// record.
func (r *Record) Pending() (all []Pending) {
	d := &r.Now
	runs := r.Offered != nil && manifests.Same(d.Run, r.Offered) && d.Halt.Reason == "" && !d.WaitsBy(ByFault)
	if r.Offered != nil && len(d.Waits) > 0 && !runs {
		text, quiet := d.says()
		all = append(all, Pending{Pod: r.Offered, By: d.Waits[0].By, Text: text, Final: d.IsFinal(), Quiet: quiet})
	}
	if runs && r.Seen.Uncommitted != "" {
		all = append(all, Pending{Pod: r.Offered, By: BySaved, Text: message.Private(r.Seen.Uncommitted)})
	}
	if line := r.Trial.Line(); line.Text != "" {
		all = append(all, Pending{Pod: line.Pod, By: ByTrial, Text: message.Private(line.Text), Final: line.Final})
	}
	return all
}

// says joins the texts of the waits that are reported, or of the quiet ones if there is no other.
func (d *Decision) says() (text message.Text, isQuiet bool) {
	var texts, quiet []message.Text
	for _, w := range d.Waits {
		if w.isQuiet() {
			quiet = append(quiet, w.Text)
		} else {
			texts = append(texts, w.Text)
		}
	}
	if len(texts) == 0 {
		return message.Join(quiet, "; "), true
	}
	return message.Join(texts, "; "), false
}

// isQuiet reports whether a wait ends in a moment, so that it is not reported.
func (w *Wait) isQuiet() bool {
	return w.By == ByLook || w.By == ByPreparing || w.By == ByLastLook
}

// Judged returns the result of the trial of the name; nil: there is none. limits returns what a
// version must meet.
func (r *Record) Judged(now time.Time, limits func(*manifests.Pod) update.Limits) (of *manifests.Pod, state status.Trial) {
	t, runs := r.Trial, r.Now.Run
	switch {
	case t != nil && t.Tried != nil && t.Reason != "" && t.Judged:
		return t.Tried, status.TrialFailed
	case t != nil && t.Tried != nil && !t.Unfit:
		return t.Tried, status.TrialOn
	case runs != nil && r.Proof.of != nil && limits(runs).Within > 0 && r.Proof.IsStable(runs, now, limits(runs).Stable):
		return runs, status.TrialPassed
	}
	return nil, ""
}
