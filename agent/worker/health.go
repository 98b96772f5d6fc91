package worker

import (
	"maps"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
)

// probe marks kill decisions, updates the set of probes and takes their results.
func (w *Worker) probe(s *plan.Facts) {
	for uid, i := range s.Observed.Instances {
		if c := w.Known[uid]; c != nil {
			i.MarkKills(c.KillDecisions)
			i.MarkReplaced(c.ReplaceSandbox)
		}
	}
	w.probes.set.Follow(w.probes.targets(s))
	s.Probes = w.probes.set.Results()
}

// MarkKill records a kill decision. If the disk does not take it, the container
// is stopped all the same; only an agent that dies meanwhile forgets why.
func (w *Worker) MarkKill(s *plan.Facts, a plan.Action) {
	c := *w.checkpointOf(s, a.UID)
	all := map[string]checkpoint.KillDecision{a.ID: {Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: a.Asked}}
	maps.Copy(all, c.KillDecisions)
	if a.Asked { // a restart request overrides a probe's decision
		all[a.ID] = checkpoint.KillDecision{Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: true}
	}
	maps.DeleteFunc(all, func(id string, _ checkpoint.KillDecision) bool { return !s.Observed.Instances[a.UID].Has(id) })
	c.KillDecisions = all
	if err := w.remember(&c); err != nil {
		w.setKnown(&c, true)
		w.Log.Warn("kill decision is not saved", "container", a.Name, "err", err)
	}
}
