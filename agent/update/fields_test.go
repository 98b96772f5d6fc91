package update

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// alter makes another value of one; again makes a second one.
func alter(v reflect.Value, again bool) {
	switch v.Type() {
	case reflect.TypeFor[intstr.IntOrString]():
		v.Set(reflect.ValueOf(intstr.FromInt32(7)))
		return
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.Unix(7, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool() != again)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		alter(v.Elem(), again)
	case reflect.Slice:
		one := reflect.New(v.Type().Elem()).Elem()
		alter(one, again)
		v.Set(reflect.Append(v, one))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		if v.NumField() > 0 && v.Field(0).CanSet() {
			alter(v.Field(0), again)
		}
	default:
		panic(v.Type())
	}
}

// fieldsBelow says which fields do less than replace the pod: those of a newer API do.
const fieldsBelow = `
nothing ObjectMeta: DeletionTimestamp DeletionGracePeriodSeconds ManagedFields
live ObjectMeta: GenerateName SelfLink ResourceVersion Generation CreationTimestamp Labels Annotations OwnerReferences Finalizers
live PodSpec: TerminationGracePeriodSeconds ActiveDeadlineSeconds AutomountServiceAccountToken ImagePullSecrets SchedulerName Tolerations Priority ReadinessGates EnableServiceLinks PreemptionPolicy TopologySpreadConstraints
live Container: ResizePolicy LivenessProbe ReadinessProbe StartupProbe ImagePullPolicy Lifecycle
restart Container: Image Command Args WorkingDir Ports EnvFrom Env RestartPolicyRules VolumeMounts VolumeDevices TerminationMessagePath TerminationMessagePolicy Stdin StdinOnce TTY SecurityContext
restart SecurityContext: Capabilities SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile AppArmorProfile
live Lifecycle: PostStart PreStop
restart Lifecycle: StopSignal
`

func TestAFieldThatNothingLeavesOutReplacesThePod(t *testing.T) {
	below := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(fieldsBelow)) {
		of, names, _ := strings.Cut(line, ": ")
		kind, holder, _ := strings.Cut(of, " ")
		for _, name := range strings.Fields(names) {
			below[holder+"."+name] = kind
		}
	}
	for _, in := range []func(p *v1.Pod) any{
		func(p *v1.Pod) any { return &p.ObjectMeta },
		func(p *v1.Pod) any { return &p.Spec },
		func(p *v1.Pod) any { return p.Spec.SecurityContext },
		func(p *v1.Pod) any { return &p.Spec.Containers[0] },
		func(p *v1.Pod) any { return p.Spec.Containers[0].SecurityContext },
		func(p *v1.Pod) any { return p.Spec.Containers[0].Lifecycle },
	} {
		holder := reflect.TypeOf(in(pod(t))).Elem()
		for i := range holder.NumField() {
			name := holder.Name() + "." + holder.Field(i).Name
			want := below[name]
			if want == "" {
				want = "replace"
			}
			if got := kindOfField(t, in, i).String(); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
			delete(below, name)
		}
	}
	if len(below) > 0 {
		t.Errorf("no fields: %v", below)
	}
}

// kindOfField returns the most that another value of a field takes.
func kindOfField(t *testing.T, in func(p *v1.Pod) any, field int) (k Kind) {
	for _, again := range []bool{false, true} {
		old, edited := pod(t), pod(t)
		alter(reflect.ValueOf(in(edited)).Elem().Field(field), again)
		k = max(k, Compare(old, edited).Kind)
	}
	return k
}

// What the code compares field by field has no others.
func TestTheFieldsThatAreKnownAreAll(t *testing.T) {
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[v1.ResourceRequirements](): "Limits Requests Claims",
		reflect.TypeFor[v1.ContainerPort]():        "Name HostPort ContainerPort Protocol HostIP",
		reflect.TypeFor[v1.EnvVarSource]():         "FieldRef ResourceFieldRef ConfigMapKeyRef SecretKeyRef FileKeyRef",
	} {
		var names []string
		for i := range of.NumField() {
			names = append(names, of.Field(i).Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s has %s, known are %s", of.Name(), got, want)
		}
	}
}

// editedTypes are the types whose fields are not all alike.
var editedTypes = []any{metav1.ObjectMeta{}, v1.PodSpec{}, v1.PodSecurityContext{}, v1.Container{}, v1.SecurityContext{}, v1.Lifecycle{},
	v1.LifecycleHandler{}, v1.Probe{}, v1.ProbeHandler{}, v1.ExecAction{}, v1.HTTPGetAction{}, v1.HTTPHeader{}, v1.TCPSocketAction{},
	v1.GRPCAction{}, v1.SleepAction{}, v1.ContainerResizePolicy{}, v1.PodReadinessGate{}, v1.LocalObjectReference{}, v1.Toleration{},
	v1.TopologySpreadConstraint{}, metav1.LabelSelector{}, metav1.LabelSelectorRequirement{}, metav1.OwnerReference{},
	v1.ResourceRequirements{}, v1.VolumeMount{}, v1.ContainerPort{}, v1.EnvVar{}}

func isEdited(holder string) bool {
	return slices.ContainsFunc(editedTypes, func(of any) bool { return reflect.TypeOf(of).Name() == holder })
}
