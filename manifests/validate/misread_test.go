package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// richYAML is a pod with a field of nearly every kind, most of which mean something to another one.
const richYAML = `apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: prod
  uid: u-1
  labels: {app: web}
  annotations: {monopod.start-after: db, monopod.start-after-timeout: 90s, monopod.backoff-first: 1s, monopod.backoff-max: 10s}
spec:
  os: {name: linux}
  restartPolicy: Always
  terminationGracePeriodSeconds: 60
  activeDeadlineSeconds: 100
  hostNetwork: false
  hostPID: false
  hostUsers: false
  shareProcessNamespace: false
  setHostnameAsFQDN: false
  hostnameOverride: a.b
  nodeName: node1
  dnsPolicy: None
  dnsConfig: {nameservers: [1.1.1.1], searches: [a.b], options: [{name: ndots, value: '5'}]}
  hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]
  nodeSelector: {disk: ssd}
  overhead: {cpu: 1m}
  tolerations: [{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 5}, {operator: Exists}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [x]}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: k, operator: In, values: [v]}], matchFields: [{key: metadata.name, operator: In, values: [node1]}]}]
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, preference: {matchExpressions: [{key: k, operator: Exists}]}}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, podAffinityTerm: {topologyKey: zone, labelSelector: {matchExpressions: [{key: k, operator: In, values: [v]}]}, matchLabelKeys: [x], mismatchLabelKeys: [z]}}
  securityContext:
    runAsNonRoot: true
    runAsUser: 7
    seccompProfile: {type: Localhost, localhostProfile: p}
    appArmorProfile: {type: Localhost, localhostProfile: p}
    sysctls: [{name: net.ipv4.ip_forward, value: '1'}]
  resources: {limits: {cpu: 3, memory: 3Gi}, requests: {cpu: 3, memory: 2Gi}}
  volumes:
  - {name: e, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: h, hostPath: {path: /x, type: Directory}}
  - name: d
    downwardAPI:
      defaultMode: 256
      items:
      - {path: l, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}
      - {path: c, mode: 256, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}
  - name: p
    projected: {sources: [{downwardAPI: {items: [{path: nn, fieldRef: {fieldPath: metadata.name}}]}}]}
  - {name: i, image: {reference: busybox, pullPolicy: IfNotPresent}}
  initContainers:
  - {name: init, image: busybox, command: [x], resources: {limits: {cpu: 1}}}
  - name: sidecar
    image: busybox
    restartPolicy: Always
    ports: [{name: side, containerPort: 90, hostPort: 91}]
    readinessProbe: {tcpSocket: {port: side}, periodSeconds: 3}
    lifecycle: {postStart: {exec: {command: [a]}}}
  containers:
  - name: c
    image: busybox
    imagePullPolicy: IfNotPresent
    command: [sh, -c]
    args: [x]
    workingDir: /w
    terminationMessagePath: /t
    terminationMessagePolicy: File
    restartPolicy: OnFailure
    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}]
    ports:
    - {name: web, containerPort: 80, hostPort: 80, hostIP: 10.0.0.1, protocol: TCP}
    - {name: dns, containerPort: 80, hostPort: 80, hostIP: 10.0.0.1, protocol: UDP}
    - {name: more, containerPort: 80, hostPort: 80, hostIP: 10.0.0.2}
    env:
    - {name: A, value: x}
    - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: C, valueFrom: {resourceFieldRef: {containerName: c, resource: limits.memory, divisor: 1Mi}}}
    volumeMounts:
    - {name: e, mountPath: /e, subPathExpr: $(A), mountPropagation: None}
    - {name: h, mountPath: /h, subPath: s, readOnly: true, recursiveReadOnly: Enabled, mountPropagation: None}
    - {name: h, mountPath: /b, mountPropagation: Bidirectional}
    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
    resources:
      limits: {cpu: 2, memory: 2Gi, hugepages-2Mi: 2Mi, example.com/gpu: 1}
      requests: {cpu: 1, memory: 1Gi, hugepages-2Mi: 2Mi, example.com/gpu: 1}
    securityContext:
      privileged: true
      allowPrivilegeEscalation: true
      procMount: Unmasked
      runAsUser: 7
      capabilities: {add: [NET_ADMIN]}
    livenessProbe: {httpGet: {path: /x, port: web, scheme: HTTP, httpHeaders: [{name: X, value: yy}]}, timeoutSeconds: 3, terminationGracePeriodSeconds: 9}
    readinessProbe: {exec: {command: [a]}, successThreshold: 2}
    startupProbe: {grpc: {port: 9, service: s}}
    lifecycle: {stopSignal: SIGINT, postStart: {httpGet: {port: web}}, preStop: {sleep: {seconds: 50}}}
  - name: extended
    image: busybox
    resources: {limits: {example.com/gpu: 1}, requests: {example.com/gpu: 1}}
  - name: huge
    image: busybox
    resources: {limits: {hugepages-2Mi: 2Mi}, requests: {cpu: 1}}
`

