package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/probe"
)

// The reasons and texts of events are the kubelet's where it has some.

// podRef is what events about a pod are about.
func podRef(p *v1.Pod) v1.ObjectReference {
	return events.PodRef(p.Namespace, p.Name, string(p.UID))
}

// containerRef is what events about one of a pod's containers are about; "": the pod.
func containerRef(p *v1.Pod, name string) v1.ObjectReference {
	if name == "" {
		return podRef(p)
	}
	return events.ContainerRef(podRef(p), &p.Spec, name)
}

// about is what events about an instance, or one of its containers, are about.
// It is for the worker's goroutine.
func (w *worker) about(uid, container string) v1.ObjectReference {
	p := &v1.Pod{}
	p.Namespace, p.Name = w.key.Namespace, w.key.Name
	switch c := w.known[uid]; {
	case c != nil:
		p = c.Pod
	case w.current.Pod != nil && string(w.current.Pod.UID) == uid:
		p = w.current.Pod.Pod
	default:
		p.UID = types.UID(uid)
	}
	return containerRef(p, container)
}

// recordFailure tells of a start that failed, or of what comes before it. f is
// what is shown of it.
func (w *worker) recordFailure(s *situation, a action, f failure, err error) {
	about := containerRef(s.Pod.Pod, a.Name)
	warn := func(reason, message string) { w.events.Record(about, v1.EventTypeWarning, reason, message) }
	var i *image.Error
	switch {
	case errors.As(err, &i):
		w.recordNoImage(about, i)
	case a.Name != "":
		warn("Failed", "Error: "+err.Error())
	case f.Reason == "FailedCreatePodContainer":
		warn(f.Reason, "unable to ensure pod container exists: "+f.Message)
	default:
		warn(f.Reason, f.Message)
	}
}

// recordBackOffs tells of each container that exited and has to wait, once
// each time.
func (w *worker) recordBackOffs(s *situation, p *planned) {
	for _, name := range slices.Sorted(maps.Keys(p.Waiting)) {
		n := s.instance().newest(name)
		if p.Waiting[name].Reason != crashLoop || n == nil || w.waits[name] == n.ID {
			continue
		}
		if w.waits == nil {
			w.waits = map[string]string{}
		}
		w.waits[name] = n.ID
		w.events.Event(containerRef(s.Pod.Pod, name), v1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, s.Pod.Name, s.Pod.Namespace, s.Pod.UID))
	}
}

// recordTrouble tells what keeps the worker from going on.
func (w *worker) recordTrouble(err error) {
	reason, uid := "FailedSync", ""
	var because *startError
	if errors.As(err, &because) {
		reason = because.reason
	}
	if w.current.Pod != nil {
		uid = string(w.current.Pod.UID)
	}
	w.events.Record(w.about(uid, ""), v1.EventTypeWarning, reason, err.Error())
}

// recordKilling tells that a container is being stopped.
func (w *worker) recordKilling(a action) {
	text := "Stopping container " + a.Name
	switch a.Cause {
	case causeRequest:
		text += ": " + askedFor
	case causeHook:
		text = "FailedPostStartHook"
	case causeProbe:
		text = a.Reason
	case causeLost:
		text = `Container is in "unknown" state, try killing it before restart`
	}
	w.events.Record(w.about(a.UID, a.Name), v1.EventTypeNormal, "Killing", text)
}

// recordVerdict tells that a pod's time is over.
func (w *worker) recordVerdict(s *situation, v verdict) {
	if v.Reason != "" {
		w.events.Record(podRef(s.Pod.Pod), v1.EventTypeNormal, v.Reason, v.Message)
	}
}

// recordProbe tells what a probe found. It is for any goroutine.
func (w *worker) recordProbe(t *probe.Target, reason, message string) {
	w.events.Record(t.About, v1.EventTypeWarning, reason, message)
}

// recordDNS tells which of the pod's name servers and search domains do not count.
func (w *worker) recordDNS(p *v1.Pod) {
	_, warnings := dnsConfig(p, w.machine.Now())
	for _, text := range warnings {
		w.events.Event(podRef(p), v1.EventTypeWarning, "DNSConfigForming", text)
	}
}
