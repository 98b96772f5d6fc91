package worker

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/fetch"
	"monopod/agent/image"
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

// fetchSettings are what fetches use of the pod.
func (p *pod) fetchSettings() fetch.Settings {
	return fetch.Settings{Images: p.Images, Events: &p.Recorder, Secrets: p.PullSecrets, Wake: p.Wake, Go: p.background.Go, Caught: p.caught, Fault: p.fault}
}
