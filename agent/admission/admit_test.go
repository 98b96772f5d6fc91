package admission

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"monopod/agent/node"
)

// asked is a pod with one container; extra are lines of its spec, or of the
// container where they begin with "c:".
func asked(t *testing.T, name string, extra ...string) *v1.Pod {
	t.Helper()
	var container, spec strings.Builder
	for _, line := range extra {
		if inner, ok := strings.CutPrefix(line, "c:"); ok {
			container.WriteString(", " + strings.TrimSpace(inner))
			continue
		}
		spec.WriteString("  " + line + "\n")
	}
	text := "metadata: {name: " + name + ", namespace: default}\nspec:\n  nodeName: node1\n  containers: [{name: c, image: i" + container.String() + "}]\n" + spec.String()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// list makes a list of resources of pairs such as "cpu", "2".
func list(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for k := 0; k < len(pairs); k += 2 {
		out[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
	}
	return out
}

// someNode has 2 CPUs, 1000 bytes of memory and disk, and room for 3 pods.
func someNode() *node.Facts {
	capacity := list("cpu", "2", "memory", "1000", "ephemeral-storage", "1000", "pods", "3", "hugepages-2Mi", "0", "example.com/fpga", "1")
	return &node.Facts{Capacity: capacity, Allocatable: capacity, Kernel: node.Kernel{Major: 4, Minor: 15}, RuntimeAsked: true, StrictGroups: true,
		Labels: map[string]string{"kubernetes.io/hostname": "node1", "kubernetes.io/os": "linux", "disk": "ssd", "cores": "8"}}
}

func requests(what string) string { return "c: resources: {requests: {" + what + "}}" }
func ports(what string) string    { return "c: ports: [" + what + "]" }
func setting(name string) string {
	return "securityContext: {sysctls: [{name: " + name + ", value: '1'}]}"
}
func affinity(terms string) string {
	return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
}
func expression(key, operator, values string) string {
	return affinity("{matchExpressions: [{key: " + key + ", operator: " + operator + ", values: [" + values + "]}]}")
}

func TestAdmit(t *testing.T) {
	type lines = []string
	none := []lines(nil)
	rows := []struct {
		name   string
		pod    lines
		others []lines
		change func(*node.Facts)
		want   string // the reason, and a part of the message
	}{
		{"nothing special", lines{}, none, nil, ""},

		{"cpu that is there", lines{requests("cpu: 2")}, none, nil, ""},
		{"cpu beyond the node", lines{requests("cpu: 2001m")}, none, nil, "OutOfcpu: Node didn't have enough resource: cpu, requested: 2001m, used: 0, capacity: 2"},
		{"cpu beside others", lines{requests("cpu: 1")}, []lines{{requests("cpu: 500m")}, {requests("cpu: 600m")}}, nil, "OutOfcpu: Node didn't have enough resource: cpu, requested: 1, used: 1100m, capacity: 2"},
		{"cpu just beside another", lines{requests("cpu: 1")}, []lines{{requests("cpu: 1")}}, nil, ""},
		{"no request where nothing is left", lines{}, []lines{{requests("cpu: 3")}}, nil, ""},
		{"memory", lines{requests("memory: 1001")}, none, nil, "OutOfmemory: Node didn't have enough resource: memory, requested: 1001, used: 0, capacity: 1k"},
		{"more memory than a number can have", lines{requests("memory: 9223372036854775807"), "overhead: {memory: 9223372036854775807}"}, none, nil, "OutOfmemory: Node didn't have enough resource: memory, requested: 18446744073709551614, used: 0, capacity: 1k"},
		{"cpu is said before memory", lines{requests("memory: 1001, cpu: 3")}, none, nil, "OutOfcpu: "},
		{"memory is said before what is counted besides", lines{requests("memory: 1001, example.com/fpga: 2")}, none, nil, "OutOfmemory: "},
		{"a request of nothing where nothing is left", lines{requests("cpu: 0")}, []lines{{requests("cpu: 3")}}, nil, ""},
		{"a node with a label and of a name", lines{affinity("{matchExpressions: [{key: disk, operator: In, values: [ssd]}], matchFields: [{key: metadata.name, operator: In, values: [node1]}]}")}, none, nil, ""},
		{"any node but one", lines{affinity("{matchFields: [{key: metadata.name, operator: NotIn, values: [node2]}]}")}, none, nil, ""},
		{"any node but this", lines{affinity("{matchFields: [{key: metadata.name, operator: NotIn, values: [node1]}]}")}, none, nil, "NodeAffinity: "},
		{"a node by what its name cannot be asked for", lines{affinity("{matchFields: [{key: metadata.name, operator: Gt, values: [node0]}]}")}, none, nil, "NodeAffinity: "},
		{"disk", lines{requests("ephemeral-storage: 600")}, []lines{{requests("ephemeral-storage: 600")}}, nil, "OutOfephemeral-storage: "},
		{"overhead counts", lines{requests("cpu: 1500m"), "overhead: {cpu: 600m}"}, none, nil, "OutOfcpu: "},
		{"another's overhead counts", lines{requests("cpu: 1500m")}, []lines{{"overhead: {cpu: 600m}"}}, nil, "OutOfcpu: "},
		{"what the pod as a whole asks for stands", lines{requests("cpu: 3"), "resources: {requests: {cpu: 1}}"}, none, nil, ""},
		{"an init container is not added", lines{requests("cpu: 2"), "initContainers: [{name: i, image: i, resources: {requests: {cpu: 2}}}]"}, none, nil, ""},
		{"a big init container", lines{requests("cpu: 1"), "initContainers: [{name: i, image: i, resources: {requests: {cpu: 3}}}]"}, none, nil, "OutOfcpu: "},
		{"a sidecar is added", lines{requests("cpu: 1"), "initContainers: [{name: i, image: i, restartPolicy: Always, resources: {requests: {cpu: 1500m}}}]"}, none, nil, "OutOfcpu: "},
		{"no huge pages wanted", lines{requests("hugepages-2Mi: 0")}, none, nil, ""},
		{"huge pages that are not there", lines{requests("hugepages-2Mi: 2Mi")}, none, nil, "OutOfhugepages-2Mi: Node didn't have enough resource: hugepages-2Mi, requested: 2Mi, used: 0, capacity: 0"},
		{"huge pages of a size that the machine has not", lines{requests("hugepages-1Gi: 1Gi")}, none, nil, "OutOfhugepages-1Gi: "},
		{"huge pages that are there", lines{requests("hugepages-2Mi: 2Mi")}, none, func(f *node.Facts) { f.Allocatable = list("pods", "1", "hugepages-2Mi", "4Mi") }, ""},
		{"an extended resource that is known", lines{requests("example.com/fpga: 2")}, none, nil, "OutOfexample.com/fpga: "},
		{"an extended resource that nothing provides", lines{requests("example.com/gpu: 2")}, none, nil, "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 2, used: 0, capacity: 0"},
		{"none of it", lines{requests("example.com/gpu: 0")}, none, nil, ""},
		{"one that nothing provides, by an init container", lines{"initContainers: [{name: i, image: i, resources: {requests: {example.com/gpu: 1}}}]"}, none, nil, "OutOfexample.com/gpu: "},
		{"one that nothing provides, as overhead", lines{"overhead: {example.com/gpu: 1}"}, none, nil, "OutOfexample.com/gpu: "},
		{"room for one pod more", lines{}, []lines{{}, {}}, nil, ""},
		{"no room for one pod more", lines{}, []lines{{}, {}, {}}, nil, "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"},

		{"a free port", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{ports("{containerPort: 80, hostPort: 81}")}}, nil, ""},
		{"a port that is taken", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{ports("{containerPort: 9, hostPort: 80}")}}, nil, "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{"who has it is told", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{ports("{containerPort: 9, hostPort: 80}")}}, nil, "default/other0 has TCP port 80"},
		{"the same port of another protocol", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{ports("{containerPort: 80, hostPort: 80, protocol: UDP}")}}, nil, ""},
		{"TCP by name and by default", lines{ports("{containerPort: 80, hostPort: 80, protocol: TCP}")}, []lines{{ports("{containerPort: 80, hostPort: 80}")}}, nil, "NodePorts: "},
		{"the same port of another address", lines{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")}, []lines{{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.2}")}}, nil, ""},
		{"the same port of the same address", lines{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")}, []lines{{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")}}, nil, "NodePorts: "},
		{"any address against one", lines{ports("{containerPort: 80, hostPort: 80, hostIP: 0.0.0.0}")}, []lines{{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")}}, nil, "NodePorts: "},
		{"one address against any", lines{ports("{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")}, []lines{{ports("{containerPort: 80, hostPort: 80}")}}, nil, "NodePorts: "},
		{"container ports alone", lines{ports("{containerPort: 80}")}, []lines{{ports("{containerPort: 80}")}}, nil, ""},
		{"a sidecar's port", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{"initContainers: [{name: i, image: i, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}]"}}, nil, "NodePorts: "},
		{"an init container's port", lines{ports("{containerPort: 80, hostPort: 80}")}, []lines{{"initContainers: [{name: i, image: i, ports: [{containerPort: 80, hostPort: 80}]}]"}}, nil, ""},
		{"a port twice in one pod is for validation", lines{ports("{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}")}, none, nil, ""},
		{"ports come before resources", lines{ports("{containerPort: 80, hostPort: 80}"), requests("cpu: 9")}, []lines{{ports("{containerPort: 9, hostPort: 80}")}}, nil, "NodePorts: "},

		{"a label of the node", lines{"nodeSelector: {disk: ssd, kubernetes.io/os: linux}"}, none, nil, ""},
		{"another value", lines{"nodeSelector: {disk: hdd}"}, none, nil, "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"a label that is not there", lines{"nodeSelector: {gpu: ''}"}, none, nil, "NodeAffinity: "},
		{"one of two", lines{"nodeSelector: {disk: ssd, gpu: x}"}, none, nil, "NodeAffinity: "},
		{"affinity In", lines{expression("disk", "In", "hdd, ssd")}, none, nil, ""},
		{"affinity not In", lines{expression("disk", "In", "hdd")}, none, nil, "NodeAffinity: "},
		{"affinity NotIn", lines{expression("disk", "NotIn", "ssd")}, none, nil, "NodeAffinity: "},
		{"affinity NotIn of a label that is not there", lines{expression("gpu", "NotIn", "x")}, none, nil, ""},
		{"affinity Exists", lines{expression("disk", "Exists", "")}, none, nil, ""},
		{"affinity DoesNotExist", lines{expression("disk", "DoesNotExist", "")}, none, nil, "NodeAffinity: "},
		{"affinity Gt", lines{expression("cores", "Gt", "'4'")}, none, nil, ""},
		{"affinity Gt of the same", lines{expression("cores", "Gt", "'8'")}, none, nil, "NodeAffinity: "},
		{"affinity Lt", lines{expression("cores", "Lt", "'4'")}, none, nil, "NodeAffinity: "},
		{"affinity Gt of no number", lines{expression("cores", "Gt", "four")}, none, nil, "NodeAffinity: "},
		{"affinity with an unknown operator", lines{expression("disk", "Like", "s")}, none, nil, "NodeAffinity: "},
		{"one of two terms", lines{affinity("{matchExpressions: [{key: gpu, operator: Exists}]}, {matchExpressions: [{key: disk, operator: Exists}]}")}, none, nil, ""},
		{"both expressions of a term", lines{affinity("{matchExpressions: [{key: gpu, operator: Exists}, {key: disk, operator: Exists}]}")}, none, nil, "NodeAffinity: "},
		{"no terms", lines{affinity("")}, none, nil, "NodeAffinity: "},
		{"an empty term", lines{affinity("{}")}, none, nil, "NodeAffinity: "},
		{"the node's name", lines{affinity("{matchFields: [{key: metadata.name, operator: In, values: [node1]}]}")}, none, nil, ""},
		{"another node's name", lines{affinity("{matchFields: [{key: metadata.name, operator: In, values: [node2]}]}")}, none, nil, "NodeAffinity: "},
		{"selector and affinity", lines{"nodeSelector: {disk: hdd}", expression("disk", "Exists", "")}, none, nil, "NodeAffinity: "},
		{"preferred only", lines{"affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: gpu, operator: Exists}]}}]}}"}, none, nil, ""},

		{"a safe setting", lines{setting("net.ipv4.tcp_syncookies")}, none, nil, ""},
		{"a safe setting with slashes", lines{setting("net/ipv4/tcp_syncookies")}, none, nil, ""},
		{"an unsafe setting", lines{setting("net.core.somaxconn")}, none, nil, `SysctlForbidden: forbidden sysctl: "net.core.somaxconn" not allowlisted`},
		{"a setting that is safe from this kernel on", lines{setting("net.ipv4.tcp_rmem")}, none, nil, ""},
		{"a setting that is not safe on this kernel yet", lines{setting("net.ipv4.tcp_rmem")}, none, func(f *node.Facts) { f.Kernel = node.Kernel{Major: 4, Minor: 14} }, "SysctlForbidden: "},
		{"a setting that is safe on every later kernel", lines{setting("net.ipv4.tcp_rmem")}, none, func(f *node.Facts) { f.Kernel = node.Kernel{Major: 6, Minor: 1} }, ""},
		{"a setting that was allowed", lines{setting("net.core.somaxconn")}, none, func(f *node.Facts) { f.Sysctls = []string{"net.core.somaxconn"} }, ""},
		{"a setting that was allowed by prefix", lines{setting("kernel.msgmax")}, none, func(f *node.Facts) { f.Sysctls = []string{"kernel/msg*"} }, ""},
		{"a name that only begins like an allowed one", lines{setting("net.core.somaxconn2")}, none, func(f *node.Facts) { f.Sysctls = []string{"net.core.somaxconn"} }, "SysctlForbidden: "},
		{"a setting of the host's network", lines{setting("net.ipv4.tcp_syncookies"), "hostNetwork: true"}, none, nil, `SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled`},
		{"a setting of the host's IPC", lines{setting("kernel.shm_rmid_forced"), "hostIPC: true"}, none, nil, `not allowed with host IPC enabled`},
		{"an IPC setting on the host's network", lines{setting("kernel.shm_rmid_forced"), "hostNetwork: true"}, none, nil, ""},

		{"linux", lines{"os: {name: linux}"}, none, nil, ""},
		{"windows", lines{"os: {name: windows}"}, none, nil, "PodOSNotSupported: "},
		{"groups that the runtime supports", lines{"securityContext: {supplementalGroupsPolicy: Strict}"}, none, nil, ""},
		{"groups that it does not", lines{"securityContext: {supplementalGroupsPolicy: Strict}"}, none, func(f *node.Facts) { f.StrictGroups = false }, "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node"},
		{"groups before it was asked", lines{"securityContext: {supplementalGroupsPolicy: Strict}"}, none, func(f *node.Facts) { f.StrictGroups, f.RuntimeAsked = false, false }, "has not answered yet"},
		{"merged groups", lines{"securityContext: {supplementalGroupsPolicy: Merge}"}, none, func(f *node.Facts) { f.StrictGroups = false }, ""},
		{"AppArmor", lines{"c: securityContext: {appArmorProfile: {type: RuntimeDefault}}"}, none, nil, "AppArmor: Cannot enforce AppArmor"},
		{"AppArmor that is there", lines{"securityContext: {appArmorProfile: {type: RuntimeDefault}}"}, none, func(f *node.Facts) { f.AppArmor = true }, ""},
		{"AppArmor that is not wanted", lines{"securityContext: {appArmorProfile: {type: Unconfined}}"}, none, nil, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			facts := someNode()
			if row.change != nil {
				row.change(facts)
			}
			s := tableOn(t, facts)
			for k, extra := range row.others {
				s.runs(asked(t, "other"+string(rune('0'+k)), extra...))
			}
			got := ""
			if r := s.asks(asked(t, "new", row.pod...)); r != nil {
				got = r.Reason + ": " + r.Message.String()
			}
			if !strings.Contains(got, row.want) || (row.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestAdmitByTheLabelOfTheOS(t *testing.T) {
	for os, want := range map[string]bool{"linux": true, "windows": false} {
		p := asked(t, "new")
		p.Labels = map[string]string{"kubernetes.io/os": os}
		if r := tableOn(t, someNode()).asks(p); (r == nil) != want || r != nil && r.Reason != "PodOSSelectorNodeLabelDoesNotMatch" {
			t.Errorf("%s: %v", os, r)
		}
	}
}

// Of two versions of a pod one runs at a time: each resource counts as the
// greater asks for it, and ports count of both.
func TestAPlaceIsThatOfItsGreaterVersion(t *testing.T) {
	s := tableOn(t, someNode())
	s.runs(asked(t, "other", requests("cpu: 1500m"), ports("{containerPort: 80, hostPort: 80}")))
	s.runs(asked(t, "other", requests("cpu: 1, memory: 900"), ports("{containerPort: 80, hostPort: 81}")))
	for _, row := range []struct{ extra, want string }{
		{requests("cpu: 500m, memory: 100"), ""},
		{requests("cpu: 501m"), "OutOfcpu"},
		{requests("memory: 101"), "OutOfmemory"},
		{ports("{containerPort: 80, hostPort: 80}"), "NodePorts"},
		{ports("{containerPort: 80, hostPort: 81}"), "NodePorts"},
		{ports("{containerPort: 80, hostPort: 82}"), ""},
	} {
		got := ""
		if r := s.asks(asked(t, "new", row.extra)); r != nil {
			got = r.Reason
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.extra, got, row.want)
		}
	}
}
