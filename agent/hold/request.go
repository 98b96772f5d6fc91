package hold

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/status"
	"monopod/manifests"
)

// Reasons of the events about requests of the owner.
const (
	ReasonStopped  = status.ReasonStopped
	ReasonStarts   = "Starting"
	ReasonHeld     = "Held"
	ReasonReleased = "Released"
)

// Requests answers the requests of the owner. An answer is returned once it is on disk.
type Requests struct {
	Store   *Store
	Pods    *status.Store
	Desired func(manifests.Key) bool // a manifest gives the pod, or it runs without one until its removal is certain
	Changed func()                   // the record has changed
	Events  *events.Recorder
	Log     *slog.Logger
	Node    string
}

// maxReason is how many characters of a reason are kept.
const maxReason = 200

// Stop stops a pod until Start.
func (r *Requests) Stop(_ context.Context, key manifests.Key, _ url.Values) error {
	about, err := r.pod(key)
	if err != nil {
		return err
	}
	if now, stopped := r.Store.State().Stopped[key.String()]; stopped && !now.Starts {
		return nil
	}
	return r.change(about, ReasonStopped, message.Fixed("stopped by request; it runs again once it is started by request"), func(s *State) {
		s.Stopped[key.String()] = Stop{Since: time.Now()}
	})
}

// Start lets a stopped pod run again.
func (r *Requests) Start(_ context.Context, key manifests.Key, _ url.Values) error {
	about, err := r.pod(key)
	if err != nil {
		return err
	}
	now, stopped := r.Store.State().Stopped[key.String()]
	if !stopped || now.Starts {
		return nil
	}
	return r.change(about, ReasonStarts, message.Fixed("started by request"), func(s *State) {
		now.Starts = true
		s.Stopped[key.String()] = now
	})
}

// Hold keeps a pod, or with no key all of the node, from being changed, for the time "for";
// without one until Release.
func (r *Requests) Hold(_ context.Context, key manifests.Key, q url.Values) error {
	var lasts time.Duration
	if text := q.Get("for"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil || lasts <= 0 {
			return &status.Refusal{Why: fmt.Sprintf("for %q: want a time above 0 such as 2h", text)}
		}
	}
	reason := Line(q.Get("reason"))
	h := r.Store.Hold(reason, lasts)
	about, err := r.about(key)
	if err != nil {
		return err
	}
	return r.change(about, ReasonHeld, message.Of("nothing of it is updated or removed: %s", h.Said()), func(s *State) {
		if key.Name == "" {
			s.Node = &h
			return
		}
		s.Held[key.String()] = h
	})
}

// Release ends a hold of a pod, or with no key that of the node.
func (r *Requests) Release(_ context.Context, key manifests.Key, _ url.Values) error {
	now := r.Store.State()
	_, held := now.Held[key.String()]
	about, err := r.about(key)
	if err != nil && !held {
		return err
	}
	if !held && !(key.Name == "" && now.Node != nil) {
		return nil
	}
	return r.change(about, ReasonReleased, message.Fixed("what waited may be updated and removed"), func(s *State) {
		if key.Name == "" {
			s.Node = nil
		}
		delete(s.Held, key.String())
	})
}

// about returns the object of events about the request.
func (r *Requests) about(key manifests.Key) (v1.ObjectReference, error) {
	if key.Name == "" {
		return events.NodeRef(r.Node), nil
	}
	if p, ok := r.Pods.Pod(key.String()); ok {
		return events.About(p), nil
	}
	about := events.PodRef(key.Namespace, key.Name, "")
	if r.Desired(key) { // it has no status yet
		return about, nil
	}
	return about, &status.Refusal{Unknown: true, Why: fmt.Sprintf("there is no pod %s", key)}
}

// pod returns the object of events about a pod that may be stopped.
func (r *Requests) pod(key manifests.Key) (v1.ObjectReference, error) {
	about, err := r.about(key)
	if err == nil && !r.Desired(key) {
		err = &status.Refusal{Why: fmt.Sprintf("no manifest gives pod %s any more: it goes as soon as nothing holds it", key)}
	}
	return about, err
}

func (r *Requests) change(about v1.ObjectReference, reason string, text message.Text, with func(*State)) error {
	if err := r.Store.Change(with); err != nil {
		return err
	}
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + name
	}
	r.Log.Info("the owner's request is recorded", "of", name, "reason", reason)
	r.Events.Record(about, v1.EventTypeNormal, reason, text)
	r.Changed()
	return nil
}

// Line makes one short line of a text.
func Line(text string) string {
	out := []rune(strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " "))
	return string(out[:min(len(out), maxReason)])
}
