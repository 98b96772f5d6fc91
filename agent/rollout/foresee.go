package rollout

import (
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// Foresee returns the record as it would be once the manifests give this version of the pod; nil:
// once they give none. Like Decide it only answers a question: the result shares unchanged values
// with the record.
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
	if r.Seen.Unmade { // any other version replaces one that was never created
		r.Now.Prepare = next
	}
	r.Order = w.Names.OrderOf(next)
	if len(r.Order.After) > 0 && r.MustWait(w.Policy) {
		r.Order.Since = w.Now.Wall
	}
	return r
}

// OrderOf returns the place of a version in the start order. It does not set whether the version
// waits.
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

// Foreseen returns in words what a foreseen version, or removal, waits for. The lock of a workload
// is only checked while a change waits: without a check its file is named.
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

// Chosen returns the version of a pod that runs if the manifests give p, and its trial, present or
// past; nil: none. The version is p, or the restored former version.
func (r *Record) Chosen(p *manifests.Pod, w *World) (*manifests.Pod, *Trial) {
	chosen, trial := r.Trial.Candidate(Offer{New: p, Given: r.Offered, Runs: r.Present(), Policy: w.Policy, Limits: w.Limits(p)})
	if trial != nil && chosen == trial.Pinned {
		return chosen, trial
	}
	return p, trial
}

// Tries reports whether this trial is, or will be, of p.
func (t *Trial) Tries(p *manifests.Pod) bool {
	return t != nil && (t.isTried(p) || t.Next == p) && !t.Unfit && t.Reason == ""
}
