// Package podevents records the events about one pod name.
package podevents

import (
	"errors"
	"log/slog"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/message"
	"monopod/agent/node"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/agent/probe"
	"monopod/manifests"
)

// The reasons and texts of events are the kubelet's where it has any.

// Recorder records the events about one pod name.
type Recorder struct {
	Events  *events.Recorder
	Key     manifests.Key
	Machine *node.Node
	Known   map[string]*checkpoint.Checkpoint // by uid
	Current func() *manifests.Pod             // the desired pod of the last pass, or nil

	waits map[string]string // by container name: the attempt whose back-off has an event, by id
}

// About returns the object of events about an instance or one of its
// containers. Only the worker's goroutine calls it.
func (r *Recorder) About(uid, container string) v1.ObjectReference {
	p := &v1.Pod{}
	p.Namespace, p.Name = r.Key.Namespace, r.Key.Name
	current := r.Current()
	switch c := r.Known[uid]; {
	case c != nil:
		p = c.Pod
	case current != nil && string(current.UID) == uid:
		p = current.Pod
	default:
		p.UID = types.UID(uid)
	}
	return events.AboutContainer(p, container)
}

// RecordFailure records a start that failed, or a step before it. f is the
// failure in the pod's status.
func (r *Recorder) RecordFailure(s *plan.Facts, a plan.Action, f plan.Failure, err error) {
	about := events.AboutContainer(s.Pod.Pod, a.Name)
	warn := func(reason string, said message.Text) { r.Events.Record(about, v1.EventTypeWarning, reason, said) }
	var i *image.Error
	switch {
	case errors.As(err, &i):
		r.RecordNoImage(about, i)
	case a.Name != "":
		warn("Failed", message.Of("Error: %s", message.Private(err.Error())))
	case f.Reason == "FailedCreatePodContainer":
		warn(f.Reason, message.Of("unable to ensure pod container exists: %s", f.Message))
	default:
		warn(f.Reason, f.Message)
	}
}

// RecordBackOffs records each back-off once.
func (r *Recorder) RecordBackOffs(s *plan.Facts, p *plan.Plan) {
	for _, name := range slices.Sorted(maps.Keys(p.Waiting)) {
		n := s.Instance().Newest(name)
		if p.Waiting[name].Reason != plan.CrashLoop || n == nil || r.waits[name] == n.ID {
			continue
		}
		if r.waits == nil {
			r.waits = map[string]string{}
		}
		r.waits[name] = n.ID
		r.Events.Event(events.AboutContainer(s.Pod.Pod, name), v1.EventTypeWarning, "BackOff",
			message.Of("Back-off restarting failed container %s in pod %s_%s(%s)",
				message.Name(name), message.Name(s.Pod.Name), message.Name(s.Pod.Namespace), message.Name(s.Pod.UID)))
	}
}

// RecordWarning records a problem of an action.
func (r *Recorder) RecordWarning(a plan.Action, reason string, said message.Text) {
	r.Events.Record(r.About(a.UID, a.Name), v1.EventTypeWarning, reason, said)
}

// RecordError records the error of a pass that failed.
func (r *Recorder) RecordError(err error) {
	reason, uid := "FailedSync", ""
	var because *plan.StartError
	if errors.As(err, &because) {
		reason = because.Reason
	}
	if current := r.Current(); current != nil {
		uid = string(current.UID)
	}
	r.Events.Record(r.About(uid, ""), v1.EventTypeWarning, reason, message.Private(err.Error()))
}

// RecordKilling records that a container is being stopped.
func (r *Recorder) RecordKilling(a plan.Action) {
	r.Events.Record(r.About(a.UID, a.Name), v1.EventTypeNormal, "Killing", killing(a))
}

// killing returns the message that a container is being stopped, and why.
func killing(a plan.Action) message.Text {
	name := message.Name(a.Name)
	switch {
	case a.Cause == checkpoint.CauseHook:
		return message.Fixed("FailedPostStartHook")
	case a.Cause == checkpoint.CauseProbe:
		return message.Instead(a.Reason, message.Of("Container %s failed its probe", name))
	case a.Cause == checkpoint.CauseUpdate:
		return message.Instead(a.Reason, message.Of("Container %s has another version", name))
	case a.Cause == checkpoint.CauseLost:
		return message.Fixed(`Container is in "unknown" state, try killing it before restart`)
	case a.Cause == checkpoint.CauseRequest:
		return message.Of("Stopping container %s: %s", name, message.Fixed(checkpoint.RestartRequested))
	case a.Reason == "":
		return message.Of("Stopping container %s", name)
	}
	return message.Of("Stopping container %s: %s", name, message.Private(a.Reason))
}

// RecordResult records how a pod ends, if that has its own reason.
func (r *Recorder) RecordResult(s *plan.Facts, v checkpoint.Result) {
	if v.Reason != "" {
		r.Events.Record(events.About(s.Pod.Pod), v1.EventTypeNormal, v.Reason, plan.EndTexts().Text(v.Message))
	}
}

// RecordProbe records a probe's failure. Any goroutine may call it.
func (r *Recorder) RecordProbe(t *probe.Target, reason string, said message.Text) {
	r.Events.Record(t.About, v1.EventTypeWarning, reason, said)
}

// PullSecrets is image.PullSecrets, with events and log lines of the pod.
func (r *Recorder) PullSecrets(of *v1.Pod, from image.Secrets, log *slog.Logger) []*v1.Secret {
	const reason = "FailedToRetrieveImagePullSecret"
	return image.PullSecrets(of, from, func(name string, err error) {
		log.Warn("image pull secret is unusable; pulling without it", "reason", reason, "err", err)
		r.Events.Record(events.About(of), v1.EventTypeWarning, reason,
			message.Of("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", message.Name(name)))
	})
}

// RecordDNS records which of the pod's name servers and search domains are ignored.
func (r *Recorder) RecordDNS(p *v1.Pod) {
	_, warnings := podspec.DnsConfig(p, r.Machine.Now())
	for _, text := range warnings {
		r.Events.Event(events.About(p), v1.EventTypeWarning, "DNSConfigForming", message.Name(text).Text())
	}
}
