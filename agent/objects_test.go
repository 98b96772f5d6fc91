package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// object returns the manifest of a ConfigMap or Secret with text in it, "k: v, ...".
func object(kind, name, data string) string {
	field := "data"
	if kind == "Secret" {
		field = "stringData"
	}
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s}\n%s: {%s}\n", kind, name, field, data)
}

// refers returns a manifest of a pod with lines in its container and in its spec.
func refers(name, container string, spec ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers: [{name: c, image: 'img:1', %s}]\n  %s\n",
		name, container, strings.Join(spec, "\n  "))
}

// env returns the variables of the newest container, in their order.
func (r *rig) env(which string) string {
	r.Helper()
	c, ok := r.Container(which)
	if !ok {
		r.Fatalf("no container %s", which)
	}
	var all []string
	for _, e := range c.Config.Envs {
		all = append(all, e.Key+"="+string(e.Value))
	}
	return strings.Join(all, " ")
}

func TestVariablesComeFromObjects(t *testing.T) {
	live(t, func(r *rig) {
		r.want(refers("web", `envFrom: [{prefix: M_, configMapRef: {name: m}}, {secretRef: {name: s}}, {configMapRef: {name: none, optional: true}}],
			env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}, {name: B, valueFrom: {secretKeyRef: {name: s, key: b-c}}},
			{name: C, valueFrom: {secretKeyRef: {name: s, key: none, optional: true}}}, {name: D, valueFrom: {configMapKeyRef: {name: none, key: d, optional: true}}},
			{name: E, value: '$(M_a) $(B) $(A)$(C)'}]`),
			object("ConfigMap", "m", "a: $(E), b: two"), object("Secret", "s", "b-c: hidden"))
		r.expect("default/web-n/c")
		if got, want := r.env("c"), "M_a=$(E) M_b=two b-c=hidden A=$(E) B=hidden E=$(E) hidden $(E)$(C)"; got != want {
			t.Errorf("variables %q\nwant %q", got, want)
		}
	})
}

// What a pod refers to and is not there holds it, says so, and lets it start as soon
// as it comes, whatever the back-off is.
func TestAPodWaitsForItsObjectsAndStartsAtOnce(t *testing.T) {
	rows := []struct {
		name, pod, before, after, waits, event string
	}{
		{"a ConfigMap for variables", refers("web", "envFrom: [{configMapRef: {name: m}}]"), "", object("ConfigMap", "m", "a: b"),
			`CreateContainerConfigError: configmap "m" not found`, `spec.containers{c}: Error: configmap "m" not found`},
		{"a Secret for one", refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}]"), "", object("Secret", "s", "a: b"),
			`CreateContainerConfigError: secret "s" not found`, `spec.containers{c}: Error: secret "s" not found`},
		{"a key of a ConfigMap", refers("web", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]"), object("ConfigMap", "m", "b: b"), object("ConfigMap", "m", "a: b"),
			"CreateContainerConfigError: couldn't find key a in ConfigMap default/m", "spec.containers{c}: Error: couldn't find key a in ConfigMap default/m"},
		{"a key of a Secret", refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}]"), object("Secret", "s", "b: hunter2"), object("Secret", "s", "a: b"),
			"CreateContainerConfigError: couldn't find key a in Secret default/s", "spec.containers{c}: Error: couldn't find key a in Secret default/s"},
		{"a value that no variable can have", refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}]"), object("Secret", "s", `a: "hunter2\0"`), object("Secret", "s", "a: b"),
			"CreateContainerConfigError: key a in Secret default/s has a NUL byte, which no variable can have: mount it as a file", "NUL byte"},
		{"a ConfigMap for a volume", refers("web", "volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: m}}]"), "", object("ConfigMap", "m", "a: b"),
			`FailedMount: MountVolume.SetUp failed for volume "v" : configmap "m" not found`, `: MountVolume.SetUp failed for volume "v" : configmap "m" not found`},
		{"a key for a volume", refers("web", "volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: m, items: [{key: a, path: p}]}}]"),
			object("ConfigMap", "m", "b: b"), object("ConfigMap", "m", "a: b"),
			`FailedMount: MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: a`, "non-existent config key: a"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				docs := []string{row.pod}
				if row.before != "" {
					docs = append(docs, row.before)
				}
				r.want(docs...)
				r.after(10 * time.Minute) // any back-off is at its longest
				r.expect()
				got := r.waitsFor("default/web-n")
				for _, c := range r.status("default/web-n").Conditions {
					if c.Type == v1.PodReadyToStartContainers && c.Reason == "FailedMount" {
						got = c.Reason + ": " + c.Message // a volume holds the sandbox
					}
				}
				if got != row.waits {
					t.Errorf("waits for %q, want %q", got, row.waits)
				}
				if got := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(got, row.event) || strings.Contains(got, "hunter2") {
					t.Errorf("events %s", got)
				}
				if strings.Contains(r.log.String(), "hunter2") {
					t.Error("a Secret's value is in the log")
				}
				r.want(row.pod, row.after)
				r.expect("default/web-n/c")
			})
		})
	}
}

