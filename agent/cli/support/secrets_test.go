package support

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
)

func TestValuesAreHiddenWhereverTheyAreQuoted(t *testing.T) {
	secret := &v1.Secret{Data: map[string][]byte{"k": []byte("correct horse\n")}, StringData: map[string]string{"p": "battery staple"}}
	get := func(value string) *v1.HTTPGetAction {
		return &v1.HTTPGetAction{HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: value}}}
	}
	s := &Secrets{}
	s.AddObject(manifests.NewObject(nil, secret, "f"))
	s.AddObject(manifests.NewObject(&v1.ConfigMap{Data: map[string]string{"c": "configured"}}, nil, "f"))
	s.AddPod(&v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Env: []v1.EnvVar{{Name: "A", Value: "of an init container"}}}},
		Containers: []v1.Container{{
			Env:            []v1.EnvVar{{Name: "A", Value: "of a container"}, {Name: "B", Value: "80"}},
			LivenessProbe:  &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get("Bearer live")}},
			ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get("Bearer ready")}},
			StartupProbe:   &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: get("Bearer start")}},
			Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{HTTPGet: get("Bearer post")},
				PreStop: &v1.LifecycleHandler{HTTPGet: get("Bearer pre")}},
		}}}})
	s.Add("first line of a key\nshort\nsecond line of a key\n")
	s.Add("of a container, longer")
	for text, want := range map[string]string{
		"said correct horse.":                 "said <elided>.",
		"battery staple":                      "<elided>",
		"Y29ycmVjdCBob3JzZQ==":                "<elided>", // correct horse
		"configured":                          "<elided>",
		"x of an init container y":            "x <elided> y",
		"of a container":                      "<elided>",
		"of a container, longer":              "<elided>",
		"port 80":                             "port 80",
		"a short walk":                        "a short walk",
		`"second line of a key\n"`:            `"<elided>\n"`,
		"Bearer live, Bearer ready":           "<elided>, <elided>",
		"Bearer start, Bearer post":           "<elided>, <elided>",
		"Bearer pre":                          "<elided>",
		"nothing of it":                       "nothing of it",
		"correct horsecorrect horse, correct": "<elided><elided>, correct",
	} {
		if got := s.Hide(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Logs, messages and manifests quote a value in forms of their own.
func TestValuesAreHiddenInTheFormsThatTextsQuoteThemIn(t *testing.T) {
	asJSON := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	secret := func(v string) *Secrets {
		s := &Secrets{}
		s.AddObject(manifests.NewObject(nil, &v1.Secret{Data: map[string][]byte{"k": []byte(v)}}, "f"))
		return s
	}
	for name, r := range map[string]struct{ value, text, leaks string }{
		"pods.json has a termination message":     {`correct"horse&battery`, asJSON(`login correct"horse&battery failed`), `horse`},
		"the agent's log (slog quotes)":           {`correct"horse`, `level=ERROR err="login correct\"horse failed"`, `horse`},
		"a path with a percent-encoded value":     {"correct horse/battery", "GET /?p=" + url.QueryEscape("correct horse/battery"), "horse"},
		"base64 as the manifest has it":           {"correct horse\n", base64.StdEncoding.EncodeToString([]byte("correct horse\n")), "Y29ycmVjdCBob3JzZ"},
		"base64 of several lines":                 {"correct horse\nbattery staple\n", base64.StdEncoding.EncodeToString([]byte("correct horse\nbattery staple\n")), "Y29ycmVjdCBob3JzZ"},
		"base64 for URLs":                         {"\xfb\xef\xbe correct", base64.URLEncoding.EncodeToString([]byte("\xfb\xef\xbe correct")), "IGNvcnJlY3"},
		"lines of a log, with a time before each": {"correct-1\nhorse-22\n", "2026-05-04T11:00:00Z correct-1\n2026-05-04T11:00:00Z horse-22\n", "horse-22"},
	} {
		if got := secret(r.value).Hide(r.text); strings.Contains(got, r.leaks) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestBinaryDataOfConfigMapsIsHidden(t *testing.T) {
	s := &Secrets{}
	s.AddObject(manifests.NewObject(&v1.ConfigMap{BinaryData: map[string][]byte{"k": []byte("correct horse")}}, nil, "f"))
	if got := s.Hide("said correct horse"); strings.Contains(got, "correct horse") {
		t.Errorf("%s", got)
	}
}

func TestPartsOfASecretAreHidden(t *testing.T) {
	s := &Secrets{}
	s.AddObject(manifests.NewObject(nil, &v1.Secret{Data: map[string][]byte{
		"env":               []byte("USER=me\nPASSWORD=\"correct horse\"\nhost: battery staple\n"),
		".dockerconfigjson": []byte(`{"auths": {"r.example": {"username": "somebody", "password": "p4ssw0rd", "list": ["in-a-list"]}}}`),
	}}, "f"))
	for text, want := range map[string]string{
		"said correct horse": "said <elided>",
		"battery staple":     "<elided>",
		"as somebody":        "as <elided>",
		"p4ssw0rd":           "<elided>",
		"in-a-list":          "<elided>",
		"me":                 "me",
	} {
		if got := s.Hide(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
