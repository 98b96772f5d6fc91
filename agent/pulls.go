package agent

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/image"
)

// secrets gives local Secrets by name; nil without an error when there is none
// of that name. Nobody changes what it gives.
type secrets interface {
	Secret(namespace, name string) (*v1.Secret, error)
}

// pullSecrets returns the pod's own credentials for registries. One that is not
// there is said in the log; the image is pulled without it, as with a kubelet.
func (w *worker) pullSecrets(p *v1.Pod) []*v1.Secret {
	var found []*v1.Secret
	for _, ref := range p.Spec.ImagePullSecrets {
		if w.secrets == nil || ref.Name == "" {
			continue
		}
		s, err := w.secrets.Secret(p.Namespace, ref.Name)
		if s == nil && err == nil {
			err = fmt.Errorf("there is no secret %s/%s", p.Namespace, ref.Name)
		}
		if err == nil {
			err = image.CheckSecret(s)
		}
		if err != nil {
			w.log.Warn("images are pulled without one of the pod's secrets", "reason", "FailedToRetrieveImagePullSecret", "err", err)
			w.events.Record(podRef(p), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		found = append(found, s)
	}
	return found
}

// progressEvery is how often the status of a pod says anew how long a pull takes.
const progressEvery = 10 * time.Second

// underway is how far a container's images are.
type underway struct {
	Image  string    // the first that is not there yet
	Queued bool      // it waits for other pulls
	Since  time.Time // when it was begun, or wanted
}

// progress returns how far what is being fetched is.
func (w *worker) progress(f *fetch) underway {
	for _, i := range f.wanted {
		if p, ok := w.images.Progress(i.name); ok {
			if p.Begun.IsZero() {
				return underway{i.name, true, f.since}
			}
			return underway{i.name, false, p.Begun}
		}
	}
	return underway{f.wanted[0].name, false, f.since}
}

// awaitArrival says of a container that its image is on its way. What went
// wrong the last time stays its reason until that has come out well.
func (s *situation) awaitArrival(p *planned, c *v1.Container, on underway) {
	w := waiting{s.notYet(), on.text(s.Now)}
	if f := s.Failures[c.Name]; f.Reason != "" {
		w = waiting{f.Reason, fmt.Sprintf("%s (%s)", f.Message, w.Message)}
	}
	p.wait(c.Name, w)
	p.wakeAt(s.Now.Add(progressEvery - max(s.Now.Sub(on.Since), 0)%progressEvery))
}

// text says how far the images are. That they wait is said only once they have
// waited, as each pull does for a moment.
func (u underway) text(now time.Time) string {
	so := now.Sub(u.Since).Truncate(progressEvery)
	switch {
	case so <= 0:
		return fmt.Sprintf("pulling image %q", u.Image)
	case u.Queued:
		return fmt.Sprintf("image %q waits for other pulls, %s so far", u.Image, so)
	}
	return fmt.Sprintf("pulling image %q, %s so far", u.Image, so)
}

// imageFailure returns what is shown of a container whose image cannot be had,
// and until when. From the second failure in a row on it is the back-off that
// is shown, as one sees it with a kubelet most of the time.
func imageFailure(e *image.Error) (waiting, time.Time) {
	if e.Count > 1 && e.Reason != image.ImagePullBackOff {
		e = e.BackOff()
	}
	return waiting{e.Reason, e.Error()}, e.Retry
}
