//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// swapping is a pod whose sidecar exchanges, as fast as it can, a directory of a
// volume for a link to a folder of the machine, while the others start with that
// directory as a subPath. They fail if they see what is in that folder.
const swapping = `
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: hostile
    image: registry.test/busybox:1
    restartPolicy: Always
    command: [sh, -c, 'mkdir /v/dir; while :; do mv /v/dir /v/away; ln -s HOST /v/dir; mv /v/dir /v/link; mv /v/away /v/dir; rm -rf /v/link; done']
    volumeMounts: [{name: v, mountPath: /v}]
  containers:
`

const swapped = `  - name: main%d
    image: registry.test/busybox:1
    command: [sh, -c, 'echo x > /s/made%d; test ! -e /s/secret']
    volumeMounts: [{name: v, mountPath: /s, subPath: dir}]
`

func keepsSubPathsInTheirVolume(w *world) {
	host := filepath.Join(w.agent.Dir, "host")
	check(w.T, os.Mkdir(host, 0o755))
	check(w.T, os.WriteFile(filepath.Join(host, "secret"), []byte("kept"), 0o644))
	var spec strings.Builder
	spec.WriteString(strings.Replace(swapping, "HOST", host, 1))
	for i := range 12 {
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
	w.Logf("%d starts were refused in the middle of an exchange", strings.Count(string(b), "subPath for volumeMount")+strings.Count(string(b), "subPath directory for volumeMount"))
}
