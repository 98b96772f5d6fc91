package update

import (
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// structsIn returns the structs that a value of a type may hold itself.
func structsIn(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || opaque(reflect.New(t).Elem()) {
		return nil
	}
	return t
}

// A field of a newer API is looked at before it counts for less than its holder.
func TestEveryFieldHasAKind(t *testing.T) {
	done := map[reflect.Type]bool{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		if done[of] {
			return
		}
		done[of] = true
		kinds := kindsOf(of)
		for i := range of.NumField() {
			f := of.Field(i)
			k, known := kinds[f.Name]
			if !known {
				t.Errorf("%s.%s has no kind", of.Name(), f.Name)
			}
			within := structsIn(f.Type)
			if within == nil || k == Nothing || k >= Resize || f.Name == "Resources" {
				continue
			}
			if k == ruled && !strings.HasSuffix(f.Name, "ontainers") {
				continue // the rule has the fields
			}
			look(within)
		}
	}
	look(reflect.TypeFor[metav1.ObjectMeta]())
	look(reflect.TypeFor[v1.PodSpec]())
	for of := range kindTable() {
		if !done[of] {
			t.Errorf("%s has kinds, and no pod has it where they count", of.Name())
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[v1.Container](), reflect.TypeFor[v1.SecurityContext](), reflect.TypeFor[v1.PodSecurityContext](), reflect.TypeFor[v1.Probe]()} {
		if !done[of] {
			t.Errorf("%s was not looked at", of.Name())
		}
	}
}

// The rules know the fields of what they compare themselves.
func TestTheRulesKnowTheirFields(t *testing.T) {
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
			t.Errorf("%s has %s, the rules know %s", of.Name(), got, want)
		}
	}
}

func TestEveryKindIsOfAField(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range fieldKinds {
		of := reflect.TypeOf(row.of)
		for _, name := range strings.Fields(row.fields) {
			if _, there := of.FieldByName(name); !there {
				t.Errorf("%s has no field %s", of.Name(), name)
			}
			if seen[of.Name()+"."+name] {
				t.Errorf("%s.%s has two kinds", of.Name(), name)
			}
			seen[of.Name()+"."+name] = true
		}
	}
}

// A name that is spelt wrong would mean nothing.
func TestWhatIsUnsetIsAField(t *testing.T) {
	for _, of := range []any{v1.PodSpec{}, v1.Container{}, v1.SecurityContext{}, v1.VolumeMount{}} {
		holder := reflect.TypeOf(of)
		for i := range holder.NumField() {
			f := holder.Field(i)
			if value := unset(holder.Name() + "." + f.Name); value != nil && reflect.TypeOf(value) != f.Type {
				t.Errorf("%s.%s is a %s, not a %T", holder.Name(), f.Name, f.Type, value)
			}
		}
	}
}
