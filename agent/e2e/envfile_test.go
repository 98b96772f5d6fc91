//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
)

// readsEnvFiles: what an init container wrote into an emptyDir is in the environment of those after
// it, which need not mount the volume. A wrong file fails its container, which says why.
func readsEnvFiles(w *world) {
	spec := func(text, of string) string {
		return fmt.Sprintf(`
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  initContainers: [{name: writes, image: "registry.test/busybox:1", command: [sh, -c, %q], volumeMounts: [{name: cfg, mountPath: /cfg}]}]
  containers: [%s, env: [{name: ADDRESS, valueFrom: {fileKeyRef: {volumeName: cfg, path: app.env, key: DB}}}, {name: NONE, valueFrom: {fileKeyRef: {volumeName: cfg, path: app.env, key: MISSING, optional: true}}}]}]
  volumes: [{name: cfg, emptyDir: {%s}}]
`, text, sleeps, of)
	}
	w.start()
	for name, medium := range map[string]string{"disk": "", "memory": "medium: Memory"} {
		w.write(name, spec("printf \"DB='one\\ntwo'\\n\" > /cfg/app.env", medium))
		w.running(name)
		out, err := exec.Command(w.agent.Binary, "exec", "--socket", w.agent.Socket, "-n", w.ns, name, "--", "env").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ADDRESS=one\ntwo\n") || strings.Contains(string(out), "NONE") {
			w.Errorf("%s: the environment is %v\n%s", name, err, out)
		}
	}
	w.write("wrong", spec("echo DB=one > /cfg/app.env", ""))
	w.ps("wrong", "CreateContainerConfigError")
	w.ps("wrong", "couldn't parse env file: app.env of volume cfg: line 1: the value must stand in single quotes")
}
