package pleg

import (
	"context"
	"errors"
	"fmt"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/manifests"
)

// checkUnmarked returns an error if a pod of the agent runs in a sandbox, or has a container,
// without a mark: a kubelet had the pod for a while and made it again. The agent would start it a
// second time. That is `monopod adopt`'s to settle, while no agent runs. Containers without the labels
// of a pod are others': somebody made them by hand in the agent's sandbox.
func (w *Watch) checkUnmarked(ctx context.Context, listed map[manifests.Key]*Listed) error {
	own := map[string]bool{} // sandboxes
	uids := map[string]bool{}
	for _, p := range listed {
		for _, s := range p.Sandboxes {
			own[s.Id] = true
		}
	}
	if w.Known != nil {
		for _, p := range w.Known() {
			uids[string(p.UID)] = true
		}
	}
	if len(own)+len(uids) == 0 {
		return nil
	}
	sandboxes, err := w.cri.Sandboxes(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range sandboxes {
		if s.State == rt.PodSandboxState_SANDBOX_READY && uids[s.Labels[podspec.LabelPodUID]] && w.isUnmarked(s.Id, s.Labels) {
			return unmarked(KeyOf(s.Labels), "sandbox", s.Id)
		}
	}
	containers, err := w.cri.Containers(ctx, nil)
	if err != nil {
		return err
	}
	for _, c := range containers {
		if own[c.PodSandboxId] && wellFormed(c.Labels) && c.State == rt.ContainerState_CONTAINER_RUNNING && w.isUnmarked(c.PodSandboxId, c.Labels) {
			return unmarked(KeyOf(c.Labels), "container", c.Id)
		}
	}
	return nil
}

// isUnmarked reports whether something has no mark of any monopod.
func (w *Watch) isUnmarked(sandbox string, labels map[string]string) bool {
	return labels[podspec.LabelInstance] == "" && !w.Marks.Has(sandbox, labels)
}

// errUnmarked reports that a kubelet made a pod of the agent again.
var errUnmarked = errors.New("nothing is touched; stop that agent and monopod, run `monopod adopt --yes`, and start monopod")

func unmarked(key manifests.Key, what, id string) error {
	return fmt.Errorf("pod %s has a %s that another agent made, as a kubelet (%.13s): %w", key, what, id, errUnmarked)
}
