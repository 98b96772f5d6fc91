//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// rollsBack updates a pod to a version that crash loops, with an image that was pushed
// under the same tag. The agent is killed while it watches that.
func rollsBack(w *world) {
	m := newMoody(w, "moved.test")
	ref := m.image("web")
	spec := func(command string) string {
		return fmt.Sprintf("  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers:\n  - {name: main, image: %q, imagePullPolicy: Always, command: [sh, -c, %q]}\n", ref, command)
	}
	w.start()
	w.write("web", spec("sleep 3600"))
	before := w.running("web")["web"]
	good := w.phase("web", v1.PodRunning).ContainerStatuses[0].ImageID
	if !strings.Contains(good, "@sha256:") {
		w.Fatalf("it runs the image %q", good)
	}
	m.image("web") // another one of that name
	bad := strings.Replace(w.manifest("web", spec("sleep 5; exit 3")), "metadata:", "metadata:\n  annotations: {monopod.update-health: 15s}", 1)
	w.writeFile("web.yaml", bad)
	w.status("web", "runs the new version", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil && s.ContainerStatuses[0].ImageID != good
	}) // no call is cut off: that makes a containerd lose a shim
	w.kill()
	w.start()
	w.ps("web", "update rolled back: ")
	w.until("the former version runs", func() error {
		cs := slices.DeleteFunc(w.containers("web"), func(c rig.Container) bool { return c.State == "Exited" }) // the new version's, which came in place
		if len(cs) != 1 || cs[0].State != "Running" || cs[0].ID == before.ID || cs[0].UID != before.UID || cs[0].Sandbox != before.Sandbox {
			return fmt.Errorf("containers %+v, want one of uid %s in the sandbox %s", cs, before.UID, before.Sandbox)
		}
		return nil
	})
	w.status("web", "has the image that ran", func(s v1.PodStatus) bool {
		return s.Phase == v1.PodRunning && s.ContainerStatuses[0].ImageID == good
	})
	w.until("an event tells of it", func() error {
		return w.inFile([]reasons{{"web", []string{"UpdateRolledBack"}}})
	})
	w.until("it is counted", func() error {
		_, body, err := w.agent.Get(w.Context(), "/metrics")
		if err != nil || !strings.Contains(body, "\nmonopod_rollbacks_total 1\n") {
			return fmt.Errorf("the metrics do not have it (%v)", err)
		}
		return nil
	})
	w.manifests("the file is held", func(r report) bool {
		_, held, problems := r.file("web.yaml")
		return held && len(problems) == 1 && strings.Contains(problems[0].Message, "update rolled back: ")
	})
	back := w.running("web")
	w.kill()
	w.start()
	w.barrier("after")
	if now := w.running("web"); now["web"] != back["web"] {
		w.Errorf("it was touched: %+v runs, want %+v", now["web"], back["web"])
	}
}
