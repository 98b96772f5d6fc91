package objects

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"monopod/manifests/annotations"
)

func TestWhatAnEditMeansToAPodThatRuns(t *testing.T) {
	const (
		variable = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password}}}]"
		mounted  = "volumeMounts: [{name: v, mountPath: /v}]"
		shown    = "volumes: [{name: v, secret: {secretName: s}}]"
	)
	was := object("Secret", "s", "password: hunter2, user: one")
	restarts := pod
	pod := func(lines ...string) string { // without the annotation
		return strings.Replace(restarts(lines[0], lines[1:]...), annotations.RestartOnConfigChange+": ", "note: ", 1)
	}
	reloads := func(lines ...string) string {
		return strings.Replace(restarts(lines[0], lines[1:]...), annotations.RestartOnConfigChange+": 'true'", annotations.OnConfigChange+"/c: signal:HUP", 1)
	}
	for _, row := range []struct {
		name, pod, is, want string
	}{
		{"a volume of a container that reloads", reloads(mounted, shown), object("Secret", "s", "password: hunter3"),
			`Secret "s": volumes follow; container c is told to reload with it, once no hold, update window or lock keeps that away`},
		{"which keeps its variables", reloads(variable), object("Secret", "s", "password: hunter3"),
			`Secret "s": container c is told to reload with it, once no hold, update window or lock keeps that away; container c has the former value until it restarts`},
		{"and is told, too, that a key is gone", reloads(variable), object("Secret", "s", "user: one"),
			`Secret "s": container c is told to reload with it, once no hold, update window or lock keeps that away; container c has the former value until it restarts; its next start would fail: key password is gone`},
		{"nothing is changed", pod(variable), was, ""},
		{"nothing that the pod uses", pod(variable), object("Secret", "s", "password: hunter2, user: two"), ""},
		{"a variable", pod(variable), object("Secret", "s", "password: hunter3"), `Secret "s": container c has the former value until it restarts`},
		{"all of an object as variables", pod("envFrom: [{secretRef: {name: s}}]"), object("Secret", "s", "password: hunter2"), `Secret "s": container c has the former value until it restarts`},
		{"a pod that asks for restarts", restarts(variable), object("Secret", "s", "password: hunter3"), `Secret "s": container c restarts with it, once no hold, update window or lock keeps that away`},
		{"which does not while a key is gone", restarts(variable), object("Secret", "s", "user: one"),
			`Secret "s": container c has the former value until it restarts; its next start would fail: key password is gone`},
		{"a volume", pod(mounted, shown), object("Secret", "s", "password: hunter3"), `Secret "s": volumes follow`},
		{"a volume and a variable", pod(variable+", "+mounted, shown), object("Secret", "s", "password: hunter3"),
			`Secret "s": volumes follow; container c has the former value until it restarts`},
		{"a part of a volume", pod("volumeMounts: [{name: v, mountPath: /v, subPath: password}]", shown), object("Secret", "s", "password: hunter3"),
			`Secret "s": container c has the former value until it restarts`},
		{"a key of a variable is gone", pod(variable+", "+mounted, shown), object("Secret", "s", "user: one"),
			`Secret "s": volumes follow; container c has the former value until it restarts; its next start would fail: key password is gone`},
		{"a key of a volume is gone", pod(mounted, "volumes: [{name: v, secret: {secretName: s, items: [{key: password, path: p}]}}]"), object("Secret", "s", "user: one"),
			`Secret "s": volumes keep what they show; its next start would fail: key password is gone`},
		{"an optional key is gone", pod("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password, optional: true}}}]"), object("Secret", "s", "user: one"),
			`Secret "s": container c has the former value until it restarts`},
		{"the object is gone", pod(variable), "", `Secret "s": container c has the former value until it restarts; its next start would fail: it is gone`},
		{"a container that does not run", pod("", "initContainers: [{name: i, image: i, "+variable+"}]"), object("Secret", "s", "password: hunter3"), ""},
		{"nor will start again as it did", pod("", "initContainers: [{name: i, image: i, "+variable+"}]"), object("Secret", "s", "user: one"),
			`Secret "s": its next start would fail: key password is gone`},
		{"a pull secret", pod("", "imagePullSecrets: [{name: s}]"), object("Secret", "s", "password: hunter3"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			pods, before := read(t, row.pod, was)
			_, after := read(t, row.pod, row.is)
			var got []string
			for _, e := range Edits(pods[0], NewSet(before), NewSet(after), func(name string) bool { return name == "c" }) {
				got = append(got, e.String())
			}
			if text := strings.Join(got, "\n"); text != row.want {
				t.Errorf("got  %s\nwant %s", text, row.want)
			}
		})
	}
}

