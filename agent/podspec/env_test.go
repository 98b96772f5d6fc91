package podspec

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "a", "B": "$(A)", "EMPTY": ""}
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"$(A)", "a"},
		{"x$(A)$(A)y", "xaay"},
		{"$(EMPTY)", ""},
		{"$(NONE)", "$(NONE)"},
		{"$$(A)", "$(A)"},
		{"$$$(A)", "$a"},
		{"$$$$(A)", "$$(A)"},
		{"$(B)", "$(A)"},
		{"$(A", "$(A"},
		{"$A ${A} $", "$A ${A} $"},
		{"$()", "$()"},
		{"$($(A))", "$($(A))"},
	} {
		got, err := expand(c.in, 1000, func(n string) (string, bool) { v, ok := vars[n]; return v, ok })
		if err != nil {
			t.Error(err)
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAnExpansionIsAsLongAsItMayBe(t *testing.T) {
	vars := func(n string) (string, bool) { return "aa", true }
	for in, want := range map[string]string{"$(A)$(A)": "aaaa", "$(A)bb": "aabb", "": ""} {
		if got, err := expand(in, 4, vars); got != want || err != nil {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"$(A)$(A)b", "$(A)bbb", "bbb$(A)"} {
		if got, err := expand(in, 4, vars); err == nil {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func field(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
}

func amount(of, divisor string) *v1.EnvVarSource {
	s := &v1.ResourceFieldSelector{Resource: of}
	if divisor != "" {
		s.Divisor = resource.MustParse(divisor)
	}
	return &v1.EnvVarSource{ResourceFieldRef: s}
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []v1.EnvVar
		want string
	}{
		{"chain sees earlier values only", []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)-2"}, {Name: "C", Value: "$(D)"}, {Name: "D", Value: "$$(A)"}, {Name: "E", Value: "$(B)$(B)"}},
			"A=1 B=1-2 C=$(D) D=$(A) E=1-21-2"},
		{"a later one overrides in place", []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "x"}, {Name: "A", Value: "$(A)2"}}, "A=12 B=x"},
		{"fields", []v1.EnvVar{
			{Name: "N", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")}, {Name: "U", ValueFrom: field("metadata.uid")},
			{Name: "L", ValueFrom: field("metadata.labels['app']")}, {Name: "A", ValueFrom: field("metadata.annotations['k.io/a']")}, {Name: "X", ValueFrom: field("metadata.labels['none']")},
			{Name: "NODE", ValueFrom: field("spec.nodeName")}, {Name: "HOST", ValueFrom: field("spec.host")}, {Name: "SA", ValueFrom: field("spec.serviceAccountName")}},
			"N=web-node1 NS=default U=u1 L=web A=$(N) X= NODE=node1 HOST=node1 SA="},
		{"addresses, the node's primary family first", []v1.EnvVar{{Name: "H", ValueFrom: field("status.hostIP")}, {Name: "P", ValueFrom: field("status.podIP")}, {Name: "PS", ValueFrom: field("status.podIPs")}},
			"H=192.0.2.2 P=10.1.0.2 PS=10.1.0.2,fd00::2"},
		{"amounts are rounded up", []v1.EnvVar{
			{Name: "LC", ValueFrom: amount("limits.cpu", "")}, {Name: "LCM", ValueFrom: amount("limits.cpu", "1m")}, {Name: "LM", ValueFrom: amount("limits.memory", "")},
			{Name: "LMG", ValueFrom: amount("limits.memory", "1Gi")}, {Name: "RC", ValueFrom: amount("requests.cpu", "1m")}, {Name: "RE", ValueFrom: amount("requests.ephemeral-storage", "")}},
			"LC=2 LCM=1500 LM=67108864 LMG=1 RC=250 RE=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) {
				p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"k.io/a": "$(N)"}
				p.Spec.Containers[0].Env = c.env
				p.Spec.Containers[0].Resources = resources("250m", "1500m", "32Mi", "64Mi")
			})
			e, err := environment(p, &p.Spec.Containers[0], Input{PodIPs: []string{"fd00::2", "10.1.0.2", "10.1.0.3"}}, specNode())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, kv := range e.list() {
				got = append(got, kv.Key+"="+string(kv.Value))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

func TestMissingLimitsAreThePodsOrTheNodes(t *testing.T) {
	p := specPod()
	get := func(of string) string {
		t.Helper()
		s, err := resourceValue(p, &p.Spec.Containers[0], amount(of, "").ResourceFieldRef, specNode())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if cpu, memory := get("limits.cpu"), get("limits.memory"); cpu != "2" || memory != "1073741824" {
		t.Errorf("node: got %s, %s", cpu, memory)
	}
	r := resources("", "3", "", "64Mi")
	p.Spec.Resources = &r
	if cpu, memory := get("limits.cpu"), get("limits.memory"); cpu != "3" || memory != "67108864" {
		t.Errorf("pod: got %s, %s", cpu, memory)
	}
}

// Of what the node has, only cpu, memory and disk limit a container that is not limited.
func TestMissingLimitsOfTheNode(t *testing.T) {
	n := specNode()
	n.Allocatable = v1.ResourceList{"ephemeral-storage": resource.MustParse("5Gi"), "hugepages-2Mi": resource.MustParse("4Mi")}
	p := specPod()
	for of, want := range map[string]string{"limits.ephemeral-storage": "5368709120", "limits.hugepages-2Mi": "0"} {
		if got, err := resourceValue(p, &p.Spec.Containers[0], amount(of, "").ResourceFieldRef, n); got != want || err != nil {
			t.Errorf("%s: got %s, %v", of, got, err)
		}
	}
}

// A pod's first address is of the machine's family.
func TestThePrimaryAddressOfAPod(t *testing.T) {
	in := Input{PodIPs: []string{"10.1.0.2", "fd00::2"}}
	for _, row := range []struct{ host, want []string }{
		{[]string{"192.0.2.2"}, []string{"10.1.0.2", "fd00::2"}},
		{[]string{"fd00::1"}, []string{"fd00::2", "10.1.0.2"}},
		{nil, []string{"10.1.0.2", "fd00::2"}},
	} {
		n := specNode()
		n.HostIPs = row.host
		if got := podIPs(specPod(), in, n); !slices.Equal(got, row.want) {
			t.Errorf("machine %v: got %v", row.host, got)
		}
	}
	if got, err := fieldValue(specPod(), "status.podIP", Input{}, specNode()); got != "" || err != nil {
		t.Errorf("a pod without an address has %q, %v", got, err)
	}
}

func TestACommandIsExpandedWithFixedValues(t *testing.T) {
	vars := []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2", ValueFrom: field("metadata.name")}}
	for in, want := range map[string]string{"plain": "plain", "$(A)": "1", "$(B)": "$(B)"} {
		if got, err := ExpandStatic([]string{in}, vars); got[0] != want || err != nil {
			t.Errorf("%s: got %s, %v", in, got, err)
		}
	}
}

func TestHostNetworkPodsHaveTheHostsAddress(t *testing.T) {
	p := specPod(func(p *v1.Pod) { p.Spec.HostNetwork = true })
	if got, err := fieldValue(p, "status.podIP", Input{}, specNode()); got != "192.0.2.2" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEnvErrorsKeepValuesToThemselves(t *testing.T) {
	for _, c := range []struct {
		name string
		v    v1.EnvVar
		want string
	}{
		{"unknown field", v1.EnvVar{ValueFrom: field("spec.secret")}, "env X: unsupported fieldPath: spec.secret"},
		{"unknown container", v1.EnvVar{ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "nope", Resource: "limits.cpu"}}}, "env X: container nope not found"},
		{"no source", v1.EnvVar{ValueFrom: &v1.EnvVarSource{}}, "env X: valueFrom names no source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.v.Name = "X"
			p := specPod(func(p *v1.Pod) {
				p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}, c.v}
			})
			_, err := ContainerConfig(p, &p.Spec.Containers[0], Input{}, specNode())
			if errText(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	n := specNode()
	n.HostIPs = nil
	if _, err := fieldValue(specPod(), "status.hostIP", Input{}, n); err == nil {
		t.Error("a node without address has one")
	}
}

func TestCommandAndArgsSeeTheWholeEnvironment(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		c := &p.Spec.Containers[0]
		c.Command, c.Args = []string{"sh", "$(A)"}, []string{"$$(A) $(NONE)"}
		c.Env = []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
	})
	c, err := ContainerConfig(p, &p.Spec.Containers[0], Input{}, specNode())
	if err != nil {
		t.Fatal(err)
	}
	if c.Command[1] != "2" || c.Args[0] != "$(A) $(NONE)" || p.Spec.Containers[0].Command[1] != "$(A)" {
		t.Errorf("got %q %q, pod %q", c.Command, c.Args, p.Spec.Containers[0].Command)
	}
}
