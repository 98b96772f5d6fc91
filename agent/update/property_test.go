package update

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/cgroups"
	"monopod/manifests/defaults"
)

// view is what the runtime and the kernel get of a pod.
type view struct {
	sandbox string            // without labels, annotations, cpu and memory
	whole   string            // cpu and memory of the pod
	order   []string          // of the containers
	configs map[string]string // of containers, without cpu and memory
	amounts map[string]string // cpu and memory of containers
	scores  map[string]int64  // of containers, when the machine lacks memory
	all     string            // all of it
}

func host() *podspec.Host {
	return &podspec.Host{
		Name: "node1", Instance: "i1", Root: "/root", PodLogs: "/logs", HostIPs: []string{"192.0.2.2"},
		Resolv:     podspec.ResolvConf{Servers: []string{"10.0.0.10"}, Searches: []string{"corp.example"}},
		ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local",
		Memory: 1 << 30, HugePageSizes: []string{"2MB"}, Cgroups: cgroups.Names{Driver: cgroups.Cgroupfs}, CgroupV2: true, SwapController: true,
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

func jsonOf(v any) string {
	out, err := json.Marshal(v)
	return string(out) + fmt.Sprint(err)
}

// viewOf returns what the pod is for the runtime. What a pod may not have is an error that
// is part of the view.
func viewOf(p *v1.Pod) view {
	v, n := view{configs: map[string]string{}, amounts: map[string]string{}, scores: map[string]int64{}}, host()
	p = p.DeepCopy()
	p.Status = v1.PodStatus{}
	volumes := map[string]volume.Mount{}
	for i := range p.Spec.Volumes {
		volumes[p.Spec.Volumes[i].Name] = volume.Mount{HostPath: jsonOf(p.Spec.Volumes[i])}
	}
	maps.DeleteFunc(p.Annotations, func(key, _ string) bool { return slices.Contains(ours, key) })
	v.all = jsonOf([]any{p.Labels, p.Annotations, p.Spec.TerminationGracePeriodSeconds, p.Spec.ActiveDeadlineSeconds})
	v.sandboxOf(p, n)
	v.sandbox += jsonOf(volumes)
	v.whole += jsonOf(podspec.PodCgroup(p, n))
	for _, c := range podspec.AllContainers(p) {
		in := podspec.Input{Attempt: 1, Image: "sha256:" + c.Image, PodIPs: []string{"10.1.1.1"}, Volumes: volumes, ImageUID: new(int64(5)),
			HostsPath: string(podspec.EtcHosts(p, []string{"10.1.1.1"}, n)), TerminationLogPath: "/log", RecursiveReadOnly: true}
		v.containerOf(p, c, in, n)
		v.all += jsonOf([]any{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.ImagePullPolicy})
	}
	v.all += v.sandbox + v.whole + jsonOf(v.order) + jsonOf(v.configs) + jsonOf(v.amounts)
	return v
}

func (v *view) sandboxOf(p *v1.Pod, n *podspec.Host) {
	config, err := podspec.SandboxConfig(p, 0, n)
	if err != nil {
		v.sandbox = err.Error()
		return
	}
	config.Labels, config.Annotations = nil, nil
	// Runtimes have no use for ports that are not the machine's.
	config.PortMappings = slices.DeleteFunc(config.PortMappings, func(m *rt.PortMapping) bool { return m.HostPort == 0 })
	v.whole = jsonOf(config.Linux.Resources)
	config.Linux.Resources = nil
	v.sandbox = jsonOf(config)
}

func (v *view) containerOf(p *v1.Pod, c *v1.Container, in podspec.Input, n *podspec.Host) {
	v.order = append(v.order, c.Name)
	subPaths, err := podspec.SubPaths(p, c, in, n)
	in.SubPaths = subPaths
	if err != nil {
		v.configs[c.Name] = err.Error()
		return
	}
	config, err := podspec.ContainerConfig(p, c, in, n)
	if err != nil {
		v.configs[c.Name] = err.Error()
		return
	}
	v.all += jsonOf(config)
	v.scores[c.Name] = config.Linux.Resources.OomScoreAdj
	config.Linux.Resources.OomScoreAdj = 0 // which the runtime cannot change later on
	v.amounts[c.Name] = jsonOf(config.Linux.Resources)
	config.Linux.Resources = nil
	// Only an agent that has lost its checkpoint reads these two.
	delete(config.Annotations, podspec.AnnPreStop)
	delete(config.Annotations, podspec.AnnTerminationGrace)
	for _, m := range config.Mounts {
		if m.Image != nil {
			m.Image.Annotations = nil // of the pod
		}
	}
	for _, e := range config.Envs { // a value that is looked up stays until the container restarts
		if i := slices.IndexFunc(c.Env, func(x v1.EnvVar) bool { return x.Name == e.Key }); sourceOf(c, c.Env[i].ValueFrom) != "" {
			e.Value = []byte(jsonOf(c.Env[i]))
		}
	}
	v.configs[c.Name] = jsonOf(config)
}

// holes returns what is wrong with a verdict, given what the runtime gets of both versions.
func holes(v Verdict, old, new *v1.Pod) []string {
	var out []string
	a, b := viewOf(old), viewOf(new)
	least := func(k Kind, what string, differs bool) {
		if differs && v.Kind < k {
			out = append(out, fmt.Sprintf("%s differs, which is %v at least", what, k))
		}
	}
	least(Live, "something", a.all != b.all)
	least(Replace, "the sandbox", a.sandbox != b.sandbox)
	least(Resize, "what the pod may use", a.whole != b.whole)
	least(Replace, "the set of containers", !slices.Equal(a.order, b.order))
	for _, name := range a.order {
		least(Resize, "what "+name+" may use", a.amounts[name] != b.amounts[name])
		least(Resize, "the score of "+name, a.scores[name] != b.scores[name])
		least(Restart, "container "+name, a.configs[name] != b.configs[name])
		if v.Kind == Replace {
			continue
		}
		i := slices.IndexFunc(v.Containers, func(c Container) bool { return c.Name == name })
		switch {
		case a.configs[name] != b.configs[name] && (i < 0 || v.Containers[i].Kind < Restart):
			out = append(out, "container "+name+" differs and does not restart")
		case a.amounts[name] != b.amounts[name] && i < 0:
			out = append(out, "container "+name+" may use something else and is not resized")
		}
	}
	return out
}

// fit returns whether a pod has what each pod has.
func fit(p *v1.Pod) bool {
	seen := map[string]bool{}
	for _, c := range podspec.AllContainers(p) {
		if c.Name == "" || seen[c.Name] {
			return false
		}
		seen[c.Name] = true
	}
	clear(seen)
	for i := range p.Spec.Volumes {
		if name := p.Spec.Volumes[i].Name; name == "" || seen[name] {
			return false
		} else {
			seen[name] = true
		}
	}
	return len(p.Spec.Containers) > 0
}

func diffWords(old, new *v1.Pod) string {
	x, y := jsonOf(old), jsonOf(new)
	return shorten(x, y)
}

// Whatever differs for the runtime is told, whichever fields it comes from.
func TestNoEditEscapes(t *testing.T) {
	m := &mutator{rand.New(rand.NewPCG(1, 2)), map[string]bool{}}
	kinds := map[Kind]int{}
	fields := m.fields(pod(t))
	for round := range 7 * len(fields) {
		old := pod(t)
		for range m.IntN(4) { // a pod that is not always the same
			m.edit(old, fields[m.IntN(len(fields))])
		}
		defaults.Pod(old)
		edited := old.DeepCopy()
		m.edit(edited, fields[round%len(fields)])
		if round%4 == 0 {
			m.edit(edited, "")
		}
		defaults.Pod(edited)
		if !fit(old) || !fit(edited) {
			continue
		}
		v := Compare(old, edited)
		kinds[v.Kind]++
		if wrong := holes(v, old, edited); len(wrong) > 0 {
			t.Fatalf("round %d: %v %v: %s\n%s", round, v.Kind, v.Fields, strings.Join(wrong, "; "), diffWords(old, edited))
		}
		if again := Compare(old, old.DeepCopy()); again.Kind != Nothing {
			t.Fatalf("round %d: a copy is %v: %v", round, again.Kind, again.Fields)
		}
		if back := Compare(edited, old); (back.Kind == Nothing) != (v.Kind == Nothing) {
			t.Fatalf("round %d: %v %v, and the other way round %v %v", round, v.Kind, v.Fields, back.Kind, back.Fields)
		}
	}
	for k := Nothing; k <= Replace; k++ {
		if kinds[k] < 5 {
			t.Errorf("%v came up only %d times", k, kinds[k])
		}
	}
	for _, of := range []any{v1.PodSpec{}, v1.Container{}, v1.SecurityContext{}, v1.PodSecurityContext{}, v1.VolumeMount{}, v1.ContainerPort{}, v1.Lifecycle{}} {
		holder := reflect.TypeOf(of)
		for i := range holder.NumField() {
			if f := holder.Name() + "." + holder.Field(i).Name; !metAny(m, f) {
				t.Errorf("%s was never edited", f)
			}
		}
	}
}

// metAny reports whether a field was edited, or one in it.
func metAny(m *mutator, field string) bool {
	return m.met[field] || cmp.Or(field == "Container.Lifecycle" && m.met["Lifecycle.PreStop"], field == "Container.SecurityContext" && m.met["SecurityContext.Privileged"],
		field == "Container.Resources" && m.met["ResourceRequirements.Limits"])
}
