//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/e2e/rig"
)

// secluded is a pod with users of its own, whose root uses volumes of all kinds.
const secluded = `
  hostUsers: false
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 2000}
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -exc, '
      test "$(id -u)" = 0; test "$(stat -c %u.%g /e)" = 0.2000; test "$(stat -c %u.%g /m)" = 0.2000; test "$(stat -c %u /etc/hosts)" = 0;
      echo x > /e/x; echo x > /m/x; echo x >> /etc/hosts; test "$(cat /d/ns)" = "$NS"; test "$(stat -L -c %u.%g /d/ns)" = 0.2000;
      echo well > /dev/termination-log; exec sleep 3600']
    env: [{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
    volumeMounts: [{name: e, mountPath: /e}, {name: e, mountPath: /s, subPath: sub}, {name: m, mountPath: /m}, {name: d, mountPath: /d}]
  volumes:
  - {name: e, emptyDir: {}}
  - {name: m, emptyDir: {medium: Memory}}
  - {name: d, downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}}
`

// givesPodsTheirOwnUsers checks what the kernel has, where the runtime offers it,
// else that the pod says what is missing.
func givesPodsTheirOwnUsers(w *world) {
	w.start()
	w.write("one", secluded)
	if !offersUsers(w.T, w.rig) {
		w.Log("NOT seen on a kernel: this runtime offers no user namespaces")
		w.status("one", "says that the runtime cannot", func(s v1.PodStatus) bool {
			return strings.Contains(s.Conditions[0].Message, "runtime does not support user namespaces")
		})
		return
	}
	w.write("two", secluded)
	run := w.running("one", "two")
	for pod, c := range run {
		w.until("it got through its checks", func() error {
			log := filepath.Join(w.agent.Root, "pods", c.UID, "containers/main/*")
			files, _ := filepath.Glob(log)
			for _, f := range files {
				if b, _ := os.ReadFile(f); string(b) == "well\n" {
					return nil
				}
			}
			return fmt.Errorf("%s wrote no message to %v", pod, files)
		})
		var i syscall.Stat_t
		check(w.T, syscall.Stat(filepath.Join(w.agent.Root, "pods", c.UID, "volumes/kubernetes.io~empty-dir/e/x"), &i))
		if i.Uid != 0 || i.Gid != 2000 {
			w.Errorf("%s: its file belongs to %d.%d on disk, want 0.2000", pod, i.Uid, i.Gid)
		}
	}
	one, two := w.idMap(run["one"].ID), w.idMap(run["two"].ID)
	if one == two || one < 65536 || two < 65536 {
		w.Errorf("their users begin at %d and %d of the machine", one, two)
	}
	w.kill()
	w.start()
	w.crash(run["one"])
	w.successor("one", 1)
	if again := w.idMap(w.running("one")["one"].ID); again != one {
		w.Errorf("after another agent's restart its users begin at %d, want %d", again, one)
	}
}

// idMap returns where on the machine a container's users begin.
func (w *world) idMap(id string) int {
	w.Helper()
	pid, err := w.rig.CRI.Pid(w.Context(), id)
	check(w.T, err)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", pid))
	check(w.T, err)
	var inside, outside, length int
	if _, err := fmt.Sscan(string(b), &inside, &outside, &length); err != nil || inside != 0 || length != 65536 {
		w.Fatalf("uid_map is %q (%v), want 65536 users", b, err)
	}
	return outside
}

// offersUsers reports whether the runtime can give pods users of their own.
func offersUsers(t *testing.T, r *rig.Rig) bool {
	t.Helper()
	st, err := r.CRI.Runtime.Status(t.Context(), &rt.StatusRequest{})
	check(t, err)
	return slices.ContainsFunc(st.RuntimeHandlers, func(h *rt.RuntimeHandler) bool { return h.Name == "" && h.Features.GetUserNamespaces() })
}
