//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tidy is a pod that takes a while to stop and leaves a file on the host when it
// was allowed to finish.
const tidy = `
  hostNetwork: true
  terminationGracePeriodSeconds: 20
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'sleep 0.7; echo $VERSION >> /host/finished; exit 0' TERM; sleep 3600 & wait"]
    env: [{name: VERSION, value: "1"}]
    volumeMounts: [{name: host, mountPath: /host}]
  volumes:
  - {name: host, hostPath: {path: HOST}}
`

// tidyPod returns tidy and the path of the file that it leaves.
func (w *world) tidyPod() (spec, finished string) {
	w.Helper()
	dir := filepath.Join(w.agent.Dir, "host")
	check(w.T, os.MkdirAll(dir, 0o755))
	return strings.Replace(tidy, "HOST", dir, 1), filepath.Join(dir, "finished")
}

func replacesAnEditedPod(w *world) {
	w.start()
	spec, finished := w.tidyPod()
	w.write("edit", spec)
	old := w.running("edit")["edit"]
	w.write("edit", strings.NewReplacer(`value: "1"`, `value: "2"`, "hostNetwork: true", "hostNetwork: true\n  hostPID: true").Replace(spec))
	overlap := false
	w.until("the new pod runs and the old is gone", func() error {
		cs, ss := w.containers("edit"), w.sandboxes("edit")
		oldRuns, newExists := false, false
		for _, c := range cs {
			oldRuns = oldRuns || c.ID == old.ID && c.State == "Running"
		}
		for _, s := range ss {
			newExists = newExists || s.ID != old.Sandbox
		}
		overlap = overlap || oldRuns && newExists
		if len(ss) == 1 && len(cs) == 1 && newExists && cs[0].State == "Running" {
			return nil
		}
		return fmt.Errorf("containers %+v, sandboxes %+v", cs, ss)
	})
	if overlap {
		w.Error("the new sandbox was made while the old container ran")
	}
	if now := w.running("edit")["edit"]; now.UID == old.UID || now.Attempt != 0 {
		w.Errorf("the new pod's container is %+v, want another uid than %s and attempt 0", now, old.UID)
	}
	if b, err := os.ReadFile(finished); err != nil || string(b) != "1\n" {
		w.Errorf("the old pod was not stopped gracefully: %q, %v", b, err)
	}
}

// updatesWait edits a pod to an image that the registry does not have yet.
func updatesWait(w *world) {
	m := newMoody(w, "late.test")
	late := m.host + "/web:1"
	w.start()
	w.write("web", sleeper)
	before := w.running("web")
	pid, err := w.rig.CRI.Pid(w.Context(), before["web"].ID)
	check(w.T, err)
	untouched := func() {
		w.Helper()
		w.ps("web", "update waits: ", late)
		w.same(before)
		if now, err := w.rig.CRI.Pid(w.Context(), before["web"].ID); err != nil || now != pid {
			w.Errorf("its process is %d (%v), and was %d", now, err, pid)
		}
	}
	w.write("web", of(late))
	untouched()
	w.kill()
	w.start()
	w.barrier("after")
	untouched()
	if ref := m.image("web"); ref != late {
		w.Fatalf("the image is called %s", ref)
	}
	w.until("the new version runs", func() error {
		cs := w.containers("web")
		if n := len(cs); n == 0 || cs[n-1].ID == before["web"].ID || cs[n-1].State != "Running" {
			return fmt.Errorf("containers %+v", cs)
		}
		return nil
	})
	w.until("nothing waits", func() error {
		if out, err := w.agent.Says(w.Context(), "ps"); err != nil || strings.Contains(out, "update waits") {
			return fmt.Errorf("it says (%v)\n%s", err, out)
		}
		return nil
	})
}

func leavesAnUnchangedPod(w *world) {
	w.start()
	w.write("same", sleeper)
	before := w.running("same")
	w.writeFile("same.yaml", "# a comment\n"+w.manifest("same", sleeper)) // saved by rename, as editors do
	now := time.Now().Add(time.Minute)
	check(w.T, os.Chtimes(filepath.Join(w.agent.Manifests, "same.yaml"), now, now))
	w.writeFile(".same.yaml.swp", "not a manifest")
	w.writeFile("same.yaml~", w.manifest("backup", sleeper))
	w.barrier("after")
	w.same(before)
	if ss := w.sandboxes("backup"); len(ss) > 0 {
		w.Errorf("a backup file was taken for a manifest: %+v", ss)
	}
}

func removesADeletedPod(w *world) {
	w.start()
	spec, finished := w.tidyPod()
	w.write("gone", spec)
	w.write("stays", sleeper)
	stays := w.running("stays")
	c := w.running("gone")["gone"]
	w.remove("gone")
	w.until("everything of it is gone", func() error {
		if n := len(w.sandboxes("gone")) + len(w.containers("gone")); n > 0 {
			return fmt.Errorf("%d sandboxes and containers are there", n)
		}
		for _, pattern := range []string{w.agent.Root + "/pods/" + c.UID, w.agent.PodLogs + "/*" + c.UID,
			w.agent.Root + "/status/pods/" + w.ns + "_" + name("gone") + ".json"} {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				return fmt.Errorf("%s is there", found[0])
			}
		}
		pods, err := w.agent.Pods(w.Context())
		if err == nil && len(pods) != 1 {
			err = errors.New("/pods still has it")
		}
		return err
	})
	if b, err := os.ReadFile(finished); err != nil || string(b) != "1\n" {
		w.Errorf("it was not stopped gracefully: %q, %v", b, err)
	}
	w.same(stays)
}
