package documents

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// reference matches a reference to a value, as in commands and env of Kubernetes; $$(NAME) is an
// escaped $(NAME).
var reference = regexp.MustCompile(`\$?\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// Fill has values from the command line or environment for the places that manifests leave open.
// The zero value and nil change nothing.
type Fill struct {
	// Values replace $(NAME) in all strings of a pod; nil is a name without a value: a reference to
	// it is an error. Other names are left to the containers' environment.
	Values map[string]*string
	// Images are the images of containers, by container name.
	Images map[string]string

	used map[string]bool // of Images
}

// Unused returns the containers of Images that no pod had, sorted.
func (f *Fill) Unused() []string {
	names := slices.Sorted(maps.Keys(f.Images))
	return slices.DeleteFunc(names, func(name string) bool { return f.used[name] })
}

// pod fills in one pod. It calls missing for each field that refers to a name without a value.
func (f *Fill) pod(pod *v1.Pod, missing func(field, name string)) {
	if f == nil {
		return
	}
	for _, all := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range all {
			f.image(&all[k])
		}
	}
	if len(f.Values) > 0 {
		g := filler{f.Values, missing}
		g.value("metadata", reflect.ValueOf(&pod.ObjectMeta).Elem())
		g.value("spec", reflect.ValueOf(&pod.Spec).Elem())
	}
}

func (f *Fill) image(c *v1.Container) {
	image, given := f.Images[c.Name]
	if !given {
		return
	}
	if f.used == nil {
		f.used = map[string]bool{}
	}
	c.Image, f.used[c.Name] = image, true
}

type filler struct {
	values  map[string]*string
	missing func(field, name string)
}

// value fills in all strings of a value. It must be settable, or hold no string itself.
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

// fields fills in the fields of a struct that can be set: quantities and times cannot.
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
			return "x" // so that the rest of the text can be checked
		}
		return *value
	})
}
