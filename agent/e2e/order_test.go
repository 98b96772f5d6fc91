//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// ordered is a pod that starts after others.
func (w *world) ordered(name, annotations string) {
	w.Helper()
	w.writeFile(name+".yaml", strings.Replace(w.manifest(name, sleeper), "spec:", "  annotations:\n"+annotations+"spec:", 1))
}

func startsPodsInOrder(w *world) {
	w.start()
	w.ordered("web", "    monopod.start-after: db, jobs\n")
	w.ordered("late", "    monopod.start-after-timeout: 3s\n    monopod.start-after: nobody\n")
	w.status("web", "waits", func(s v1.PodStatus) bool {
		return s.Phase == v1.PodPending && len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil &&
			s.ContainerStatuses[0].State.Waiting.Reason == "WaitingForPods"
	})
	w.manifests("names the pods that are not there", func(r report) bool {
		_, _, problems := r.file("web.yaml")
		return slices.ContainsFunc(problems, func(p problem) bool { return p.Line == 7 && p.Column > 1 && strings.Contains(p.Message, "/jobs") })
	})
	w.ps("/web:", "waits for", "there is no pod")
	late := w.running("late")
	w.ps("late.yaml:8:", "warning", "nobody")
	if n := len(w.sandboxes("web")); n != 0 {
		w.Errorf("it has %d sandboxes before its turn", n)
	}
	w.write("jobs", strings.Replace(strings.Replace(sleeper, "sleep 3600 & wait", "exit 0", 1), "hostNetwork: true", "hostNetwork: true\n  restartPolicy: Never", 1))
	w.phase("jobs", v1.PodSucceeded)
	w.write("db", sleeper)
	run := w.running("db", "web")
	if db, web := w.sandboxes("db")[0], w.sandboxes("web")[0]; web.Created.Before(db.Created) {
		w.Error("web was made before db")
	}
	w.kill() // who has started is not held again
	w.remove("db")
	w.start()
	w.until("db is gone", func() error {
		if n := len(w.containers("db")); n > 0 {
			return fmt.Errorf("%d containers are left", n)
		}
		return nil
	})
	w.same(map[string]rig.Container{"web": run["web"], "late": late["late"]})
}
