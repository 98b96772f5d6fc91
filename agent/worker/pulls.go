package worker

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/plan"
)

// secrets returns local Secrets by name; nil without an error if there is none
// of that name. Callers must not change them.
type secrets interface {
	Secret(namespace, name string) (*v1.Secret, error)
}

// PullSecrets returns the pod's own credentials for registries. A missing one is
// logged, and the image is pulled without it, as with the kubelet.
func (w *Worker) PullSecrets(p *v1.Pod) []*v1.Secret {
	var found []*v1.Secret
	for _, ref := range p.Spec.ImagePullSecrets {
		if w.Secrets == nil || ref.Name == "" {
			continue
		}
		s, err := w.Secrets.Secret(p.Namespace, ref.Name)
		if s == nil && err == nil {
			err = fmt.Errorf("there is no secret %s/%s", p.Namespace, ref.Name)
		}
		if err == nil {
			err = image.CheckSecret(s)
		}
		if err != nil {
			w.Log.Warn("image pull secret is unusable; pulling without it", "reason", "FailedToRetrieveImagePullSecret", "err", err)
			w.Events.Record(events.About(p), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		found = append(found, s)
	}
	return found
}

// progress returns the progress of a fetch.
func (w *Worker) progress(f *fetch) plan.Pull {
	for _, i := range f.wanted {
		if p, ok := w.Images.Progress(i.name); ok {
			if p.Begun.IsZero() {
				return plan.Pull{Image: i.name, Queued: true, Since: f.since}
			}
			return plan.Pull{Image: i.name, Queued: false, Since: p.Begun}
		}
	}
	return plan.Pull{Image: f.wanted[0].name, Queued: false, Since: f.since}
}
