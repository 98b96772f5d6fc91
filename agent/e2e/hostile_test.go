//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// swapping is a pod whose sidecar lets a link in a volume lead to a folder of the
// machine, at first for a while, then for a moment again and again, as the others
// start with that link as a subPath. They fail if they see what is in that folder.
const swapping = `
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: first
    image: registry.test/busybox:1
    command: [sh, -c, 'mkdir /v/real; ln -s HOST /v/dir']
    volumeMounts: [{name: v, mountPath: /v}]
  - name: hostile
    image: registry.test/busybox:1
    restartPolicy: Always
    command: [sh, -c, 'sleep 3; while :; do ln -s HOST /v/a; mv -T /v/a /v/dir; usleep 1000; ln -s real /v/a; mv -T /v/a /v/dir; usleep 8000; done']
    volumeMounts: [{name: v, mountPath: /v}]
  containers:
`

const swapped = `  - name: main%d
    image: registry.test/busybox:1
    command: [sh, -ec, 'echo x > /s/made%d; test ! -e /s/secret']
    volumeMounts: [{name: v, mountPath: /s, subPath: dir}]
`

func keepsSubPathsInTheirVolume(w *world) {
	host := filepath.Join(w.agent.Dir, "host")
	check(w.T, os.Mkdir(host, 0o755))
	check(w.T, os.WriteFile(filepath.Join(host, "secret"), []byte("kept"), 0o644))
	var spec strings.Builder
	spec.WriteString(strings.ReplaceAll(swapping, "HOST", host))
	for i := range 6 {
		fmt.Fprintf(&spec, swapped, i, i)
	}
	spec.WriteString("  volumes:\n  - {name: v, emptyDir: {}}\n")
	w.start()
	w.write("swap", spec.String())
	w.phase("swap", v1.PodSucceeded)
	left, err := os.ReadDir(host)
	check(w.T, err)
	if len(left) != 1 {
		w.Errorf("the folder of the machine has %v now", left)
	}
	b, err := os.ReadFile(w.agent.Log)
	check(w.T, err)
	refused := strings.Count(string(b), `failed to prepare subPath for volumeMount`)
	if w.Logf("%d starts were refused while it led out", refused); refused == 0 {
		w.Error("no start came at such a moment: nothing is proven")
	}
}
