//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"monopod/agent/e2e/rig"
)

// two is a pod of two containers, with a label that a volume tells.
const two = `
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: NS, labels: {version: one}}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; sleep 3600 & wait"]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}
    volumeMounts: [{name: labels, mountPath: /labels}]
  - name: side
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; sleep 3601 & wait"]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}
  volumes:
  - {name: labels, downwardAPI: {items: [{path: version, fieldRef: {fieldPath: "metadata.labels['version']"}}]}}
`

// process is a container's id, its pid and when that was started.
func (w *world) process(c rig.Container) (string, error) {
	pid, err := w.rig.CRI.Pid(w.Context(), c.ID)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %s", c.ID, pid, strings.Fields(string(b))[21]), nil
}

// both returns the uid of the pod, and the processes of its two containers.
func (w *world) both() (uid, main, side string) {
	w.Helper()
	w.until("two runs", func() error {
		now := slices.DeleteFunc(w.containers("two"), func(c rig.Container) bool { return c.State != "Running" })
		if len(now) != 2 || now[0].UID != now[1].UID || now[0].Name == now[1].Name {
			return fmt.Errorf("%+v run", now)
		}
		for _, c := range now {
			p, err := w.process(c)
			if err != nil {
				return err
			}
			if uid = c.UID; c.Name == "main" {
				main = p
			} else {
				side = p
			}
		}
		return nil
	})
	return uid, main, side
}

// changesInPlace edits a pod in all ways, each of which costs what it must.
func changesInPlace(w *world) {
	w.start()
	text := strings.Replace(two, "NS", w.ns, 1)
	edit := func(old, now string) {
		w.Helper()
		if !strings.Contains(text, old) {
			w.Fatalf("the manifest lacks %q", old)
		}
		text = strings.Replace(text, old, now, 1)
		w.writeFile("two.yaml", text)
	}
	w.writeFile("two.yaml", text)
	uid, main, side := w.both()
	checkAll := func(what string, keepsPod, keepsMain, keepsSide bool) {
		w.Helper()
		u, m, s := w.both()
		if (u == uid) != keepsPod || (m == main) != keepsMain || (s == side) != keepsSide {
			w.Errorf("%s: uid %s, main %s, side %s; before %s, %s, %s", what, u, m, s, uid, main, side)
		}
		uid, main, side = u, m, s
	}
	pod := func() string { return filepath.Join(w.agent.Cgroups, "kubepods/burstable", "pod"+uid) }

	edit("version: one", "version: two")
	w.until("the volume tells the label", func() error {
		b, err := os.ReadFile(filepath.Join(w.agent.Root, "pods", uid, "volumes/kubernetes.io~downward-api/labels/version"))
		if err == nil && string(b) != "two" {
			err = fmt.Errorf("it tells %q", b)
		}
		return err
	})
	checkAll("a label", true, true, true)

	edit("limits: {cpu: 200m, memory: 64Mi}", "limits: {cpu: 400m, memory: 96Mi}")
	id := ""
	if i := slices.IndexFunc(w.containers("two"), func(c rig.Container) bool { return c.Name == "main" }); i >= 0 {
		id = w.containers("two")[i].ID
	}
	w.cgroup(pod(), "memory/memory.limit_in_bytes", "167772160", "memory.max", "167772160")
	w.cgroup(filepath.Join(pod(), w.rig.Runtime.Cgroup(id)), "memory/memory.limit_in_bytes", "100663296", "memory.max", "100663296")
	w.cgroup(filepath.Join(pod(), w.rig.Runtime.Cgroup(id)), "cpu/cpu.cfs_quota_us", "40000", "cpu.max", "40000 100000")
	edit("limits: {cpu: 400m, memory: 96Mi}", "limits: {cpu: 300m, memory: 80Mi}")
	w.cgroup(filepath.Join(pod(), w.rig.Runtime.Cgroup(id)), "memory/memory.limit_in_bytes", "83886080", "memory.max", "83886080")
	w.cgroup(pod(), "memory/memory.limit_in_bytes", "150994944", "memory.max", "150994944")
	checkAll("a resize", true, true, true)

	edit("sleep 3601", "sleep 3602")
	w.until("side has restarted", func() error {
		for _, c := range w.containers("two") {
			if c.Name == "side" && c.Attempt == 1 && c.State == "Running" {
				return nil
			}
		}
		return fmt.Errorf("containers %+v", w.containers("two"))
	})
	checkAll("a command", true, true, false)
	w.kill()
	w.start()
	w.barrier("after")
	checkAll("another agent", true, true, true)

	edit("hostNetwork: true", "hostNetwork: true\n  hostPID: true")
	was := uid
	w.until("the pod is another", func() error {
		if u, _, _ := w.both(); u == was {
			return fmt.Errorf("its uid is %s", u)
		}
		return nil
	})
	checkAll("the sandbox", false, false, false)
}