// An init container that runs just now gets no new value, also if it has a restart policy of its own.
func TestAnEditMeansNothingToAnInitContainerThatRuns(t *testing.T) {
	const variable = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password}}}]"
	for policy, want := range map[string]string{
		"": "", "restartPolicy: Never, ": "", "restartPolicy: OnFailure, ": "",
		"restartPolicy: Always, ": `Secret "s": container i restarts with it, once no hold, update window or lock keeps that away`,
	} {
		pods, before := read(t, pod("", "initContainers: [{name: i, image: i, "+policy+variable+"}]"), object("Secret", "s", "password: hunter2"))
		_, after := read(t, "", object("Secret", "s", "password: hunter3"))
		var got []string
		for _, e := range Edits(pods[0], NewSet(before), NewSet(after), func(name string) bool { return name == "i" }) {
			got = append(got, e.String())
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("%q: %q, want %q", policy, text, want)
		}
	}
}

func TestAFormerEditIsUndoneByTheSameContent(t *testing.T) {
	one, two := object("ConfigMap", "m", "a: one, b: x"), object("ConfigMap", "m", "a: two, b: second")
	pods, first := read(t, pod("env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]"), one)
	_, second := read(t, two)
	_, again := read(t, object("ConfigMap", "m", "a: one, b: z"))
	p := pods[0]
	was := NewSet(first).Fixed(p, "c")
	if got := Changed(was, NewSet(second).Fixed(p, "c")); got != `ConfigMap "m"` {
		t.Errorf("changed %q", got)
	}
	if got := Changed(was, NewSet(again).Fixed(p, "c")); got != "" {
		t.Errorf("changed %q", got)
	}
}

func TestASetOfAPodHasWhatItRefersToAlone(t *testing.T) {
	pods, all := read(t, pod("envFrom: [{configMapRef: {name: m}}]"), object("ConfigMap", "m", "a: b"), object("Secret", "s", "a: b"))
	if own := NewSet(all).Of(pods[0]); len(own.all) != 1 || own.get(configMap("m")) == nil {
		t.Errorf("%v", own.all)
	}
	if (*Set)(nil).Of(pods[0]) != nil {
		t.Error("of none")
	}
	_, edited := read(t, object("ConfigMap", "m", "a: c"))
	both := NewSet(all).With(edited)
	var kinds []string
	for key := range both.all {
		kinds = append(kinds, key.Kind)
	}
	slices.Sort(kinds)
	if fmt.Sprint(kinds) != "[ConfigMap Secret]" || both.get(configMap("m")) != edited[0] {
		t.Errorf("%v", both.all)
	}
}

func TestMissingForIsOfOneContainerAndOfAllVolumes(t *testing.T) {
	text := pod("volumeMounts: [{name: v, mountPath: /v}]", "initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: s}}]}]",
		"volumes: [{name: v, configMap: {name: m}}]")
	pods, objects := read(t, text, object("ConfigMap", "m", "a: b"))
	if got := NewSet(objects).MissingFor(pods[0], "c"); got != "" {
		t.Errorf("of c: %s", got)
	}
	if got := NewSet(objects).MissingFor(pods[0], "i"); got != `secret "s" not found` {
		t.Errorf("of i: %s", got)
	}
	if got := NewSet(nil).MissingFor(pods[0], "c"); got != `configmap "m" not found` {
		t.Errorf("of c, without its volume: %s", got)
	}
}
