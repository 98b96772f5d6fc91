package manifests

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// reference is how a manifest asks for a value, as in commands and env of Kubernetes;
// $$(NAME) stands for $(NAME) itself.
var reference = regexp.MustCompile(`\$?\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// fillIn replaces references to the names of values in all strings of a pod; nil is a name
// without a value, for which missing is called with the field that asks for it. Other
// references are left to the containers' environment.
func fillIn(pod *v1.Pod, values map[string]*string, missing func(field, name string)) {
	if len(values) == 0 {
		return
	}
	f := filler{values, missing}
	f.value("metadata", reflect.ValueOf(&pod.ObjectMeta).Elem())
	f.value("spec", reflect.ValueOf(&pod.Spec).Elem())
}

type filler struct {
	values  map[string]*string
	missing func(field, name string)
}

// value fills what a value holds. It must be settable, or hold no string itself.
func (f *filler) value(at string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f.value(at, v.Elem())
		}
	case reflect.String:
		v.SetString(f.text(at, v.String()))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for k := range v.Len() {
			f.value(fmt.Sprintf("%s[%d]", at, k), v.Index(k))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if one := v.MapIndex(key); one.Kind() == reflect.String {
				v.SetMapIndex(key, reflect.ValueOf(f.text(fmt.Sprintf("%s[%s]", at, key), one.String())).Convert(one.Type()))
			}
		}
	case reflect.Struct:
		f.fields(at, v)
	}
}

// fields fills the fields of a struct that can be set: quantities and times cannot.
func (f *filler) fields(at string, v reflect.Value) {
	for k := range v.NumField() {
		field := v.Type().Field(k)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case name == "" && options == "inline":
			f.value(at, v.Field(k))
		case name != "":
			f.value(at+"."+name, v.Field(k))
		}
	}
}

// text replaces the references in a text.
func (f *filler) text(at, text string) string {
	if !strings.Contains(text, "$(") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := strings.TrimSuffix(strings.TrimLeft(ref, "$("), ")")
		value, known := f.values[name]
		switch {
		case !known || strings.HasPrefix(ref, "$$"):
			return ref
		case value == nil:
			f.missing(at, name)
			return ref
		}
		return *value
	})
}

// setImages sets the images of containers by their names, and deletes those that it found
// from unused.
func setImages(spec *v1.PodSpec, images map[string]string, unused map[string]bool) {
	for _, all := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for k := range all {
			if image, ok := images[all[k].Name]; ok {
				all[k].Image = image
				delete(unused, all[k].Name)
			}
		}
	}
}
