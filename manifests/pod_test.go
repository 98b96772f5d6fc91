package manifests

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
	"monopod/manifests/defaults"
)

// accepted decodes the one good pod of a file.
func accepted(t *testing.T, o Options, text string) *Pod {
	t.Helper()
	pods, problems := Decode("/m/x.yaml", []byte(text), o)
	if len(pods) != 1 {
		t.Fatalf("%d pods, problems:\n%s", len(pods), words(problems))
	}
	return pods[0]
}

// container returns a manifest whose one container has more fields, in flow style.
func containerYAML(fields string, spec ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  " + strings.Join(append(spec, ""), "\n  ") +
		"containers:\n  - {name: c, image: i, " + fields + "}\n"
}

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
			must(t, err)
			var value any
			must(t, json.Unmarshal(text, &value))
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

func TestIdentity(t *testing.T) {
	p := accepted(t, node1, podYAML("web"))
	if p.Name != "web-node1" || p.Namespace != "default" || p.Kind != "Pod" || p.APIVersion != "v1" || p.Status.Phase != v1.PodPending {
		t.Errorf("%+v", p.ObjectMeta)
	}
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	if !hex.MatchString(string(p.UID)) || !hex.MatchString(p.Digest) || string(p.UID) == p.Digest {
		t.Errorf("uid %s, digest %s", p.UID, p.Digest)
	}
	if p.Annotations["kubernetes.io/config.hash"] != string(p.UID) || p.Annotations["kubernetes.io/config.source"] != "file" || p.Annotations["kubernetes.io/config.seen"] == "" {
		t.Errorf("annotations %v", p.Annotations)
	}
	if p := accepted(t, Options{NodeName: "node1"}, podYAML("web")); p.Name != "web" {
		t.Errorf("without suffix: %s", p.Name)
	}
}

func TestUIDAndDigest(t *testing.T) {
	decode := func(file, node, text string) *Pod {
		pods, problems := Decode(file, []byte(text), Options{NodeName: node, NameSuffix: true})
		if len(pods) != 1 {
			t.Fatal(problems)
		}
		return pods[0]
	}
	base := decode("/m/x.yaml", "n", podYAML("a"))
	tests := []struct {
		name            string
		p               *Pod
		sameUID, sameID bool
	}{
		{"comments and order", decode("/m/x.yaml", "n", "# x\n"+`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"image":"busybox","name":"c"}]},"metadata":{"name":"a"}}`), true, true},
		{"a default said", decode("/m/x.yaml", "n", podYAML("a", "restartPolicy: Always")), true, true},
		{"a mirror annotation", decode("/m/x.yaml", "n", strings.Replace(podYAML("a"), "metadata:", "metadata:\n  annotations: {kubernetes.io/config.mirror: x, kubernetes.io/config.hash: z}", 1)), true, true},
		{"a status", decode("/m/x.yaml", "n", podYAML("a")+"status: {phase: Failed}\n"), true, true},
		{"another file", decode("/m/y.yaml", "n", podYAML("a")), false, true},
		{"another node", decode("/m/x.yaml", "o", podYAML("a")), false, true},
		{"another image", decode("/m/x.yaml", "n", image(podYAML("a"), "b")), false, false},
		{"another label", decode("/m/x.yaml", "n", strings.Replace(podYAML("a"), "metadata:", "metadata:\n  labels: {a: b}", 1)), false, false},
	}
	for _, tt := range tests {
		if (tt.p.UID == base.UID) != tt.sameUID || (tt.p.Digest == base.Digest) != tt.sameID {
			t.Errorf("%s: uid %s, digest %s; base %s, %s", tt.name, tt.p.UID, tt.p.Digest, base.UID, base.Digest)
		}
		if _, ok := tt.p.Annotations["kubernetes.io/config.mirror"]; ok {
			t.Errorf("%s: the mirror annotation is there", tt.name)
		}
	}
}

func TestExplicitUID(t *testing.T) {
	with := func(uid string) string {
		return strings.Replace(podYAML("a"), "metadata:", "metadata:\n  uid: \""+uid+"\"", 1)
	}
	p := accepted(t, node1, with("My-Pod-1"))
	if p.UID != "My-Pod-1" || p.Annotations["kubernetes.io/config.hash"] != "My-Pod-1" {
		t.Errorf("uid %s", p.UID)
	}
	for _, uid := range []string{"../x", "a b", "a_b", "é", strings.Repeat("a", 64)} {
		_, problems := Decode("/m/x.yaml", []byte(with(uid)), node1)
		checkWords(t, problems, "4:8 metadata.uid: Invalid value")
	}
}

func TestStringsOfPod(t *testing.T) {
	p := decode.Problem{File: "f", Message: "m"}
	if p.Error() != "f: m" || (Key{Namespace: "ns", Name: "n"}).String() != "ns/n" {
		t.Error(p.Error())
	}
}
