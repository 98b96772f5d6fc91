//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// swapping is a pod whose sidecar lets a link in a volume lead to a folder of the
// machine, at first until it is told to go on, then for a moment again and again,
// as the others start with that link as a subPath. They fail if they see what is
// in that folder.
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
    command: [sh, -c, 'while [ ! -e /go/on ]; do sleep 0.1; done; while :; do ln -s HOST /v/a; mv -T /v/a /v/dir; usleep 1000; ln -s real /v/a; mv -T /v/a /v/dir; usleep 8000; done']
    volumeMounts: [{name: v, mountPath: /v}, {name: go, mountPath: /go}]
  containers:
`

const swapped = `  - name: main%d
    image: registry.test/busybox:1
    command: [sh, -ec, 'echo x > /s/made%d; test ! -e /s/secret']
    volumeMounts: [{name: v, mountPath: /s, subPath: dir}]
`

func keepsSubPathsInTheirVolume(w *world) {
	host := filepath.Join(w.agent.Dir, "host")
	told := filepath.Join(w.agent.Dir, "told")
	check(w.T, os.Mkdir(host, 0o755))
	check(w.T, os.Mkdir(told, 0o755))
	check(w.T, os.WriteFile(filepath.Join(host, "secret"), []byte("kept"), 0o644))
	var spec strings.Builder
	spec.WriteString(strings.ReplaceAll(swapping, "HOST", host))
	for i := range 6 {
		fmt.Fprintf(&spec, swapped, i, i)
	}
	fmt.Fprintf(&spec, "  volumes:\n  - {name: v, emptyDir: {}}\n  - {name: go, hostPath: {path: %s}}\n", told)
	w.start()
	w.write("swap", spec.String())
	w.until("a start is refused while the link leads out", func() error {
		if refusals(w) == 0 {
			return errors.New("none was")
		}
		return nil
	})
	check(w.T, os.WriteFile(filepath.Join(told, "on"), nil, 0o644))
	w.phase("swap", v1.PodSucceeded)
	left, err := os.ReadDir(host)
	check(w.T, err)
	if len(left) != 1 {
		w.Errorf("the folder of the machine has %v now", left)
	}
	w.Logf("%d starts were refused while it led out", refusals(w))
}

// refusals returns how often a container was not started for its subPath.
func refusals(w *world) int { return logLines(w, `failed to prepare subPath for volumeMount`) }