// A change wakes only those who refer to the object.
func TestAnObjectWakesOnlyItsPods(t *testing.T) {
	live(t, func(r *rig) {
		a, b := refers("a", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]"), refers("b", "env: [{name: A, valueFrom: {configMapKeyRef: {name: other, key: a}}}]")
		r.want(a, b)
		r.after(10 * time.Minute)
		before := strings.Join(r.happened("b-n"), "\n") // with counts
		r.want(a, b, object("ConfigMap", "m", "a: x"))
		r.expect("default/a-n/c")
		if now := strings.Join(r.happened("b-n"), "\n"); now != before {
			t.Errorf("the other pod was tried too: %s", now)
		}
	})
}

// shown reads a file of a pod's only ConfigMap volume.
func (r *rig) shown(name string) string {
	r.Helper()
	paths, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "volumes", "kubernetes.io~configmap", "v", name))
	if len(paths) != 1 {
		r.Fatalf("there are %v", paths)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// Volumes follow their objects while containers run; nothing restarts for it.
func TestVolumesFollowTheirObjects(t *testing.T) {
	live(t, func(r *rig) {
		pod := refers("web", "envFrom: [{configMapRef: {name: m}}], volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: m, defaultMode: 0400}}]")
		r.want(pod, object("ConfigMap", "m", "a: one, b: two"))
		r.expect("default/web-n/c")
		old, _ := r.Container("c")
		made := r.made()
		r.want(pod, object("ConfigMap", "m", "a: three"))
		if got := r.shown("a"); got != "three" {
			t.Errorf("it shows %q", got)
		}
		if paths, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "volumes", "kubernetes.io~configmap", "v", "b")); len(paths) > 0 {
			t.Errorf("left: %v", paths)
		}
		if i, err := os.Stat(filepath.Join(r.dir, "pods", old.UID, "volumes", "kubernetes.io~configmap", "v", "a")); err != nil || i.Mode() != fs.FileMode(0o400) {
			t.Errorf("mode %v, %v", i, err)
		}
		r.want(pod) // no manifest gives it: what is shown stays, as the pod needs it
		if got := r.shown("a"); got != "three" {
			t.Errorf("it shows %q", got)
		}
		if got := strings.Join(r.happened("web-n"), "\n"); strings.Contains(got, "FailedMount") {
			t.Errorf("events %s", got)
		}
		r.want(pod, object("ConfigMap", "m", "a: four"))
		if got := r.shown("a"); got != "four" {
			t.Errorf("it shows %q", got)
		}
		r.after(10 * time.Minute)
		if r.made() != made {
			t.Errorf("%d calls made something", r.made()-made)
		}
		if c, _ := r.Container("c"); c.ID != old.ID {
			t.Errorf("container %s, was %s", c.ID, old.ID)
		}
	})
}

// What changed while no agent ran is shown by the next one.
func TestANextAgentBringsVolumesUpToDate(t *testing.T) {
	live(t, func(r *rig) {
		pod := refers("web", "volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: m}}]")
		r.want(pod, object("ConfigMap", "m", "a: one"))
		r.stop()
		r.start()
		r.want(pod, object("ConfigMap", "m", "a: two"))
		r.after(time.Second)
		if got := r.shown("a"); got != "two" {
			t.Errorf("it shows %q", got)
		}
	})
}

