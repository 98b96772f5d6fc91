//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// configured is a pod that is made of ConfigMaps and Secrets.
const configured = `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
    envFrom: [{prefix: APP_, configMapRef: {name: app}}, {secretRef: {name: none, optional: true}}]
    env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}]
    volumeMounts:
    - {name: s, mountPath: /s}
    - {name: p, mountPath: /p}
    - {name: p, mountPath: /one, subPath: deep/conf}
  volumes:
  - {name: s, secret: {secretName: keys, defaultMode: 0400}}
  - name: p
    projected:
      sources:
      - configMap: {name: app, items: [{key: conf, path: deep/conf, mode: 0440}]}
      - secret: {name: keys, items: [{key: token, path: token}]}
`

func (w *world) objects(conf, token string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {conf: %q}\n---\n"+
		"apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: %s}\nstringData: {token: %q}\n", w.ns, conf, w.ns, token)
}

// in checks what a command in the pod prints, until it does.
func (w *world) in(pod, script, want string) {
	w.Helper()
	w.until(script+" prints "+want, func() error {
		out, err := w.command(w.Context(), "exec", pod, "--", "sh", "-c", script).Output()
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(string(out)); got != want {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

// takesObjects: a pod waits for its objects, runs as soon as they are there, and its
// files follow them, while its variables and what is mounted by subPath do not.
func takesObjects(w *world) {
	w.start()
	w.write("made", configured)
	w.status("made", "waits for a Secret", func(s v1.PodStatus) bool {
		for _, c := range s.Conditions {
			if c.Type == v1.PodReadyToStartContainers && strings.Contains(c.Message, `secret "keys" not found`) {
				return true
			}
		}
		return false
	})
	w.writeFile("objects.yaml", w.objects("first", "hunter2"))
	before := w.running("made")
	w.in("made", "echo $APP_conf $TOKEN $(cat /s/token /p/token) $(cat /p/deep/conf) $(cat /one)", "first hunter2 hunter2hunter2 first first")
	w.in("made", "stat -L -c %a /s/token /p/deep/conf /p/token | tr '\\n' ' '", "400 440 644")
	w.in("made", "stat -f -c %T /s /p | tr '\\n' ' '", "tmpfs tmpfs")
	w.writeFile("objects.yaml", w.objects("second", "hunter3"))
	w.in("made", "echo $APP_conf $TOKEN $(cat /s/token /p/token) $(cat /p/deep/conf) $(cat /one)", "first hunter2 hunter3hunter3 second first")
	w.same(before)
	for _, words := range [][]string{{"ps"}, {"describe", w.ns + "/made"}, {"events"}, {"ps", "-o", "json"}} {
		out, err := w.agent.Says(w.Context(), words[0], words[1:]...)
		if check(w.T, err); strings.Contains(out, "hunter") {
			w.Errorf("%v says a Secret:\n%s", words, out)
		}
	}
	files, _ := filepath.Glob(filepath.Join(w.agent.Root, "status", "*"))
	checkpoints, _ := filepath.Glob(filepath.Join(w.agent.Root, "pods", "*", "pod.json"))
	for _, file := range slices.Concat(files, checkpoints, []string{w.agent.Log}) {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "hunter") {
			w.Errorf("a Secret's value is in %s", file)
		}
	}
}

// reloading is a pod of three containers, each with its own reaction to another ConfigMap.
const reloading = `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  volumes: [{name: app, configMap: {name: app}}, {name: told, emptyDir: {}}]
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'echo main $(cat /app/conf) >> /told/main' HUP; trap 'exit 0' TERM; touch /told/main-up; while :; do sleep 1 & wait; done"]
    volumeMounts: &mounts [{name: app, mountPath: /app}, {name: told, mountPath: /told}]
  - name: commanded
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"]
    volumeMounts: *mounts
  - name: deaf
    image: registry.test/busybox:1
    command: [sh, -c, "touch /told/deaf-up; exec sleep 3600"]
    volumeMounts: *mounts
  - name: fresh
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"]
    env: [{name: CONF, valueFrom: {configMapKeyRef: {name: app, key: conf}}}]
`

// tellsContainersOfChangedConfig: of a changed ConfigMap one container is told by a signal and one by
// a command, after their files show it, and one restarts. A signal that a program does not handle is
// not sent, and the pod says so.
func tellsContainersOfChangedConfig(w *world) {
	w.start()
	write := func(file, text string) {
		w.writeFile(file, strings.Replace(text, "metadata:\n", `metadata:
  annotations:
    monopod.on-config-change: signal:HUP
    monopod.on-config-change/commanded: 'exec:["sh", "-c", "echo commanded $(cat /app/conf) >> /told/commanded"]'
    monopod.on-config-change/fresh: restart
`, 1))
	}
	write("made.yaml", w.manifest("made", reloading))
	w.writeFile("objects.yaml", w.objects("first", "x"))
	w.running("made")
	w.in("made", "ls /told", "deaf-up\nmain-up") // a signal meets the programs, not what starts them
	w.writeFile("objects.yaml", w.objects("second", "x"))
	w.in("made", "cat /told/main /told/commanded", "main second\ncommanded second")
	w.ps("made: container deaf is not told of its changed config by SIGHUP: its first process does not handle SIGHUP; next try at 20")
	w.status("made", "has restarted the one container that is to", func(s v1.PodStatus) bool {
		restarts := ""
		for _, c := range s.ContainerStatuses {
			restarts += fmt.Sprintf("%s %d ", c.Name, c.RestartCount)
		}
		return restarts == "commanded 0 deaf 0 fresh 1 main 0 " || restarts == "main 0 commanded 0 deaf 0 fresh 1 "
	})
	w.kill()
	w.start()
	w.barrier("later")
	w.writeFile("objects.yaml", w.objects("third", "x"))
	w.in("made", "cat /told/main /told/commanded", "main second\nmain third\ncommanded second\ncommanded third")
}
