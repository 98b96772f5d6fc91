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
	"monopod/agent/node"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/probe"
	"monopod/manifests"
)

// The reasons and texts of events are the kubelet's where it has any.

// recorder records the events about one pod name.
type recorder struct {
	events  *events.Recorder
	Key     manifests.Key
	Machine *node.Node
	Known   map[string]*checkpoint.Checkpoint // by uid
	current *Update                           // of the last pass
	waits   map[string]string                 // by container name: the attempt whose back-off has an event, by id
}

// about returns the object of events about an instance or one of its
// containers. Only the worker's goroutine calls it.
func (r *recorder) about(uid, container string) v1.ObjectReference {
	p := &v1.Pod{}
	p.Namespace, p.Name = r.Key.Namespace, r.Key.Name
	switch c := r.Known[uid]; {
	case c != nil:
		p = c.Pod
	case r.current.Pod != nil && string(r.current.Pod.UID) == uid:
		p = r.current.Pod.Pod
	default:
		p.UID = types.UID(uid)
	}
	return events.AboutContainer(p, container)
}

// recordFailure records a start that failed, or a step before it. f is the
// failure in the pod's status.
func (r *recorder) recordFailure(s *plan.Facts, a plan.Action, f plan.Failure, err error) {
	about := events.AboutContainer(s.Pod.Pod, a.Name)
	warn := func(reason, message string) { r.events.Record(about, v1.EventTypeWarning, reason, message) }
	var i *image.Error
	switch {
	case errors.As(err, &i):
		r.recordNoImage(about, i)
	case a.Name != "":
		warn("Failed", "Error: "+err.Error())
	case f.Reason == "FailedCreatePodContainer":
		warn(f.Reason, "unable to ensure pod container exists: "+f.Message)
	default:
		warn(f.Reason, f.Message)
	}
}

// recordBackOffs records each back-off once.
func (r *recorder) recordBackOffs(s *plan.Facts, p *plan.Plan) {
	for _, name := range slices.Sorted(maps.Keys(p.Waiting)) {
		n := s.Instance().Newest(name)
		if p.Waiting[name].Reason != plan.CrashLoop || n == nil || r.waits[name] == n.ID {
			continue
		}
		if r.waits == nil {
			r.waits = map[string]string{}
		}
		r.waits[name] = n.ID
		r.events.Event(events.AboutContainer(s.Pod.Pod, name), v1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, s.Pod.Name, s.Pod.Namespace, s.Pod.UID))
	}
}

// recordError records the error of a pass that failed.
func (r *recorder) recordError(err error) {
	reason, uid := "FailedSync", ""
	var because *plan.StartError
	if errors.As(err, &because) {
		reason = because.Reason
	}
	if r.current.Pod != nil {
		uid = string(r.current.Pod.UID)
	}
	r.events.Record(r.about(uid, ""), v1.EventTypeWarning, reason, err.Error())
}

// recordKilling records that a container is being stopped.
func (r *recorder) recordKilling(a plan.Action) {
	text := "Stopping container " + a.Name
	switch a.Cause {
	case checkpoint.CauseRequest:
		text += ": " + checkpoint.RestartRequested
	case checkpoint.CauseCgroup:
		text += ": " + a.Reason
	case checkpoint.CauseHook:
		text = "FailedPostStartHook"
	case checkpoint.CauseProbe:
		text = a.Reason
	case checkpoint.CauseLost:
		text = `Container is in "unknown" state, try killing it before restart`
	}
	r.events.Record(r.about(a.UID, a.Name), v1.EventTypeNormal, "Killing", text)
}

// recordResult records how a pod ends, if that has a reason of its own.
func (r *recorder) recordResult(s *plan.Facts, v checkpoint.Result) {
	if v.Reason != "" {
		r.events.Record(events.About(s.Pod.Pod), v1.EventTypeNormal, v.Reason, v.Message)
	}
}

// recordProbe records a probe's failure. Any goroutine may call it.
func (r *recorder) recordProbe(t *probe.Target, reason, message string) {
	r.events.Record(t.About, v1.EventTypeWarning, reason, message)
}

// recordDNS records which of the pod's name servers and search domains are ignored.
func (r *recorder) recordDNS(p *v1.Pod) {
	_, warnings := podspec.DnsConfig(p, r.Machine.Now())
	for _, text := range warnings {
		r.events.Event(events.About(p), v1.EventTypeWarning, "DNSConfigForming", text)
	}
}
