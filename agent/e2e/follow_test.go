//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// followsTags has a pod follow a tag: to an image that works, and back from one that does not.
func followsTags(w *world) {
	m := newMoody(w, "followed.test")
	ref := m.image("followed", "sleep", "3600")
	w.start()
	text := w.manifest("web", fmt.Sprintf("  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers:\n  - {name: main, image: %q}\n", ref))
	w.writeFile("web.yaml", strings.Replace(text, "metadata:", "metadata:\n  annotations: {monopod.follow-images: 10m, monopod.update-health: 15s}", 1))
	first := w.running("web")["web"]
	w.until("it is known what the tag means", func() error { return w.followed("", first.ID) })
	m.image("followed", "sleep", "3601")
	w.pulls(ref)
	id := w.successor("web", 1).ID
	w.until("the update is over", func() error {
		if records, _ := filepath.Glob(filepath.Join(w.agent.Root, "updates", "*.json")); len(records) > 0 {
			return errors.New("it is watched")
		}
		return w.followed("version", id)
	})

	m.image("followed", "sh", "-c", "exit 3")
	w.pulls(ref)
	w.ps("web", "update rolled back: ", "@sha256:", "is back until the manifest changes or a tag moves")
	back := w.running("web")
	w.kill()
	w.start()
	w.barrier("later")
	w.running("web")
	w.ps("web", "update rolled back: ")
	for pod, was := range back {
		if now := w.running(pod)[pod]; now.ID != was.ID {
			w.Errorf("the next agent has restarted %s: %+v, was %+v", pod, now, was)
		}
	}
}

// pulls has the runtime pull an image.
func (w *world) pulls(ref string) {
	w.Helper()
	if out, err := w.agent.CLI(w.Context(), "images", "pull", ref); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// followed returns nil when the pod that runs says what its tag means, if it runs this container, and
// when its history has a version of it.
func (w *world) followed(history, container string) error {
	pods, err := w.agent.Pods(w.Context())
	if err != nil || len(pods) != 1 {
		return fmt.Errorf("%d pods: %w", len(pods), err)
	}
	st := pods[0].Status
	if pods[0].Annotations["monopod.tag-images"] == "" || st.Phase != v1.PodRunning || !strings.HasSuffix(st.ContainerStatuses[0].ContainerID, container) {
		return fmt.Errorf("annotations %q, status %+v", pods[0].Annotations, st)
	}
	out, err := w.agent.CLI(w.Context(), "history", "web")
	id := st.ContainerStatuses[0].ImageID
	if history != "" && !strings.Contains(out, id[strings.LastIndex(id, ":")+1:][:8]) {
		return fmt.Errorf("history lacks %s: %w\n%s", id, err, out)
	}
	return nil
}
