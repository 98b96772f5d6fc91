package objects

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/documents"
)

// read returns the pods and objects of a file.
func read(t *testing.T, docs ...string) ([]*v1.Pod, []*manifests.Object) {
	t.Helper()
	c := documents.Read("/m/a.yaml", []byte(strings.Join(docs, "\n---\n")), documents.Options{NodeName: "n"})
	for _, p := range c.Problems {
		t.Fatal(p)
	}
	var pods []*v1.Pod
	var all []*manifests.Object
	for _, p := range c.Pods {
		pods = append(pods, p.Pod.Pod)
	}
	for _, o := range c.Objects {
		all = append(all, o.Object)
	}
	return pods, all
}

func object(kind, name, data string) string {
	field := "data"
	if kind == "Secret" {
		field = "stringData"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s}\n%s: {%s}", kind, name, field, data)
}

func pod(container string, spec ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {" + annotations.RestartOnConfigChange + ": 'true'}}\nspec:\n  containers: [{name: c, image: i, " + container + "}]\n  " + strings.Join(spec, "\n  ")
}

func TestMissingNamesTheFirstThingThatIsNotThere(t *testing.T) {
	mounted := "volumeMounts: [{name: v, mountPath: /v}]"
	rows := []struct{ name, pod, object, want string }{
		{"nothing is referred to", pod(""), "", ""},
		{"a ConfigMap of variables", pod("envFrom: [{configMapRef: {name: m}}]"), "", `configmap "m" not found`},
		{"there", pod("envFrom: [{configMapRef: {name: m}}]"), object("ConfigMap", "m", ""), ""},
		{"a Secret of that name", pod("envFrom: [{configMapRef: {name: m}}]"), object("Secret", "m", ""), `configmap "m" not found`},
		{"in another namespace", pod("envFrom: [{secretRef: {name: s}}]"), strings.Replace(object("Secret", "s", ""), "{name: s}", "{name: s, namespace: b}", 1), `secret "s" not found`},
		{"optional", pod("envFrom: [{secretRef: {name: s, optional: true}}], env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}}]"), "", ""},
		{"a key", pod("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]"), object("ConfigMap", "m", "a: b"), "couldn't find key k in ConfigMap default/m"},
		{"a key of a Secret", pod("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"), object("Secret", "s", "a: b"), "couldn't find key k in Secret default/s"},
		{"a key in binaryData, which is for volumes", pod("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbinaryData: {k: AAE=}", "couldn't find key k in ConfigMap default/m"},
		{"a file from binaryData", pod(mounted, "volumes: [{name: v, configMap: {name: m, items: [{key: k, path: p}]}}]"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\nbinaryData: {k: AAE=}", ""},
		{"an optional key", pod("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]"), object("Secret", "s", "a: b"), ""},
		{"a value beside it", pod("env: [{name: A, value: x}]"), "", ""},
		{"of an init container", pod("", "initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: s}}]}]"), "", `secret "s" not found`},
		{"a volume", pod(mounted, "volumes: [{name: v, secret: {secretName: s}}]"), "", `secret "s" not found`},
		{"a volume that no container mounts", pod("", "volumes: [{name: v, secret: {secretName: s}}]"), "", ""},
		{"an optional volume", pod(mounted, "volumes: [{name: v, configMap: {name: m, optional: true}}]"), "", ""},
		{"an item", pod(mounted, "volumes: [{name: v, configMap: {name: m, items: [{key: k, path: p}]}}]"), object("ConfigMap", "m", "a: b"), "couldn't find key k in ConfigMap default/m"},
		{"a source", pod(mounted, "volumes: [{name: v, projected: {sources: [{configMap: {name: m}}, {secret: {name: s}}]}}]"), object("ConfigMap", "m", ""), `secret "s" not found`},
		{"a pull secret", pod("", "imagePullSecrets: [{name: s}]"), "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			docs := []string{row.pod}
			if row.object != "" {
				docs = append(docs, row.object)
			}
			pods, all := read(t, docs...)
			var s Store
			s.Replace(all, nil)
			if got := s.Missing(&manifests.Pod{Pod: pods[0]}); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestWhatTheFilesTakeIsCountedWhereTheObjectsAreKnown(t *testing.T) {
	items := strings.Repeat("{key: k, path: a}, ", 65)
	for k := range 65 {
		items = strings.Replace(items, "path: a}", fmt.Sprintf("path: f%d}", k), 1)
	}
	text := pod("volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: m, items: ["+items+"]}}]")
	for value, want := range map[string]string{"x": "", strings.Repeat("x", 1<<20-10): "the files of the pod's volumes would take 65 MiB"} {
		pods, all := read(t, text, object("ConfigMap", "m", "k: "+value))
		s := NewSet(all)
		missing := s.Missing(&manifests.Pod{Pod: pods[0]})
		if !strings.HasPrefix(missing, want) || (missing == "") != (want == "") {
			t.Errorf("%q", missing)
		}
		if got := s.Missing(&manifests.Pod{Pod: pods[0], Unbounded: true}); got != "" {
			t.Errorf("of a version that a former agent accepted: %q", got)
		}
		if all := s.AllMissing(pods[0]); (len(all) == 0) != (want == "") || want != "" && (all[0].Field != "spec.volumes[0]" || all[0].Text != missing) {
			t.Errorf("%v", all)
		}
	}
}

func TestReplaceNamesWhatChanged(t *testing.T) {
	var s Store
	replace := func(want string, docs ...string) {
		t.Helper()
		_, all := read(t, docs...)
		if got := fmt.Sprint(s.Replace(all, nil)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	a, b := object("ConfigMap", "a", "k: v"), object("Secret", "b", "k: v")
	replace("[]", pod(""))
	replace("[ConfigMap default/a Secret default/b]", b, a)
	replace("[]", a, b)
	replace("[Secret default/b]", a, object("Secret", "b", "k: w"))
	replace("[ConfigMap default/a]", object("Secret", "b", "k: w"))
}

func TestConcernIsOfAllThatAPodRefersTo(t *testing.T) {
	pods, _ := read(t, pod("envFrom: [{configMapRef: {name: env}}], volumeMounts: [{name: v, mountPath: /v}]",
		"imagePullSecrets: [{name: pull}]", "volumes: [{name: v, secret: {secretName: vol}}]"))
	for key, want := range map[manifests.ObjectKey]bool{
		{Kind: "ConfigMap", Namespace: "default", Name: "env"}: true, {Kind: "Secret", Namespace: "default", Name: "vol"}: true,
		{Kind: "Secret", Namespace: "default", Name: "pull"}: true, {Kind: "Secret", Namespace: "default", Name: "env"}: false,
		{Kind: "ConfigMap", Namespace: "other", Name: "env"}: false,
	} {
		if Concern(pods[0], []manifests.ObjectKey{key}) != want {
			t.Errorf("%s: want %v", key, want)
		}
	}
}

// What variables are made of changes with what they use, and tells no value.
func TestEnvChangesWithWhatIsUsed(t *testing.T) {
	p := pod("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}], envFrom: [{configMapRef: {name: m}}]")
	of := func(docs ...string) string {
		t.Helper()
		pods, all := read(t, append(docs, p)...)
		pods[0].UID = "u"
		return NewSet(all).Env(pods[0])["c"]
	}
	s, m := object("Secret", "s", "a: hunter2, b: one"), object("ConfigMap", "m", "k: v")
	before := of(s, m)
	if strings.Contains(before, "hunter") || !strings.HasPrefix(before, "configmap/m=") || strings.Count(before, " secret/s=") != 1 {
		t.Errorf("it is %q", before)
	}
	rows := []struct {
		name, secret, configMap, want string
	}{
		{"nothing", s, m, ""},
		{"a key that is not used", object("Secret", "s", "a: hunter2, b: other"), m, ""},
		{"a value", object("Secret", "s", "a: hunter3, b: one"), m, `Secret "s"`},
		{"a key more", s, object("ConfigMap", "m", "k: v, l: w"), `ConfigMap "m"`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := Changed(before, of(row.secret, row.configMap)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	if got := of(s); got != "" {
		t.Errorf("with an object missing it is %q", got)
	}
	pods, all := read(t, s, m, p)
	pods[0].Annotations = nil
	if got := NewSet(all).Env(pods[0]); got != nil {
		t.Errorf("without the annotation it is %v", got)
	}
}

// Each thing that is missing is told once, where the pod refers to it first.
func TestWhatIsMissingIsToldByField(t *testing.T) {
	const doc = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  volumes:
  - {name: a, configMap: {name: none}}
  - {name: b, secret: {secretName: s, items: [{key: k, path: f}, {key: other, path: g}]}}
  - name: c
    projected: {sources: [{secret: {name: s}}, {configMap: {name: third}}]}
  - {name: unused, configMap: {name: not-mounted}}
  initContainers:
  - name: i
    image: img:1
    volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}, {name: c, mountPath: /c}]
    envFrom: [{configMapRef: {name: none}}, {secretRef: {name: init}}]
  containers:
  - {name: x, image: "img:1"}
  - name: z
    image: img:1
    env:
    - {name: A, value: plain}
    - {name: B, valueFrom: {secretKeyRef: {name: s, key: third}}}
    - {name: C, valueFrom: {configMapKeyRef: {name: fourth, key: k, optional: true}}}
    - {name: D, valueFrom: {configMapKeyRef: {name: fourth, key: k}}}
`
	pods, all := read(t, doc, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {k: v}\n")
	set, p := NewSet(all), pods[0]
	want := []MissingRef{
		{"spec.volumes[0].configMap.name", `configmap "none" not found`},
		{"spec.volumes[1].secret.items[1].key", `couldn't find key other in Secret ns/s`},
		{"spec.volumes[2].projected.sources[1].configMap.name", `configmap "third" not found`},
		{"spec.initContainers[0].envFrom[1].secretRef.name", `secret "init" not found`},
		{"spec.containers[1].env[1].valueFrom.secretKeyRef.key", `couldn't find key third in Secret ns/s`},
		{"spec.containers[1].env[3].valueFrom.configMapKeyRef.name", `configmap "fourth" not found`},
	}
	if got := set.AllMissing(p); !slices.Equal(got, want) {
		t.Errorf("missing\n%q\nwant\n%q", got, want)
	}
	if got := set.Missing(&manifests.Pod{Pod: p}); got != want[0].Text {
		t.Errorf("first is %q", got)
	}
}
