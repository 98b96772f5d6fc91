package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// digestSpecs are parts of a pod's spec, each of another kind.
var digestSpecs = []string{
	"hostNetwork: true", "hostPID: true", "hostIPC: true", "hostUsers: false", "restartPolicy: Never", "restartPolicy: OnFailure",
	"terminationGracePeriodSeconds: 5", "activeDeadlineSeconds: 60", "dnsPolicy: Default", "dnsPolicy: None\n  dnsConfig: {nameservers: [192.0.2.1], options: [{name: ndots, value: '2'}]}",
	"hostname: web\n  subdomain: sub", "hostAliases: [{ip: 192.0.2.9, hostnames: [a, b]}]", "priority: 7", "priorityClassName: system-node-critical",
	"nodeSelector: {disk: ssd}", "tolerations: [{key: a, operator: Exists}]", "enableServiceLinks: false", "shareProcessNamespace: true", "setHostnameAsFQDN: true",
	"securityContext: {runAsUser: 1000, fsGroup: 2000, supplementalGroups: [3000]}", "securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: '0'}]}",
	"securityContext: {seccompProfile: {type: RuntimeDefault}}", "overhead: {cpu: 10m}", "resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}",
	"volumes: [{name: v, emptyDir: {}}]", "volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]", "volumes: [{name: v, hostPath: {path: /tmp}}]",
	"volumes: [{name: v, hostPath: {path: /tmp, type: Directory}}]", "volumes: [{name: v, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]",
	"volumes: [{name: v, image: {reference: 'vol:1'}}]", "volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}]",
	"initContainers: [{name: i, image: 'img:1'}]", "initContainers: [{name: i, image: 'img:1', restartPolicy: Always}]", "os: {name: linux}", "automountServiceAccountToken: false",
}

// digestContainers are parts of a container.
var digestContainers = []string{
	"command: [sh, -c, 'sleep 1']", "args: [a, b]", "env: [{name: A, value: b}, {name: B, value: $(A)}]", "env: [{name: P, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]",
	"ports: [{containerPort: 80}]", "ports: [{containerPort: 80, hostPort: 8080, protocol: UDP}]", "resources: {limits: {cpu: 1, memory: 64Mi}}", "resources: {requests: {cpu: 50m}}",
	"livenessProbe: {httpGet: {port: 80}}", "readinessProbe: {exec: {command: ['true']}, periodSeconds: 3}", "startupProbe: {tcpSocket: {port: 80}}", "livenessProbe: {grpc: {port: 80}}",
	"lifecycle: {preStop: {exec: {command: [a]}}, postStart: {sleep: {seconds: 1}}}", "imagePullPolicy: Always", "securityContext: {privileged: true}",
	"securityContext: {capabilities: {add: [NET_ADMIN], drop: [ALL]}, readOnlyRootFilesystem: true}", "terminationMessagePolicy: FallbackToLogsOnError", "workingDir: /tmp", "stdin: true, tty: true",
}

// Who reads a manifest with another version of monopod must come to the same
// digest: with another one, the pod would be replaced.
func TestDigestsStayAsTheyAre(t *testing.T) {
	var docs []string
	head := "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d, labels: {a: b}}\nspec:\n  "
	for k, spec := range digestSpecs {
		docs = append(docs, fmt.Sprintf(head+"containers: [{name: c, image: 'img:1'}]\n  %s\n", k, spec))
	}
	for k, c := range digestContainers {
		docs = append(docs, fmt.Sprintf(head+"containers: [{name: c, image: 'img:1', %s}]\n", len(digestSpecs)+k, c))
	}
	pods, problems := Decode("/m/pods.yaml", []byte(strings.Join(docs, "---\n")), Options{NodeName: "node1", NameSuffix: true})
	if len(pods) != len(docs) {
		t.Fatalf("%d of %d pods: %v", len(pods), len(docs), problems)
	}
	var got strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&got, "%s %s %s\n", p.Name, p.Digest, p.UID)
	}
	path := filepath.Join("..", "testdata", "golden", "digests.txt")
	if os.Getenv("MONOPOD_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got:\n%swant:\n%s", got.String(), want)
	}
}
