package once

import (
	v1 "k8s.io/api/core/v1"
)

// past is what earlier looks at the pods showed of failures: which of them still count. It belongs
// to the evaluator's goroutine; the zero value has none.
type past struct {
	good map[string]int32  // the last attempt that ended well, by container
	ids  map[string]string // the id seen last, by container

	// settled has the pods that are ready or have ended, by key: how often each container, and the
	// start of each pod, had failed when that was seen first.
	settled map[string]map[string]int
}

// note records the present state of the pods. Failed starts of what was made since are forgotten.
func (p *past) note(all []view, starts *Starts) {
	if p.good == nil {
		p.good, p.ids, p.settled = map[string]int32{}, map[string]string{}, map[string]map[string]int{}
	}
	for k := range all {
		p.noteMade(&all[k], starts)
		p.noteGood(&all[k])
	}
	p.noteSettled(all, starts)
}

// noteMade forgets the failed starts of what exists now: a sandbox, or a container with another id
// than before. The id of a former attempt says nothing of the next one.
func (p *past) noteMade(v *view, starts *Starts) {
	if v.status == nil {
		return
	}
	if !v.lacksSandbox() {
		starts.forget(v.pod, "")
	}
	for _, s := range v.containers() {
		of := containerKey(v.pod, s.Name)
		if s.ContainerID != "" && s.ContainerID != p.ids[of] {
			p.ids[of] = s.ContainerID
			starts.forget(v.pod, s.Name)
		}
	}
}

// noteGood records the attempt of each container after which the next failures count: the last one
// that ended well.
func (p *past) noteGood(v *view) {
	for _, s := range v.containers() {
		if t := lastEnd(&s); t != nil && t.ExitCode == 0 {
			p.good[containerKey(v.pod, s.Name)] = attemptOf(&s)
		}
	}
}

// noteSettled records how often everything had failed when a pod reached what others may have
// waited for. A pod that is no longer settled helps no other, and is forgotten.
func (p *past) noteSettled(all []view, starts *Starts) {
	for k := range all {
		v := &all[k]
		_, known := p.settled[key(v.pod)]
		switch settled := v.ready() || v.ended(); {
		case !settled:
			delete(p.settled, key(v.pod))
		case !known:
			p.settled[key(v.pod)] = failures(all, starts)
		}
	}
}

// failedSince reports whether a container of the pod, or with "" the start of the pod, has failed
// since the last of the other pods was settled: earlier failures may have been for lack of that
// pod.
func (p *past) failedSince(v *view, container string, starts *Starts) bool {
	now := failuresOf(v, container, starts)
	for other, had := range p.settled {
		if other != key(v.pod) && had[containerKey(v.pod, container)] == now {
			return false
		}
	}
	return true
}

// failures counts the failures until now, by container, and of the starts of the pods.
func failures(all []view, starts *Starts) map[string]int {
	out := map[string]int{}
	for k := range all {
		v := &all[k]
		out[containerKey(v.pod, "")] = failuresOf(v, "", starts)
		for _, s := range v.containers() {
			out[containerKey(v.pod, s.Name)] = failuresOf(v, s.Name, starts)
		}
	}
	return out
}

// failuresOf is a number that grows with each failure of a container, or with "" of the
// start of its pod.
func failuresOf(v *view, container string, starts *Starts) int {
	n := starts.total(v.pod, container)
	if s, ok := v.container(container); ok && lastEnd(&s) != nil {
		n += int(attemptOf(&s))
	}
	return n
}

// containerKey names a container of a pod, or with "" the pod's own start.
func containerKey(p *v1.Pod, name string) string { return key(p) + "/" + name }
