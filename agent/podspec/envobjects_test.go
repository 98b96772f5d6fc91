package podspec

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

// given are the objects of the namespace default, by name; "broken" cannot be read.
type given map[string]map[string]string

func (g given) ConfigMap(namespace, name string) (*v1.ConfigMap, error) {
	if name == "broken" {
		return nil, errors.New("cannot be read")
	}
	data, there := g[namespace+"/"+name]
	if !there {
		return nil, nil
	}
	return &v1.ConfigMap{Data: data}, nil
}

func (g given) Secret(namespace, name string) (*v1.Secret, error) {
	m, err := g.ConfigMap(namespace, name)
	if m == nil {
		return nil, err
	}
	s := &v1.Secret{Data: map[string][]byte{}}
	for key, value := range m.Data {
		s.Data[key] = []byte(value)
	}
	return s, nil
}

func TestVariablesOfObjects(t *testing.T) {
	type source = v1.EnvVarSource
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	config := func(name, key string, optional *bool) []v1.EnvVar {
		return []v1.EnvVar{{Name: "X", ValueFrom: &source{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref(name), Key: key, Optional: optional}}}}
	}
	secret := func(name, key string, optional *bool) []v1.EnvVar {
		return []v1.EnvVar{{Name: "X", ValueFrom: &source{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref(name), Key: key, Optional: optional}}}}
	}
	configs := func(prefix, name string, optional *bool) []v1.EnvFromSource {
		return []v1.EnvFromSource{{Prefix: prefix, ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref(name), Optional: optional}}}
	}
	secrets := func(prefix, name string, optional *bool) []v1.EnvFromSource {
		return []v1.EnvFromSource{{Prefix: prefix, SecretRef: &v1.SecretEnvSource{LocalObjectReference: ref(name), Optional: optional}}}
	}
	yes, no := new(true), new(false)
	objects := given{"default/app": {"b": "2", "a": "1"}, "default/nul": {"a": "x\x00"}, "default/long": {"a": strings.Repeat("x", decode.MaxString)}}
	for _, row := range []struct {
		name    string
		env     []v1.EnvVar
		from    []v1.EnvFromSource
		without bool // there are no objects at all
		want    string
	}{
		{"a key of a ConfigMap", config("app", "a", nil), nil, false, "X=1"},
		{"a key that is not there", config("app", "c", nil), nil, false, "error: couldn't find key c in ConfigMap default/app"},
		{"a key that must be there", config("app", "c", no), nil, false, "error: couldn't find key c in ConfigMap default/app"},
		{"a key that need not be there", config("app", "c", yes), nil, false, ""},
		{"a ConfigMap that is not there", config("none", "a", nil), nil, false, `error: configmap "none" not found`},
		{"a ConfigMap that must be there", config("none", "a", no), nil, false, `error: configmap "none" not found`},
		{"a ConfigMap that need not be there", config("none", "a", yes), nil, false, ""},
		{"a ConfigMap that cannot be read", config("broken", "a", yes), nil, false, "error: env X: cannot be read"},
		{"a ConfigMap where there are no objects", config("app", "a", nil), nil, true, `error: configmap "app" not found`},
		{"a key of a Secret", secret("app", "b", nil), nil, false, "X=2"},
		{"a Secret that is not there", secret("none", "a", nil), nil, false, `error: secret "none" not found`},
		{"a Secret that cannot be read", secret("broken", "a", yes), nil, false, "error: env X: cannot be read"},
		{"a Secret where there are no objects", secret("app", "a", yes), nil, true, ""},
		{"a value that no variable can have", config("nul", "a", nil), nil, false, "error: key a in ConfigMap default/nul has a NUL byte, which no variable can have: mount it as a file"},

		{"all of a ConfigMap, by name", nil, configs("", "app", nil), false, "a=1 b=2"},
		{"all of a Secret, with a prefix", nil, secrets("S_", "app", nil), false, "S_a=1 S_b=2"},
		{"all of one that is not there", nil, configs("", "none", nil), false, `error: configmap "none" not found`},
		{"all of one that need not be there", nil, secrets("", "none", yes), false, ""},
		{"all of one that cannot be read", nil, secrets("", "broken", yes), false, "error: cannot be read"},
		{"all of one, with a value that no variable can have", nil, configs("", "nul", nil), false, "error: key a in ConfigMap default/nul has a NUL byte, which no variable can have: mount it as a file"},
		{"all of one, with a value that is too long", nil, configs("P_", "long", nil), false, "error: env P_a: longer than 128 KiB once its variables are expanded: no program can be executed with it; shorten it"},
		{"all of nothing", nil, []v1.EnvFromSource{{}}, false, ""},
		{"a variable of its own comes after them", []v1.EnvVar{{Name: "a", Value: "$(b)3"}}, configs("", "app", nil), false, "a=23 b=2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := specPod()
			c := &p.Spec.Containers[0]
			c.Env, c.EnvFrom = row.env, row.from
			in := Input{Objects: objects}
			if row.without {
				in.Objects = nil
			}
			var got []string
			e, err := environment(p, c, in, specNode())
			if err != nil {
				got = []string{"error: " + err.Error()}
			} else {
				for _, v := range e.list() {
					got = append(got, v.Key+"="+string(v.Value))
				}
			}
			if s := strings.Join(got, " "); s != row.want {
				t.Errorf("got %q, want %q", s, row.want)
			}
		})
	}
}
