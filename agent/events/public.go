package events

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/elide"
)

// view is what a reader asks for and may see.
type view struct {
	pod    string // "namespace/name"; "": all
	public bool   // without what only root may see
}

// has reports whether the reader gets the event. Events about pods and nodes are
// public; those about files quote their content.
func (v view) has(rec *record) bool {
	return rec.of(v.pod) && (!v.public || rec.about.Kind == "Pod" || rec.about.Kind == "Node")
}

// of returns the event as the reader sees it.
func (v view) of(rec *record) record {
	out := *rec
	if v.public {
		out.message = rec.public
	}
	return out
}

// instances are those pods of one name whose values are known.
type instances struct {
	pods   []*instance
	values *elide.Values // of all of them
}

type instance struct {
	pod    *v1.Pod
	values *elide.Values // its own
	left   bool          // it was not wanted any more when Know was called last
}

// has reports whether the values of an instance are known; "": of any.
func (i *instances) has(uid string) bool {
	return i != nil && slices.ContainsFunc(i.pods, func(of *instance) bool { return uid == "" || string(of.pod.UID) == uid })
}

// find returns the instance that has the same values under the same uid, nil if
// there is none.
func (i *instances) find(p *v1.Pod) *instance {
	if i == nil {
		return nil
	}
	is := func(of *instance) bool { return of.pod.UID == p.UID && elide.Same(of.pod, p) }
	k := slices.IndexFunc(i.pods, is)
	if k < 0 {
		return nil
	}
	return i.pods[k]
}

// valuesOf returns the values of a pod: those of an instance that has the same.
func (i *instances) valuesOf(p *v1.Pod) *elide.Values {
	for _, of := range i.pods {
		if elide.Same(of.pod, p) {
			return of.values
		}
	}
	return elide.Of(p)
}

// join makes values those of all pods that are left.
func (i *instances) join() { i.values = elide.Join(i.all()...) }

// all returns the values of each instance.
func (i *instances) all() []*elide.Values {
	all := make([]*elide.Values, len(i.pods))
	for k := range i.pods {
		all[k] = i.pods[k].values
	}
	return all
}

// Know takes all desired pods, so that the values of their env and headers are
// hidden from the public in messages about them. A removed instance stays known
// for as long as there are events about it, and until the next call at least. The
// pods must not be changed afterwards. For an instance that is not known the
// public sees that something went wrong, but no message.
func (r *Recorder) Know(wanted []*v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.shown)
	clear(r.hidden)
	now := make(map[*v1.Pod]bool, len(wanted))
	for _, p := range wanted {
		now[p] = true
		if known := r.known[subject{"Pod", p.Namespace, p.Name}].find(p); known != nil {
			known.pod = p
		}
	}
	r.forget(now)
	for _, p := range wanted {
		r.learn(p)
	}
}

// forget drops the instances that nothing is said of and that were not wanted
// at the last call either. r.mu is held.
func (r *Recorder) forget(wanted map[*v1.Pod]bool) {
	told := map[string]bool{}
	for rec := range r.memory.all() {
		told[string(rec.about.UID)] = true
	}
	for s, known := range r.known {
		n := len(known.pods)
		known.pods = slices.DeleteFunc(known.pods, func(i *instance) bool {
			drop := i.left && !wanted[i.pod] && !told[string(i.pod.UID)]
			i.left = !wanted[i.pod]
			return drop
		})
		switch {
		case len(known.pods) == 0:
			delete(r.known, s)
		case len(known.pods) < n:
			known.join()
		}
	}
}

// learn hides the values of a pod in what was and will be said of its name.
// r.mu is held.
func (r *Recorder) learn(p *v1.Pod) {
	s := subject{"Pod", p.Namespace, p.Name}
	known := r.known[s]
	if known == nil {
		known = &instances{}
		r.known[s] = known
	}
	if known.find(p) != nil {
		return
	}
	own := known.valuesOf(p)
	known.pods = append(known.pods, &instance{pod: p, values: own})
	known.join()
	h := r.memory.histories[s]
	if h == nil {
		return
	}
	for _, rec := range h.records {
		if rec.blank {
			r.publish(rec)
		} else { // with what was hidden before: some of those may not be known any more
			rec.public = own.Hide(rec.public)
		}
	}
}

// publish sets what the public learns of a record. r.mu is held.
func (r *Recorder) publish(rec *record) {
	rec.public, rec.blank = rec.message, false
	if rec.about.Kind != "Pod" {
		return
	}
	known := r.known[subjectOf(&rec.about)]
	if rec.blank = rec.kind == v1.EventTypeWarning && !known.has(string(rec.about.UID)); rec.blank {
		rec.public = elide.Mark
	} else if known != nil {
		rec.public = known.values.Hide(rec.message)
	}
	if of := r.referred[subjectOf(&rec.about)]; of != nil {
		rec.public = of.values.Hide(rec.public)
	}
}

// referred are the values of the Secrets that a pod refers to.
type referred struct {
	texts       []string
	now, values *elide.Values // of now, and of the time before the last change, too
}

// KnowSecrets takes the values of the Secrets that pods refer to, by the pods' names, so
// that these are hidden, too, in what is said from now on. They must not be changed
// afterwards.
func (r *Recorder) KnowSecrets(of map[types.NamespacedName][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[subject]*referred, len(of))
	for name, texts := range of {
		s := subject{"Pod", name.Namespace, name.Name}
		before := r.referred[s]
		if before != nil && slices.Equal(before.texts, texts) {
			next[s] = before
			continue
		}
		now := elide.OfTexts(texts)
		next[s] = &referred{texts, now, now}
		if before != nil {
			next[s].values = elide.Join(before.now, now)
		}
	}
	r.referred = next
	clear(r.hidden)
}

// Secrets returns the values of a pod, and of those instances of its name that
// are known. As long as these are the same, it returns the same.
func (r *Recorder) Secrets(p *v1.Pod) *elide.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := subject{"Pod", p.Namespace, p.Name}
	known := r.known[s]
	if known.find(p) != nil {
		return r.withReferred(s, known.values)
	}
	if known == nil {
		known = &instances{}
	}
	last := r.shown[s]
	if last == nil || !elide.Same(last.pod, p) {
		last = &instance{pod: p, values: elide.Join(append([]*elide.Values{known.valuesOf(p)}, known.all()...)...)}
		r.shown[s] = last
	}
	return r.withReferred(s, last.values)
}

// withReferred adds the values of the Secrets that a pod refers to. r.mu is held.
func (r *Recorder) withReferred(s subject, values *elide.Values) *elide.Values {
	of := r.referred[s]
	if of == nil {
		return values
	}
	if r.hidden[values] == nil {
		r.hidden[values] = elide.Join(values, of.values)
	}
	return r.hidden[values]
}
