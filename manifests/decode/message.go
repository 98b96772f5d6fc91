package decode

import (
	"reflect"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Message is the text of a problem with a document.
type Message struct {
	Full  string // may quote the document
	Plain string // the same without words from the document; "": not possible
}

// Fixed returns a message that quotes nothing.
func Fixed(words string) Message { return Message{words, words} }

// unsaid replaces a text that would have to quote the document.
const unsaid = "is not valid; why would quote this file, which may hold a Secret: put Secrets into a file of their own, and it is said"

// from returns the text that may be shown for a file.
func (t Message) from(p *privacy) string {
	switch {
	case !p.isKept():
		return t.Full
	case t.Plain == "":
		return unsaid
	}
	return t.Plain
}

// Problem returns a problem at a node of an object.
func (o Object) Problem(file string, n *yaml.Node, field string, t Message) Problem {
	p := Problem{File: file, Line: n.Line + o.Line, Column: n.Column, Field: field, Message: t.from(o.privacy())}
	if o.privacy().isKept() && o.doc != nil {
		p.Field = openPath(o.doc.root, field, o.privacy().names())
	}
	return p
}

func (o Object) privacy() *privacy {
	if o.doc == nil {
		return nil
	}
	return o.doc.privacy
}

// openPath returns a path up to the first name in it that comes from the file: a value may have
// slipped into the place of a key.
func openPath(root *yaml.Node, path string, known map[string]bool) string {
	at, open := root, 0
	for rest := path; rest != ""; open = len(path) - len(rest) {
		var name string
		name, rest = nextStep(rest)
		isIndex := at != nil && Follow(at).Kind == yaml.SequenceNode
		if !isIndex && !known[name] {
			break
		}
		if at != nil {
			at = below(at, name)
		}
	}
	return path[:open]
}

// below returns the value below another by name or index; nil: there is none.
func below(n *yaml.Node, name string) *yaml.Node {
	if at, value := find(n, name); at != n {
		return value
	}
	return nil
}

// kubernetesNames are the names of all fields that a manifest may have.
var kubernetesNames = sync.OnceValue(func() map[string]bool {
	names := namesIn(reflect.TypeFor[v1.PodTemplateList](), reflect.TypeFor[v1.Pod](), reflect.TypeFor[v1.Secret](),
		reflect.TypeFor[v1.ConfigMap](), reflect.TypeFor[v1.PersistentVolumeClaim]())
	for _, ofWorkloads := range []string{"volumeClaimTemplates", "replicas", "backoffLimit", "selector"} {
		names[ofWorkloads] = true
	}
	return names
})

// namesIn returns the names of the fields of types, with nested ones.
func namesIn(types ...reflect.Type) map[string]bool {
	names, seen := map[string]bool{}, map[reflect.Type]bool{}
	for _, t := range types {
		addNames(names, t, seen)
	}
	return names
}

// addNames adds the names of the fields of a type, with nested ones.
func addNames(names map[string]bool, t reflect.Type, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for k := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(k).Tag.Get("json"), ","); name != "" {
			names[name] = true
		}
		addNames(names, t.Field(k).Type, seen)
	}
}

// Invalid returns the message of an error of Kubernetes' validation whose detail is fixed words.
func Invalid(e *field.Error) Message {
	plain := *e
	plain.BadValue = field.OmitValueType{}
	return Message{e.ErrorBody(), plain.ErrorBody()}
}
