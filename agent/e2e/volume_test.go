//go:build e2e

package e2e

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// described is a pod that checks what its volumes say of it, as a user who
// reads them by group only.
const described = `
  hostNetwork: true
  restartPolicy: Never
  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000}
  containers:
  - name: main
    image: registry.test/busybox:1
    resources: {limits: {memory: 64Mi}}
    command: [sh, -exc, '
      test "$(cat /d/sub/name)" = "$POD"; test "$(cat /d/memory)" = 64;
      test "$(cat /p/ns)" = "$NS"; test "$(cat /one)" = "$NS";
      test "$(stat -L -c %a.%g /p/ns)" = 440.2000; test "$(stat -c %a.%g /m)" = 3777.2000; test "$(stat -c %a.%g /e)" = 2777.2000;
      case "$(readlink /d/..data)" in ..20*) ;; *) exit 1;; esac;
      ! echo x > /p/x; echo x > /e/x; echo x > /m/x; test -s /s/x']
    env:
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    volumeMounts:
    - {name: d, mountPath: /d}
    - {name: p, mountPath: /p}
    - {name: p, mountPath: /one, subPath: ns}
    - {name: m, mountPath: /m}
    - {name: e, mountPath: /e}
    - {name: e, mountPath: /s}
  volumes:
  - name: d
    downwardAPI:
      items:
      - {path: sub/name, fieldRef: {fieldPath: metadata.name}}
      - {path: memory, resourceFieldRef: {containerName: main, resource: limits.memory, divisor: 1Mi}}
  - name: p
    projected:
      defaultMode: 0400
      sources:
      - downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}
  - {name: m, emptyDir: {medium: Memory}}
  - {name: e}
`

func showsThePodInFiles(w *world) {
	w.start()
	w.write("files", described)
	w.phase("files", v1.PodSucceeded)
}

// carried is a pod that runs a program from another image.
const carried = `
  hostNetwork: true
  restartPolicy: Never
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -exc, 'test -x /v/bin/sh; ! touch /v/x']
    volumeMounts: [{name: v, mountPath: /v}]
  volumes:
  - {name: v, image: {reference: registry.test/busybox:2, pullPolicy: IfNotPresent}}
`

func mountsImages(w *world) {
	w.start()
	w.write("image", carried)
	if w.rig.Runtime.MountsImages() {
		w.phase("image", v1.PodSucceeded)
		return
	}
	w.status("image", "says that the runtime is too old", func(s v1.PodStatus) bool {
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Waiting == nil {
			return false
		}
		at := s.ContainerStatuses[0].State.Waiting
		return at.Reason == "CreateContainerError" && strings.Contains(at.Message, `cannot mount image "registry.test/busybox:2" as a volume`)
	})
}
