package documents

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
	"monopod/manifests/validate"
)

// Kinds of objects that pods refer to.
const (
	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)

// ObjectKey names a ConfigMap or Secret.
type ObjectKey struct{ Kind, Namespace, Name string }

// String returns such as "ConfigMap default/app".
func (k ObjectKey) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// Compare orders keys by kind, namespace and name.
func (k ObjectKey) Compare(other ObjectKey) int {
	return cmp.Or(strings.Compare(k.Kind, other.Kind), strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Name, other.Name))
}

// Object is an accepted ConfigMap or Secret, of which one is set, and its source. It is shared and
// must not be changed. It prints as its name, never its values.
type Object struct {
	ConfigMap *v1.ConfigMap
	Secret    *v1.Secret
	File      string // absolute path of the manifest, or the URL's name
	digest    string
}

// NewObject returns an object that the file at path is known to give with that content.
func NewObject(m *v1.ConfigMap, s *v1.Secret, path string) *Object {
	o := &Object{ConfigMap: m, Secret: s, File: path}
	text, _ := json.Marshal([]any{m, s}) // these types always marshal
	o.digest = digest(text)
	return o
}

// Key returns the object's key.
func (o *Object) Key() ObjectKey {
	if o.Secret != nil {
		return ObjectKey{Secret, o.Secret.Namespace, o.Secret.Name}
	}
	return ObjectKey{ConfigMap, o.ConfigMap.Namespace, o.ConfigMap.Name}
}

func (o *Object) String() string { return o.Key().String() }

// GoString keeps %#v from printing values.
func (o *Object) GoString() string { return o.String() }

// Same reports whether two objects have the same content.
func (o *Object) Same(other *Object) bool { return o.digest == other.digest }

// In returns the object as given by the file at path.
func (o *Object) In(path string) *Object {
	if o.File == path {
		return o
	}
	moved := *o
	moved.File = path
	return &moved
}

// MayBecome reports whether next may replace the object as its next version: the data of an
// immutable object cannot change, nor can it become mutable.
func (o *Object) MayBecome(next *Object) bool {
	immutable, data, its := o.content()
	_, other, itsOther := next.content()
	still, _, _ := next.content()
	return !immutable || still && data == other && its == itsOther
}

// content returns whether the object is immutable, a digest of its data, and its type.
func (o *Object) content() (immutable bool, data string, its v1.SecretType) {
	isTrue := func(b *bool) bool { return b != nil && *b }
	if s := o.Secret; s != nil {
		text, _ := json.Marshal(s.Data)
		return isTrue(s.Immutable), digest(text), s.Type
	}
	text, _ := json.Marshal([]any{o.ConfigMap.Data, o.ConfigMap.BinaryData})
	return isTrue(o.ConfigMap.Immutable), digest(text), ""
}

// FoundObject is an accepted object with the place of its document.
type FoundObject struct {
	*Object
	Line, Column int
}

// config decodes a ConfigMap or Secret.
func (f *fileDecoder) config(o decode.Object, kind string) {
	r := f.reader()
	var object *Object
	report := func(at string, m decode.Message) {
		if !r.IsMisread(o, at) {
			r.Report(o, decode.Find(o.Node, at), decode.Join(o.Path, at), m, false)
		}
	}
	if kind == Secret {
		s := &v1.Secret{}
		r.Read(o, s)
		for _, e := range validate.Secret(s, mergeStringData(s)) {
			report(e.Field, e.Message)
		}
		tidyObject(&s.ObjectMeta)
		s.TypeMeta, s.Type = metav1.TypeMeta{APIVersion: "v1", Kind: Secret}, cmp.Or(s.Type, v1.SecretTypeOpaque)
		object = NewObject(nil, s, f.file)
	} else {
		m := &v1.ConfigMap{}
		r.Read(o, m)
		for _, e := range validate.ConfigMap(m) {
			report(e.Field, e.Message)
		}
		tidyObject(&m.ObjectMeta)
		m.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: ConfigMap}
		object = NewObject(m, nil, f.file)
	}
	reportMisplaced(r, o, false)
	key := object.Key()
	named := key.Name != "" && decode.ValidateName(key.Name) == nil
	for _, p := range r.Problems {
		if named {
			p.Object = key.String()
		}
		f.Problems = append(f.Problems, p)
	}
	switch {
	case !named:
		f.Unclear = true
	case slices.ContainsFunc(r.Problems, func(p decode.Problem) bool { return !p.Warning }):
		f.RefusedObjects = append(f.RefusedObjects, key)
	default:
		f.addObject(o, object)
	}
}

// addObject adds an accepted object unless the file has given it already.
func (f *fileDecoder) addObject(o decode.Object, object *Object) {
	for _, other := range f.Objects {
		if other.Key() == object.Key() {
			p := f.problem(o, "metadata.name", givenTwice(object.String(), other.Line))
			p.Object = object.String()
			f.Problems = append(f.Problems, p)
			return
		}
	}
	f.Objects = append(f.Objects, FoundObject{object, o.Node.Line + o.Line, o.Node.Column})
}

// mergeStringData moves a Secret's stringData into its data, where stringData wins, and returns a
// function for the field in which the manifest has a key.
func mergeStringData(s *v1.Secret) func(key string) string {
	plain := s.StringData
	s.StringData = nil
	if s.Data == nil && len(plain) > 0 {
		s.Data = map[string][]byte{}
	}
	for key, text := range plain {
		s.Data[key] = []byte(text)
	}
	return func(key string) string {
		if _, is := plain[key]; is {
			return "stringData"
		}
		return "data"
	}
}

// tidyObject removes what a manifest that was copied from a cluster contains.
func tidyObject(m *metav1.ObjectMeta) {
	m.Namespace = cmp.Or(m.Namespace, metav1.NamespaceDefault)
	m.UID, m.ResourceVersion, m.Generation = "", "", 0
	m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	m.ManagedFields, m.OwnerReferences, m.Finalizers = nil, nil, nil
}