// hostYAML is a pod in the machine's own namespaces.
const hostYAML = `apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations:
    container.apparmor.security.beta.kubernetes.io/c: localhost/p
    seccomp.security.alpha.kubernetes.io/pod: localhost/p
    container.seccomp.security.alpha.kubernetes.io/c: localhost/p
spec:
  hostNetwork: true
  hostPID: true
  hostIPC: true
  dnsPolicy: ClusterFirstWithHostNet
  securityContext: {runAsNonRoot: true, runAsUser: 5, seccompProfile: {type: Localhost, localhostProfile: p}}
  initContainers:
  - {name: s, image: busybox, restartPolicy: Always, ports: [{name: own, containerPort: 81}], livenessProbe: {httpGet: {port: own}}}
  containers:
  - name: c
    image: busybox
    ports: [{name: web, containerPort: 80, hostPort: 80}, {name: dns, containerPort: 80, protocol: UDP}]
    readinessProbe: {tcpSocket: {port: dns}}
    securityContext: {runAsUser: 0, runAsNonRoot: false, seccompProfile: {type: Localhost, localhostProfile: p}, appArmorProfile: {type: Localhost, localhostProfile: p}}
`

// others returns values of other types than n: some scalars, and some lists and objects.
func others(n *yaml.Node) [][]*yaml.Node {
	lists := [][]string{{"lots", "3"}, {"[3]", "[[x]]", "{x: y}"}}
	if n.ShortTag() == "!!str" {
		lists[0] = []string{"3", "true"}
	}
	if n.Kind == yaml.MappingNode {
		lists[1] = []string{"[3]"}
	}
	out := make([][]*yaml.Node, len(lists))
	for i, list := range lists {
		for _, text := range list {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(text), &n); err != nil {
				panic(err)
			}
			out[i] = append(out[i], n.Content[0])
		}
	}
	return out
}

// spots calls what for each value below a node, with its key, nil in a list.
func spots(n *yaml.Node, path string, what func(path string, value, key *yaml.Node)) {
	for i := 0; i < len(n.Content); i++ {
		at, key := fmt.Sprintf("%s[%d]", path, i), (*yaml.Node)(nil)
		if n.Kind == yaml.MappingNode {
			key = n.Content[i]
			i++
			at = path + "." + key.Value
		}
		what(at, n.Content[i], key)
		spots(n.Content[i], at, what)
	}
}

func TestOneMisreadValueGivesOneProblem(t *testing.T) {
	t.Run("rich", func(t *testing.T) { misreadEach(t, richYAML, 400) })
	t.Run("host", func(t *testing.T) { misreadEach(t, hostYAML, 60) })
}

// misreadEach gives each field of a pod a value that does not fit, and a name that there is not. atLeast
// is how many values that must be.
func misreadEach(t *testing.T, file string, atLeast int) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(file), &root); err != nil {
		t.Fatal(err)
	}
	decoded := func() []decode.Problem {
		text, err := yaml.Marshal(&root)
		if err != nil {
			t.Fatal(err)
		}
		return documents.Read("/m/x.yaml", text, documents.Options{NodeName: "node1", NameSuffix: true}).Problems
	}
	if problems := decoded(); len(problems) > 0 {
		t.Fatalf("the pod itself has problems:\n%s", words(problems))
	}
	misread, misspelt := 0, 0
	// one reports whether there is such a problem, which then is to be the only one.
	one := func(what string, count *int, begin string) bool {
		problems := decoded()
		if !slices.ContainsFunc(problems, func(p decode.Problem) bool { return strings.HasPrefix(p.Message, begin) }) {
			return false
		}
		if *count++; len(problems) > 1 {
			t.Errorf("%s:\n%s", what, words(problems))
		}
		return true
	}
	spots(root.Content[0], "", func(path string, value, key *yaml.Node) {
		was := *value
		for _, list := range others(value) {
			for _, other := range list {
				if *value = *other; one(decode.Got(path, other).Full, &misread, "expected ") {
					break
				}
			}
		}
		*value = was
		if key != nil && len(key.Value) > 3 {
			name := key.Value
			key.Value = name[:2] + "q" + name[2:]
			one(path+" is misspelt "+key.Value, &misspelt, "unknown field")
			key.Value = name
		}
	})
	if misread < atLeast || misspelt < atLeast/4 {
		t.Errorf("only %d values were misread and %d names misspelt", misread, misspelt)
	}
}

// What is said of a pod whose file holds a Secret quotes nothing of the file, whatever is
// wrong with the pod: the value that stands at a wrong place may be the Secret's.
func TestProblemsOfAPodBesideASecretQuoteNothing(t *testing.T) {
	t.Run("rich", func(t *testing.T) { markEach(t, richYAML, 1500) })
	t.Run("host", func(t *testing.T) { markEach(t, hostYAML, 200) })
}

// markEach gives each field of a pod values, and each field a name, that hold a mark, and
// looks for it in the problems. atLeast is how many must have some.
func markEach(t *testing.T, file string, atLeast int) {
	const mark = "90817263"
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(file), &root); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	look := func() {
		text, err := yaml.Marshal(&root)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"...)
		problems := documents.Read("/m/x.yaml", text, documents.Options{NodeName: "node1", NameSuffix: true}).Problems
		if len(problems) > 0 {
			wrong++
		}
		for _, p := range problems {
			if strings.Contains(p.Error(), mark) {
				t.Errorf("it quotes a value: %s", p.Error())
			}
		}
	}
	var values []*yaml.Node
	for _, text := range []string{"-" + mark, mark + "m", "'_/../ " + mark + "$(" + mark + ")'", "[" + mark + "]"} {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		values = append(values, n.Content[0])
	}
	spots(root.Content[0], "", func(path string, value, key *yaml.Node) {
		if path == ".kind" || path == ".metadata.name" {
			return // of what the problems are
		}
		was := *value
		for _, v := range values {
			*value = *v
			look()
		}
		*value = was
		if key != nil {
			name := key.Value
			key.Value = mark
			look()
			key.Value = name
		}
	})
	if wrong < atLeast {
		t.Errorf("only %d of them were wrong", wrong)
	}
}
