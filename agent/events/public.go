package events

import (
	"slices"

	v1 "k8s.io/api/core/v1"

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
	pod  *v1.Pod
	left bool // it was not wanted any more when Know was called last
}

// has reports whether the values of an instance are known; "": of any.
func (i *instances) has(uid string) bool {
	return i != nil && slices.ContainsFunc(i.pods, func(of *instance) bool { return uid == "" || string(of.pod.UID) == uid })
}

func (i *instances) find(p *v1.Pod) *instance {
	if k := slices.IndexFunc(i.pods, func(of *instance) bool { return of.pod == p }); k >= 0 {
		return i.pods[k]
	}
	return nil
}

// join makes values those of all pods that are left.
func (i *instances) join() {
	pods := make([]*v1.Pod, len(i.pods))
	for k := range i.pods {
		pods[k] = i.pods[k].pod
	}
	i.values = elide.Of(pods...)
}

// Know takes all desired pods, so that the values of their env and headers are
// hidden from the public in messages about them. A removed instance stays known
// for as long as there are events about it, and until the next call at least. The
// pods must not be changed afterwards. For an instance that is not known the
// public sees that something went wrong, but no message.
func (r *Recorder) Know(wanted []*v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := make(map[*v1.Pod]bool, len(wanted))
	for _, p := range wanted {
		now[p] = true
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
	known.pods = append(known.pods, &instance{pod: p})
	known.join()
	h := r.memory.histories[s]
	if h == nil {
		return
	}
	own := elide.Of(p)
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
}

// Secrets returns the values of a pod, and of those instances of its name that
// are known. The caller owns them.
func (r *Recorder) Secrets(p *v1.Pod) *elide.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods := []*v1.Pod{p}
	if known := r.known[subject{"Pod", p.Namespace, p.Name}]; known != nil {
		for _, i := range known.pods {
			pods = append(pods, i.pod)
		}
	}
	return elide.Of(pods...)
}
