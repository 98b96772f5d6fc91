package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/probe"
)

// The reasons and texts of events are the kubelet's where it has any.

// about returns the object of events about an instance or one of its
// containers. Only the worker's goroutine calls it.
func (w *Worker) about(uid, container string) v1.ObjectReference {
	p := &v1.Pod{}
	p.Namespace, p.Name = w.Key.Namespace, w.Key.Name
	switch c := w.Known[uid]; {
	case c != nil:
		p = c.Pod
	case w.current.Pod != nil && string(w.current.Pod.UID) == uid:
		p = w.current.Pod.Pod
	default:
		p.UID = types.UID(uid)
	}
	return events.AboutContainer(p, container)
}

// recordFailure records a start that failed, or a step before it. f is the
// failure in the pod's status.
func (w *Worker) recordFailure(s *plan.Facts, a plan.Action, f plan.Failure, err error) {
	about := events.AboutContainer(s.Pod.Pod, a.Name)
	warn := func(reason, message string) { w.Events.Record(about, v1.EventTypeWarning, reason, message) }
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

// recordBackOffs records each back-off once.
func (w *Worker) recordBackOffs(s *plan.Facts, p *plan.Plan) {
	for _, name := range slices.Sorted(maps.Keys(p.Waiting)) {
		n := s.Instance().Newest(name)
		if p.Waiting[name].Reason != plan.CrashLoop || n == nil || w.waits[name] == n.ID {
			continue
		}
		if w.waits == nil {
			w.waits = map[string]string{}
		}
		w.waits[name] = n.ID
		w.Events.Event(events.AboutContainer(s.Pod.Pod, name), v1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, s.Pod.Name, s.Pod.Namespace, s.Pod.UID))
	}
}

// recordError records the error of a pass that failed.
func (w *Worker) recordError(err error) {
	reason, uid := "FailedSync", ""
	var because *plan.StartError
	if errors.As(err, &because) {
		reason = because.Reason
	}
	if w.current.Pod != nil {
		uid = string(w.current.Pod.UID)
	}
	w.Events.Record(w.about(uid, ""), v1.EventTypeWarning, reason, err.Error())
}

// recordKilling records that a container is being stopped.
func (w *Worker) recordKilling(a plan.Action) {
	text := "Stopping container " + a.Name
	switch a.Cause {
	case checkpoint.CauseRequest:
		text += ": " + checkpoint.RestartRequested
	case checkpoint.CauseHook:
		text = "FailedPostStartHook"
	case checkpoint.CauseProbe:
		text = a.Reason
	case checkpoint.CauseLost:
		text = `Container is in "unknown" state, try killing it before restart`
	}
	w.Events.Record(w.about(a.UID, a.Name), v1.EventTypeNormal, "Killing", text)
}

// recordResult records how a pod ends, if that has a reason of its own.
func (w *Worker) recordResult(s *plan.Facts, v checkpoint.Result) {
	if v.Reason != "" {
		w.Events.Record(events.About(s.Pod.Pod), v1.EventTypeNormal, v.Reason, v.Message)
	}
}

// recordProbe records a probe's failure. Any goroutine may call it.
func (w *Worker) recordProbe(t *probe.Target, reason, message string) {
	w.Events.Record(t.About, v1.EventTypeWarning, reason, message)
}

// recordDNS records which of the pod's name servers and search domains are ignored.
func (w *Worker) recordDNS(p *v1.Pod) {
	_, warnings := podspec.DnsConfig(p, w.Machine.Now())
	for _, text := range warnings {
		w.Events.Event(events.About(p), v1.EventTypeWarning, "DNSConfigForming", text)
	}
}