// annotated makes a pod's containers restart when their objects change.
func annotated(pod string) string {
	return strings.Replace(pod, "metadata: {", fmt.Sprintf("metadata: {annotations: {%s: 'true'}, ", annotations.RestartOnConfigChange), 1)
}

// Containers whose variables have changed restart if the pod asks for it, also when the
// change came while no agent ran; the others do not.
func TestContainersRestartForChangedVariables(t *testing.T) {
	pod := annotated(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  containers:
  - {name: a, image: 'img:1', envFrom: [{configMapRef: {name: m}}]}
  - {name: b, image: 'img:1', env: [{name: B, valueFrom: {secretKeyRef: {name: s, key: b}}}]}
  - {name: c, image: 'img:1'}
`)
	m, s := object("ConfigMap", "m", "a: one"), object("Secret", "s", "a: hunter1, b: hunter2")
	restarts := func(r *rig, want string) {
		r.Helper()
		r.after(time.Minute)
		got := ""
		for _, c := range r.status("default/web-n").ContainerStatuses {
			got += fmt.Sprintf("%s%d ", c.Name, c.RestartCount)
		}
		if got != want {
			t.Errorf("restarts %q, want %q", got, want)
		}
	}
	live(t, func(r *rig) {
		r.want(pod, m, s)
		restarts(r, "a0 b0 c0 ")
		r.want(pod, object("ConfigMap", "m", "a: two"), s)
		restarts(r, "a1 b0 c0 ")
		if got := r.env("a"); got != "a=two" {
			t.Errorf("variables %s", got)
		}
		if got := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(got, `Killing spec.containers{a}: Stopping container a: ConfigMap "m" has changed, of which its variables or volumes are made`) {
			t.Errorf("events %s", got)
		}
		r.want(pod, object("ConfigMap", "m", "a: two"), object("Secret", "s", "a: other, b: hunter2")) // a key that no variable uses
		restarts(r, "a1 b0 c0 ")
		r.stop()
		r.start()
		r.want(pod, object("ConfigMap", "m", "a: two"), object("Secret", "s", "b: hunter3"))
		restarts(r, "a1 b1 c0 ")
		if got := r.env("b"); got != "B=hunter3" {
			t.Errorf("variables %s", got)
		}
		r.want(pod, object("Secret", "s", "b: hunter3")) // one that is gone: the container could not start
		restarts(r, "a1 b1 c0 ")
		if c, _ := r.Container("b"); !strings.HasPrefix(c.Config.Annotations[podspec.AnnEnvObjects], "secret/s=") || strings.Contains(fmt.Sprint(c.Config.Annotations), "hunter") {
			t.Errorf("annotations %v", c.Config.Annotations)
		}
	})
}

// Containers restart for what volumes show that they mount, also of a projected volume and by
// binaryData. One that a former agent made, which did not record volumes, restarts for its
// variables alone, and not because another agent came.
func TestContainersRestartForChangedVolumes(t *testing.T) {
	pod := annotated(`apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  volumes: [{name: m, configMap: {name: m, items: [{key: a, path: a}]}}, {name: p, projected: {sources: [{secret: {name: s}}, {configMap: {name: bin}}]}}]
  containers:
  - {name: a, image: 'img:1', envFrom: [{configMapRef: {name: e}}], volumeMounts: [{name: m, mountPath: /m}]}
  - {name: b, image: 'img:1', volumeMounts: [{name: p, mountPath: /p}]}
  - {name: c, image: 'img:1'}
`)
	m, s, e := object("ConfigMap", "m", "a: one"), object("Secret", "s", "k: hunter1"), object("ConfigMap", "e", "v: one")
	n := func(binary string) string {
		return object("ConfigMap", "bin", "k: v") + "binaryData: {b: " + binary + "}\n"
	}
	restarts := func(r *rig, what, want string) {
		r.Helper()
		r.after(time.Minute)
		got := ""
		for _, c := range r.status("default/web-n").ContainerStatuses {
			got += fmt.Sprintf("%s%d ", c.Name, c.RestartCount)
		}
		if got != want {
			t.Errorf("%s: restarts %q, want %q", what, got, want)
		}
	}
	live(t, func(r *rig) {
		r.want(pod, m, s, e, n("AAAA"))
		restarts(r, "at first", "a0 b0 c0 ")
		m = object("ConfigMap", "m", "a: two")
		r.want(pod, m, s, e, n("AAAA"))
		restarts(r, "a ConfigMap", "a1 b0 c0 ")
		m = object("ConfigMap", "m", "a: two, other: key")
		r.want(pod, m, s, e, n("AAAA"))
		restarts(r, "a key that no volume shows", "a1 b0 c0 ")
		s = object("Secret", "s", "k: hunter2")
		r.want(pod, m, s, e, n("AAAA"))
		restarts(r, "a projected Secret", "a1 b1 c0 ")
		r.want(pod, m, s, e, n("BBBB"))
		restarts(r, "binaryData", "a1 b2 c0 ")
		r.stop()
		for _, name := range []string{"a", "b"} {
			c, _ := r.Container(name)
			words := c.Config.Annotations[podspec.AnnEnvObjects]
			former, _, _ := strings.Cut(words, "volume/")
			if strings.Contains(fmt.Sprint(c.Config.Annotations), "hunter") || former == words {
				t.Errorf("%s has the annotations %v", name, c.Config.Annotations)
			}
			c.Config.Annotations[podspec.AnnEnvObjects] = strings.TrimSpace(former) // as a former agent left it
		}
		m = object("ConfigMap", "m", "a: three")
		r.start()
		r.want(pod, m, s, e, n("CCCC"))
		restarts(r, "those of a former agent", "a1 b2 c0 ")
		r.want(pod, m, s, object("ConfigMap", "e", "v: two"), n("CCCC"))
		restarts(r, "variables of such a one", "a2 b2 c0 ")
		r.want(pod, object("ConfigMap", "m", "a: four"), s, object("ConfigMap", "e", "v: two"), n("CCCC"))
		restarts(r, "volumes of what this agent made", "a3 b2 c0 ")
		r.want(s) // the pod goes, and with it the Secret's volume in memory
		r.after(time.Hour)
	})
}

// A pod that gets the annotation while it runs is as one that had it from the start: what has
// changed since its containers started counts, before that and after it.
func TestContainersRestartForVariablesThoughTheAnnotationCameLater(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'img:1', envFrom: [{configMapRef: {name: m}}]}]}\n"
	one, two := object("ConfigMap", "m", "a: one"), object("ConfigMap", "m", "a: two")
	for _, row := range []struct {
		name string
		docs [][]string // one after the other
		want []int32    // restarts after each
	}{
		{"the object changes afterwards", [][]string{{pod, one}, {annotated(pod), one}, {annotated(pod), two}}, []int32{0, 0, 1}},
		{"it has changed before", [][]string{{pod, one}, {pod, two}, {annotated(pod), two}}, []int32{0, 0, 1}},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, another agent each: %v", row.name, restarts), func(t *testing.T) {
				live(t, func(r *rig) {
					for k, docs := range row.docs {
						if restarts {
							r.stop()
							r.start()
						}
						r.want(docs...)
						r.after(time.Minute)
						if n := r.status("default/web-n").ContainerStatuses[0].RestartCount; n != row.want[k] {
							t.Errorf("%d restarts after step %d, want %d", n, k, row.want[k])
						}
					}
					if got := r.env("c"); got != "a=two" {
						t.Errorf("variables %s", got)
					}
				})
			})
		}
	}
}

// A pull whose Secret was missing is tried again with it at once.
func TestAPullSecretThatComesIsUsedAtOnce(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("reg.test/new:1", 0, fmt.Errorf("unauthorized"))
		pod := strings.Replace(refers("web", "imagePullPolicy: Always", "imagePullSecrets: [{name: s}]"), "img:1", "reg.test/new:1", 1)
		r.want(pod)
		r.after(10 * time.Minute)
		if got := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(got, ": Unable to retrieve some image pull secrets (s)") {
			t.Errorf("events %s", got)
		}
		r.OnPull("reg.test/new:1", 0, nil)
		secret := strings.Replace(object("Secret", "s", `.dockerconfigjson: '{"auths": {"reg.test": {"username": "u", "password": "p"}}}'`), "kind:", "type: kubernetes.io/dockerconfigjson\nkind:", 1)
		r.want(pod, secret)
		r.expect("default/web-n/c")

		if st := r.status("default/web-n"); st.Phase != v1.PodRunning {
			t.Errorf("status %+v", st)
		}
	})
}
