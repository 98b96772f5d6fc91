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
func (p *pod) PullSecrets(of *v1.Pod) []*v1.Secret {
	var found []*v1.Secret
	for _, ref := range of.Spec.ImagePullSecrets {
		if p.Secrets == nil || ref.Name == "" {
			continue
		}
		s, err := p.Secrets.Secret(of.Namespace, ref.Name)
		if s == nil && err == nil {
			err = fmt.Errorf("there is no secret %s/%s", of.Namespace, ref.Name)
		}
		if err == nil {
			err = image.CheckSecret(s)
		}
		if err != nil {
			p.Log.Warn("image pull secret is unusable; pulling without it", "reason", "FailedToRetrieveImagePullSecret", "err", err)
			p.Events.Record(events.About(of), v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		found = append(found, s)
	}
	return found
}

// progress returns the progress of a fetch.
func (g *fetches) progress(f *fetch) plan.Pull {
	for _, i := range f.wanted {
		if p, ok := g.Images.Progress(i.name); ok {
			if p.Begun.IsZero() {
				return plan.Pull{Image: i.name, Queued: true, Since: f.since}
			}
			return plan.Pull{Image: i.name, Queued: false, Since: p.Begun}
		}
	}
	return plan.Pull{Image: f.wanted[0].name, Queued: false, Since: f.since}
}
