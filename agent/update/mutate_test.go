package update

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mutator makes random edits of pods, field by field.
type mutator struct {
	*rand.Rand
	met map[string]bool // fields that were edited, as in PodSpec.Hostname
}

// site is a place that can be edited.
type site struct {
	field string
	edit  func()
}

// words are values of fields that have few.
var words = map[reflect.Type][]string{
	reflect.TypeFor[v1.DNSPolicy]():                {"ClusterFirst", "Default", "None", "ClusterFirstWithHostNet"},
	reflect.TypeFor[v1.RestartPolicy]():            {"Always", "OnFailure", "Never"},
	reflect.TypeFor[v1.ContainerRestartPolicy]():   {"Always", "OnFailure", "Never"},
	reflect.TypeFor[v1.PullPolicy]():               {"Always", "IfNotPresent", "Never"},
	reflect.TypeFor[v1.Protocol]():                 {"TCP", "UDP", "SCTP"},
	reflect.TypeFor[v1.SeccompProfileType]():       {"Unconfined", "RuntimeDefault", "Localhost"},
	reflect.TypeFor[v1.AppArmorProfileType]():      {"Unconfined", "RuntimeDefault", "Localhost"},
	reflect.TypeFor[v1.MountPropagationMode]():     {"None", "HostToContainer", "Bidirectional"},
	reflect.TypeFor[v1.RecursiveReadOnlyMode]():    {"Disabled", "IfPossible", "Enabled"},
	reflect.TypeFor[v1.ProcMountType]():            {"Default", "Unmasked"},
	reflect.TypeFor[v1.SupplementalGroupsPolicy](): {"Merge", "Strict"},
	reflect.TypeFor[v1.Signal]():                   {"SIGINT", "SIGUSR1"},
	reflect.TypeFor[v1.ResourceName]():             {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"},
	reflect.TypeFor[v1.ResourceResizeRestartPolicy](): {
		"NotRequired", "RestartContainer"},
}

// Keys and other texts that the code knows.
var texts = []string{"", "a", "b", "web:2", "10.0.0.1", "metadata.labels['tier']", "metadata.name", "limits.cpu", "requests.memory",
	"container.apparmor.security.beta.kubernetes.io/app", "kubernetes.io/ingress-bandwidth", "unconfined", "tier", "system-node-critical", "data"}

func (m *mutator) text(t reflect.Type) string {
	if list := words[t]; list != nil {
		return list[m.IntN(len(list))]
	}
	if m.IntN(3) == 0 {
		return fmt.Sprintf("x%d", m.IntN(1000))
	}
	return texts[m.IntN(len(texts))]
}

// fill gives a value a random content.
func (m *mutator) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse([]string{"0", "10m", "1", "1000m", "2", "64Mi", "128Mi", "1Gi"}[m.IntN(8)])))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(m.Int32N(100))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(m.IntN(2) == 0)
	case reflect.String:
		v.SetString(m.text(v.Type()))
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(int64(m.IntN(4)))
	case reflect.Uint8:
		v.SetUint(uint64(m.IntN(4)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 2))
		for range m.IntN(3) {
			m.grow(v, depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		m.enter(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if one := v.Field(i); one.CanSet() && depth > 0 && m.IntN(3) == 0 {
				m.fill(one, depth-1)
			}
		}
	}
}

func (m *mutator) grow(v reflect.Value, depth int) {
	one := reflect.New(v.Type().Elem()).Elem()
	m.fill(one, depth-1)
	v.Set(reflect.Append(v, one))
}

func (m *mutator) enter(v reflect.Value, depth int) {
	key, one := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	m.fill(key, depth)
	m.fill(one, depth)
	v.SetMapIndex(key, one)
}

// sites returns the edits that are possible below a value.
func (m *mutator) sites(field string, v reflect.Value) []site {
	anything := site{field, func() { m.fill(v, 3) }}
	clear := site{field, func() { v.SetZero() }}
	switch v.Interface().(type) {
	case resource.Quantity, intstr.IntOrString:
		return []site{anything}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []site{anything}
		}
		return append(m.sites(field, v.Elem()), clear)
	case reflect.Slice:
		all := []site{clear, {field, func() { m.grow(v, 3) }}}
		if v.Len() > 1 {
			all = append(all, site{field, func() { swap(v) }}, site{field, func() { v.Set(v.Slice(0, v.Len()-1)) }})
		}
		for i := range v.Len() {
			all = append(all, m.sites(field, v.Index(i))...)
		}
		return all
	case reflect.Map:
		all := []site{clear, {field, func() {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			m.enter(v, 3)
		}}}
		for _, key := range v.MapKeys() {
			all = append(all, site{field, func() { v.SetMapIndex(key, reflect.Value{}) }}, site{field, func() {
				one := reflect.New(v.Type().Elem()).Elem()
				m.fill(one, 1)
				v.SetMapIndex(key, one)
			}})
		}
		return all
	case reflect.Struct:
		var all []site
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				all = append(all, m.sites(v.Type().Name()+"."+f.Name, v.Field(i))...)
			}
		}
		return all
	}
	return []site{anything}
}

func swap(v reflect.Value) {
	first, second := reflect.ValueOf(v.Index(0).Interface()), reflect.ValueOf(v.Index(1).Interface())
	v.Index(0).Set(second)
	v.Index(1).Set(first)
}

// all returns the edits that are possible of a pod.
func (m *mutator) all(p *v1.Pod) []site {
	all := m.sites("PodSpec", reflect.ValueOf(&p.Spec).Elem())
	all = append(all, m.sites("ObjectMeta.Labels", reflect.ValueOf(&p.Labels).Elem())...)
	return append(all, m.sites("ObjectMeta.Annotations", reflect.ValueOf(&p.Annotations).Elem())...)
}

// fields returns those of the types that fields of several kinds are in: volumes have most of
// all fields, and one kind.
func (m *mutator) fields(p *v1.Pod) []string {
	var fields []string
	for _, s := range m.all(p) {
		if holder, _, _ := strings.Cut(s.field, "."); isEdited(holder) {
			fields = append(fields, s.field)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// edit makes an edit of a field; "": of any, or if the pod has none such.
func (m *mutator) edit(p *v1.Pod, field string) {
	all := m.all(p)
	one := slices.DeleteFunc(slices.Clone(all), func(s site) bool { return s.field != field })
	if len(one) == 0 {
		one = all
	}
	s := one[m.IntN(len(one))]
	m.met[s.field] = true
	s.edit()
}
