package worker

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/plan"
)

// PullSecrets is image.PullSecrets, with the events and log lines of the pod.
func (p *pod) PullSecrets(of *v1.Pod) []*v1.Secret {
	const reason = "FailedToRetrieveImagePullSecret"
	return image.PullSecrets(of, p.Secrets, func(name string, err error) {
		p.Log.Warn("image pull secret is unusable; pulling without it", "reason", reason, "err", err)
		p.Events.Record(events.About(of), v1.EventTypeWarning, reason,
			fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", name))
	})
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
