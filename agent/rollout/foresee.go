package rollout

import (
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Foresee returns the record as it would be once the manifests give this version of the pod; nil:
// once they give none. It is for questions alone, as Decide: it shares with the record what it does
// not change.
func Foresee(r Record, p *manifests.Pod, w *World) Record {
	if p == nil {
		r.Given, r.Offered, r.Gone, r.Kept = nil, nil, true, Kept{}
		return r
	}
	next := Identify(&r, p, w.Policy)
	if manifests.Same(r.Offered, next) {
		return r
	}
	r.Offered, r.Gone, r.Kept = next, false, Kept{}
	if r.Seen.Unmade { // what was never made gives way to whatever comes
		r.Now.Prepare = next
	}
	r.Order = w.Names.OrderOf(next)
	if len(r.Order.After) > 0 && r.MustWait(w.Policy) {
		r.Order.Since = w.Now.Wall
	}
	return r
}

// OrderOf returns the place of a version in the start order, of which is not said whether it waits.
func (n *Names) OrderOf(p *manifests.Pod) Order {
	says := annotations.OrderOf(p.Pod)
	if len(says.After) == 0 {
		return Order{}
	}
	after := make([]manifests.Key, len(says.After))
	for k, name := range says.After {
		after[k] = n.Meant(name)
	}
	return Order{Of: p, After: after, Timeout: says.Timeout}
}

// Foreseen returns in words what a foreseen version, or removal, waits for. Nobody looks for the
// lock of a workload while no change waits: then its file is named.
func (r *Record) Foreseen(d *Decision) (texts []string) {
	for _, w := range d.Waits {
		switch {
		case w.By == ByLook && r.Lock.State == Unlooked:
			texts = append(texts, "the lock of its workload, if "+r.Lock.File+" is there")
		case !w.isQuiet():
			texts = append(texts, w.Text.String())
		}
	}
	return texts
}

// Chosen returns the version of a pod that is to run if the manifests give p, and the trial that it
// is then on, or was; nil: none. That is p, or the former version that came back.
func (r *Record) Chosen(p *manifests.Pod, w *World) (*manifests.Pod, *Trial) {
	chosen, trial := r.Trial.Candidate(Offer{New: p, Given: r.Offered, Runs: r.Running(), Policy: w.Policy, Limits: w.Limits(p)})
	if trial != nil && chosen == trial.Pinned {
		return chosen, trial
	}
	return p, trial
}

// Tries reports whether a version is on this trial, or will be.
func (t *Trial) Tries(p *manifests.Pod) bool {
	return t != nil && t.isTried(p) && !t.Unfit && t.Reason == ""
}
