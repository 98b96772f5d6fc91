package cli

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"monopod/agent/cli/client"
	"monopod/agent/print"
	"monopod/agent/status"
)

// everything is a pod with much to tell, and one with little.
const everything = `
- metadata:
    name: web-node1
    namespace: default
    uid: 0123456789abcdef0123456789abcdef
    labels: {app: web, tier: front}
    annotations: {note: "two\nlines \u001b[2J"}
  spec:
    nodeName: Node1
    restartPolicy: Always
    terminationGracePeriodSeconds: 30
    priorityClassName: system-node-critical
    nodeSelector: {disk: ssd}
    initContainers:
    - {name: prepare, image: "busybox:1", command: [sh, -c, "echo it is done"]}
    - {name: side, image: "envoy:1", restartPolicy: Always, startupProbe: {grpc: {port: 9000, service: ready}, periodSeconds: 1, failureThreshold: 60}}
    containers:
    - name: app
      image: nginx:1
      args: [--verbose]
      ports: [{containerPort: 80, hostPort: 8080, hostIP: 192.0.2.1, protocol: TCP}, {containerPort: 53, protocol: UDP}]
      env:
      - {name: PLAIN, value: hunter2}
      - {name: IP, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}
      - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
      - {name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
      - {name: COLOUR, valueFrom: {configMapKeyRef: {name: look, key: colour, optional: true}}}
      envFrom: [{configMapRef: {name: look}, prefix: LOOK_}, {secretRef: {name: more, optional: true}}]
      resources: {limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: 100m}}
      livenessProbe: {httpGet: {path: /healthz, port: 80, scheme: HTTP}, initialDelaySeconds: 5, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3}
      readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 5, timeoutSeconds: 2, successThreshold: 2, failureThreshold: 1}
      lifecycle: {postStart: {exec: {command: [touch, /tmp/x]}}, preStop: {sleep: {seconds: 5}}}
      volumeMounts: [{name: data, mountPath: /data}, {name: conf, mountPath: /conf, readOnly: true, subPath: a.conf}]
    volumes:
    - {name: data, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
    - {name: conf, configMap: {name: conf}}
    - {name: keys, secret: {secretName: keys, optional: true}}
    - {name: host, hostPath: {path: /srv, type: Directory}}
    - {name: all, projected: {sources: [{configMap: {name: a}}, {downwardAPI: {}}, {secret: {name: b}}]}}
    - {name: pic, image: {reference: "pictures:1"}}
  status:
    phase: Running
    qosClass: Burstable
    hostIP: 192.0.2.7
    podIP: 10.88.0.4
    podIPs: [{ip: 10.88.0.4}, {ip: "fd00::4"}]
    startTime: "2026-05-04T09:00:00Z"
    conditions:
    - {type: Initialized, status: "True", lastTransitionTime: "2026-05-04T09:00:05Z"}
    - {type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [app]", lastTransitionTime: "2026-05-04T11:59:50Z"}
    initContainerStatuses:
    - {name: prepare, ready: true, containerID: "containerd://aa", imageID: "sha256:1", state: {terminated: {exitCode: 0, reason: Completed, startedAt: "2026-05-04T09:00:01Z", finishedAt: "2026-05-04T09:00:02Z"}}}
    - {name: side, ready: true, started: true, containerID: "containerd://bb", state: {running: {startedAt: "2026-05-04T09:00:03Z"}}}
    containerStatuses:
    - name: app
      containerID: containerd://cc
      imageID: sha256:2
      restartCount: 4
      state: {waiting: {reason: CrashLoopBackOff, message: "back-off 40s restarting failed container=app pod=web-node1_default(0123)"}}
      lastState: {terminated: {exitCode: 137, reason: OOMKilled, message: "no more\nmemory", startedAt: "2026-05-04T11:59:00Z", finishedAt: "2026-05-04T11:59:50Z", containerID: "containerd://bc"}}
- metadata: {name: idle, namespace: kube-system, uid: u3}
  spec: {nodeName: node1, hostNetwork: true, containers: [{name: main, image: pause}]}
  status: {phase: Pending, reason: NodeAffinity, message: "no label fits"}
`

func someManifests() status.Manifests {
	return status.Manifests{Dir: "/etc/m", Files: []status.File{
		{Path: "/etc/m/web.yaml", Pods: []string{"default/web-node1"}, Held: true, Problems: []status.Problem{
			{File: "/etc/m/web.yaml", Line: 12, Column: 3, Field: "spec.x", Message: "unknown field"}},
			State: status.Rejected, Since: now.Add(-time.Hour), Versions: []status.Version{{Pod: "default/web-node1", State: status.Rejected, Reason: "spec.x: unknown field",
				Line: 12, Column: 3, Since: now.Add(-time.Hour), Running: "0123456789abcdef0123456789abcdef"}}},
		{Path: "/etc/m/other.yaml", Pods: []string{"default/other-node1"}, Problems: []status.Problem{{File: "/etc/m/other.yaml", Message: "not this pod's"}},
			Versions: []status.Version{{Pod: "default/web-node1", State: status.Superseded, Reason: "/etc/m/web.yaml gives it already", Line: 2, Column: 1,
				Since: now.Add(-time.Hour), Hash: "fedcba9876543210fedcba9876543210", By: "/etc/m/web.yaml"}}},
	}}
}

func TestDescribe(t *testing.T) {
	root := leave(t, everything, someManifests(), someEvents())
	socket, _, _ := serve(t, root)
	rows := []struct {
		name string
		o    DescribeOptions
	}{
		{"describe", DescribeOptions{Pods: []string{"web"}}},
		{"describe-color", DescribeOptions{Pods: []string{"default/web-node1"}, Options: Options{Format: print.Format{Color: true}}}},
		{"describe-idle", DescribeOptions{Pods: []string{"kube-system/idle"}}},
		{"describe-idle-json", DescribeOptions{Pods: []string{"idle"}, Options: Options{Format: print.Format{Output: "json"}}}},
		{"describe-idle-yaml", DescribeOptions{Pods: []string{"idle"}, Options: Options{Format: print.Format{Output: "yaml"}}}},
		{"describe-all", DescribeOptions{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, from := range []string{socket, "/nowhere/s"} {
				var out, notes bytes.Buffer
				row.o.Source, row.o.Now, row.o.Err = client.Source{Socket: from, Root: root}, now, &notes
				if err := Describe(t.Context(), &out, row.o); err != nil && (from == socket || !errors.Is(err, client.ErrDown)) {
					t.Fatal(err)
				}
				if said := notes.Len() > 0; said != (from != socket) {
					t.Errorf("from %s it noted %q", from, notes.String())
				}
				shown(t, row.name, out.String())
			}
		})
	}
	for want, o := range map[string]DescribeOptions{
		`there is no pod "wep"; there is default/web`: {Pods: []string{"wep"}},
	} {
		o.Socket, o.Now = socket, now
		if err := Describe(t.Context(), io.Discard, o); err == nil || err.Error() != want {
			t.Errorf("Describe = %v, want %s", err, want)
		}
	}
}
