package rollout

import (
	"fmt"
	"slices"
	"strings"

	"monopod/agent/checkpoint"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// AskedBack returns the trial that rolls the pod back by request: the version that the manifest
// gives is treated as one that was found not to work, and a version that was ready once replaces
// it. to is the beginning of the hash of that version; "": the one that was ready last. Errors are
// *status.Refusal.
func (r *Record) AskedBack(name string, past []checkpoint.Past, to string, asked checkpoint.Asked, w *World) (*Trial, error) {
	if h := r.heldBy(name, w); h != "" {
		return nil, refusal("pod %s is not rolled back: %s", name, h)
	}
	p, err := r.pick(name, past, to)
	if err != nil {
		return nil, err
	}
	t := &Trial{Former: p.Version(), Images: p.Images, Tried: r.Given, Reason: asked.String(), Asked: &asked, Worked: true, Safe: true, Changes: 1}
	if r.Trial != nil {
		t.Changes += r.Trial.Changes
	}
	runs := r.Running()
	if runs != nil && update.Planned(runs, t.Former, w.Policy).Kind < update.Replace {
		t.Same = update.Unchanged(t.Former.Pod, runs.Pod)
	}
	t = t.pin()
	if t.Unfit {
		return nil, refusal("pod %s is not rolled back: which images version %s ran is not known", name, id(t.Former))
	}
	return t, nil
}

// heldBy returns the hold that forbids a rollback by request: of the pod or of the node, which the
// same person can end. A window and a lock only delay automatic changes, so they do not count here.
func (r *Record) heldBy(name string, w *World) string {
	switch {
	case r.Hold != nil:
		held := podHeld(name, r.Hold)
		return "it is " + held.String()
	case w.NodeHold != nil:
		held := nodeHeld(w.NodeHold)
		return held.String()
	}
	return ""
}

// pick returns the version that the request names.
func (r *Record) pick(name string, past []checkpoint.Past, to string) (*checkpoint.Past, error) {
	var meant []*checkpoint.Past
	for k := range past {
		p := &past[k]
		isMeant := strings.HasPrefix(hash(p.Version()), to)
		if to == "" {
			isMeant = !r.gives(p.Version()) && !r.Trial.hasGoneBackTo(p.Version())
		}
		if isMeant {
			meant = append(meant, p)
		}
	}
	switch {
	case len(meant) == 0 && to == "":
		return nil, refusal("pod %s has no earlier version that was ready, as far as this agent remembers", name)
	case len(meant) == 0:
		return nil, refusal("pod %s has no version %s that was ready: there %s", name, to, listed(past))
	case to != "" && hash(meant[0].Version()) != hash(meant[len(meant)-1].Version()):
		return nil, refusal("pod %s has several versions that begin with %s: there %s", name, to, listed(past))
	case r.Trial.hasGoneBackTo(meant[0].Version()):
		return nil, refusal("pod %s went back to version %s already", name, id(meant[0].Version()))
	case r.gives(meant[0].Version()):
		return nil, refusal("version %s is the one that the manifest of pod %s gives: edit that to have it tried again", id(meant[0].Version()), name)
	}
	return meant[0], nil
}

// gives reports whether the manifest gives this version.
func (r *Record) gives(p *manifests.Pod) bool { return r.Given != nil && r.Given.Digest == p.Digest }

// hasGoneBackTo reports whether p is the former version that already replaces one that failed or
// was rolled back by request.
func (t *Trial) hasGoneBackTo(p *manifests.Pod) bool {
	return t != nil && t.Tried != nil && t.Reason != "" && t.Former.Digest == p.Digest
}

// Original returns the version as its manifest gave it; p may be a former version that was restored
// with its images.
func (t *Trial) Original(p *manifests.Pod) *manifests.Pod {
	if t != nil && p != nil && t.Pinned != nil && t.Pinned.Digest == p.Digest {
		return t.Former
	}
	return p
}

// Remembered returns the version of which p is the restored one, as its manifest gave it; p itself
// if it is none of them. The trial that restored it may be over.
func Remembered(past []checkpoint.Past, p *manifests.Pod) *manifests.Pod {
	for k := range past {
		if p != nil && update.IsPinned(p.Pod, past[k].Pod, past[k].Images) {
			return past[k].Version()
		}
	}
	return p
}

// original returns the running version as its manifest gave it; nil: none runs.
func (r *Record) original(past []checkpoint.Past) *manifests.Pod {
	return Remembered(past, r.Trial.Original(r.Running()))
}

// History returns the reported versions of the pod: those that were ready, latest first; before
// them those that were not ready and that run, or that the manifest gives.
func (r *Record) History(past []checkpoint.Past) (all []status.PastVersion) {
	versions, runs := make([]*manifests.Pod, len(past)), r.original(past)
	for k := range past {
		p := &past[k]
		versions[k] = p.Version()
		one := r.told(versions[k], runs)
		one.Digests, one.ReadySince = p.Images, &p.Since
		isReady, last := r.Proof.LastReady(r.Running())
		switch {
		case one.Running && isReady:
			one.Ready = true
		case one.Running && !last.IsZero():
			one.LastReady = &last
		case !p.Until.IsZero():
			one.LastReady = &p.Until
		}
		all = append(all, one)
	}
	for _, p := range []*manifests.Pod{runs, r.Given} {
		isKnown := p == nil || slices.ContainsFunc(versions, func(v *manifests.Pod) bool { return v.Digest == p.Digest })
		if !isKnown {
			versions = append(versions, p)
			all = slices.Insert(all, 0, r.told(p, runs))
		}
	}
	return all
}

// told returns the report of a version; runs is the one that runs.
func (r *Record) told(p, runs *manifests.Pod) status.PastVersion {
	t := r.Trial
	one := status.PastVersion{Hash: hash(p), File: p.File, Images: imagesOf(p), Manifest: r.gives(p)}
	one.Running = runs != nil && runs.Digest == p.Digest && !r.IsHalted()
	switch {
	case t == nil || t.Tried == nil || t.Reason == "" || !t.Judged:
	case t.isTried(p):
		one.RolledBack = t.Reason
	case t.Former.Digest == p.Digest:
		one.ComesBack = !one.Running
	}
	return one
}

// listed returns a list of versions for an error.
func listed(past []checkpoint.Past) string {
	if len(past) == 0 {
		return "is none"
	}
	var all []string
	for k := range past {
		p := past[k].Version()
		all = append(all, fmt.Sprintf("%s (%s)", id(p), images(p)))
	}
	if len(all) == 1 {
		return "is " + all[0]
	}
	return "are " + strings.Join(all, ", ")
}

func refusal(format string, args ...any) error {
	return &status.Refusal{Why: fmt.Sprintf(format, args...)}
}
