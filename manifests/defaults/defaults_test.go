package defaults_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/defaults"
	"monopod/manifests/documents/documenttest"
)

var (
	node1         = documenttest.Node1
	podYAML       = documenttest.PodYAML
	accepted      = documenttest.Accepted
	containerYAML = documenttest.ContainerYAML
)

func TestDefaults(t *testing.T) {
	tests := []struct{ name, file, field, want string }{
		{"restart policy", podYAML("a"), "restartPolicy", `"Always"`},
		{"dns policy", podYAML("a"), "dnsPolicy", `"ClusterFirst"`},
		{"scheduler", podYAML("a"), "schedulerName", `"default-scheduler"`},
		{"grace", podYAML("a"), "terminationGracePeriodSeconds", "30"},
		{"negative grace", podYAML("a", "terminationGracePeriodSeconds: -5"), "terminationGracePeriodSeconds", "1"},
		{"octal grace", podYAML("a", "terminationGracePeriodSeconds: 0644"), "terminationGracePeriodSeconds", "420"},
		{"zero grace", podYAML("a", "terminationGracePeriodSeconds: 0"), "terminationGracePeriodSeconds", "0"},
		{"security context", podYAML("a"), "securityContext", "{}"},
		{"service links", podYAML("a"), "enableServiceLinks", "true"},
		{"service links off", podYAML("a", "enableServiceLinks: no"), "enableServiceLinks", "false"},
		{"bare volume", podYAML("a", "volumes: [{name: v}]"), "volumes", `[{"emptyDir":{},"name":"v"}]`},
		{"host path", podYAML("a", "volumes: [{name: v, hostPath: {path: /x}}]"), "volumes", `[{"hostPath":{"path":"/x","type":""},"name":"v"}]`},
		{"termination message", podYAML("a"), "containers.0.terminationMessagePath", `"/dev/termination-log"`},
		{"termination message policy", podYAML("a"), "containers.0.terminationMessagePolicy", `"File"`},
		{"protocol", containerYAML("ports: [{containerPort: 80}]"), "containers.0.ports", `[{"containerPort":80,"protocol":"TCP"}]`},
		{"host port of the host network", containerYAML("ports: [{containerPort: 80}]", "hostNetwork: true"), "containers.0.ports", `[{"containerPort":80,"hostPort":80,"protocol":"TCP"}]`},
		{"fieldRef", containerYAML("env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "containers.0.env", `[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}]`},
		{"probe", containerYAML("livenessProbe: {httpGet: {port: 80}}"), "containers.0.livenessProbe",
			`{"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}`},
		{"grpc probe", containerYAML("readinessProbe: {grpc: {port: 80}, periodSeconds: 2}"), "containers.0.readinessProbe",
			`{"failureThreshold":3,"grpc":{"port":80,"service":""},"periodSeconds":2,"successThreshold":1,"timeoutSeconds":1}`},
		{"hook", containerYAML("lifecycle: {preStop: {httpGet: {port: web}}}"), "containers.0.lifecycle.preStop", `{"httpGet":{"path":"/","port":"web","scheme":"HTTP"}}`},
		{"request is limit", containerYAML("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}"), "containers.0.resources.requests", `{"cpu":"500m","memory":"1Gi"}`},
		{"half a byte", containerYAML("resources: {requests: {memory: 0.5}}"), "containers.0.resources.requests", `{"memory":"500m"}`},
		{"rounded up", containerYAML("resources: {requests: {cpu: 0.0001}}"), "containers.0.resources.requests", `{"cpu":"1m"}`},
		{"pod requests from containers", containerYAML("resources: {requests: {cpu: 100m}}", "resources: {limits: {cpu: 1, memory: 1Gi}}"), "resources.requests", `{"cpu":"100m","memory":"1Gi"}`},
		{"pod requests without limits", containerYAML("resources: {requests: {cpu: 100m}}", "resources: {requests: {memory: 1Gi}}"), "resources.requests", `{"memory":"1Gi"}`},
		{"pod requests cover init containers", containerYAML("resources: {requests: {cpu: 100m}}",
			"resources: {limits: {cpu: 1}}", "initContainers:",
			"- {name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 200m}}}",
			"- {name: j, image: i, resources: {requests: {cpu: 300m}}}"), "resources.requests", `{"cpu":"500m"}`},
		{"toleration", podYAML("a"), "tolerations", `[{"effect":"NoExecute","operator":"Exists"}]`},
		{"toleration once", podYAML("a", "tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 3}]"), "tolerations", `[{"effect":"NoExecute","operator":"Exists"}]`},
		{"node name is forced", podYAML("a", "nodeName: other"), "nodeName", `"node1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := json.Marshal(accepted(t, node1, tt.file).Spec)
			var value any
			if err := errors.Join(err, json.Unmarshal(text, &value)); err != nil {
				t.Fatal(err)
			}
			for step := range strings.SplitSeq(tt.field, ".") {
				if list, ok := value.([]any); ok {
					value = list[0]
				} else {
					value = value.(map[string]any)[step]
				}
			}
			if got, _ := json.Marshal(value); string(got) != tt.want {
				t.Errorf("%s is %s, want %s", tt.field, got, tt.want)
			}
		})
	}
}

func TestPullPolicy(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	tests := map[string]v1.PullPolicy{
		"busybox": v1.PullAlways, "busybox:latest": v1.PullAlways, "r.io:5000/x": v1.PullAlways, "x:latest" + digest: v1.PullAlways,
		"busybox:1": v1.PullIfNotPresent, "x" + digest: v1.PullIfNotPresent, "Not An Image": v1.PullIfNotPresent, "": v1.PullIfNotPresent,
	}
	for image, want := range tests {
		if got := defaults.PullPolicy(image); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}
