package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/objects"
	"monopod/cgroups"
	"monopod/manifests"
)

// accepted returns the pod that monopod accepts of a spec.
func accepted(t *testing.T, spec string) *v1.Pod {
	t.Helper()
	return decoded(t, "metadata: {name: web}\nspec:\n"+spec).Pod
}

// decoded returns the pod of a manifest.
func decoded(t *testing.T, text string) *manifests.Pod {
	t.Helper()
	pods, problems := manifests.Decode("/m/web.yaml", []byte("apiVersion: v1\nkind: Pod\n"+text), manifests.Options{NodeName: "node1", NameSuffix: true,
		Claims: map[manifests.Key]bool{{Namespace: "default", Name: "data"}: true}})
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	return pods[0]
}

const sleeps = "  containers: [{name: main, image: busybox}]\n"

// A kubelet makes of the manifest what runs, with the same uid.
func TestAManifestIsTheAcceptedPodWithItsUID(t *testing.T) {
	p := accepted(t, sleeps)
	p.UID = "kept"
	p.Status.Phase = v1.PodRunning
	before := p.DeepCopy()
	e := (&Exporter{}).Export(p)
	if e.File != "default_web.yaml" || len(e.Refused) > 0 || e.Pod.Name != "web" || e.Pod.UID != "kept" ||
		e.Pod.Spec.NodeName != "" || e.Pod.Status.Phase != "" || len(e.Pod.Annotations) > 0 {
		t.Errorf("%+v", e)
	}
	if p.String() != before.String() {
		t.Error("the accepted pod was changed")
	}
}

func TestWhatAKubeletRefusesIsSaid(t *testing.T) {
	withVolume := func(source string) string {
		return sleeps + "  volumes: [{name: v, " + source + "}]\n"
	}
	root := t.TempDir()
	noErr(t, os.MkdirAll(filepath.Join(root, "volumes", "default_data"), 0o755))
	variable := "  containers: [{name: main, image: busybox, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]}]\n"
	for _, row := range []struct {
		about, spec string
		says        string // "": it is taken
		inline      string // what is said with --inline
	}{
		{"nothing of an API server", withVolume("emptyDir: {}"), "", ""},
		{"a field of the pod", withVolume("projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}"), "", ""},
		{"a variable", variable, "variable A is of a ConfigMap", ""},
		{"a variable of an object that is missing", strings.Replace(variable, "name: m,", "name: none,", 1), "variable A", `configmap "none" not found`},
		{"envFrom", "  containers: [{name: main, image: busybox, envFrom: [{secretRef: {name: s}}]}]\n", "envFrom", ""},
		{"a claim", withVolume("persistentVolumeClaim: {claimName: data}"), "--inline", ""},
		{"a volume of a ConfigMap", withVolume("configMap: {name: m}"), "hostPath", "hostPath"},
		{"a volume of a Secret", withVolume("secret: {secretName: s}"), "hostPath", "hostPath"},
		{"a projected Secret", withVolume("projected: {sources: [{secret: {name: s}}]}"), "hostPath", "hostPath"},
		{"credentials", sleeps + "  imagePullSecrets: [{name: s}]\n", "config.json", "config.json"},
	} {
		t.Run(row.about, func(t *testing.T) {
			p := accepted(t, row.spec)
			m, s := &v1.ConfigMap{Data: map[string]string{"a": "x"}}, &v1.Secret{}
			m.Namespace, m.Name, s.Namespace, s.Name = "default", "m", "default", "s"
			set := objects.NewSet([]*manifests.Object{manifests.NewObject(m, nil, ""), manifests.NewObject(nil, s, "")})
			for inline, want := range map[bool]string{false: row.says, true: row.inline} {
				e := (&Exporter{Root: root, Inline: inline, Objects: set}).Export(p)
				said := strings.Join(e.Refused, "\n")
				if (said == "") != (want == "") || !strings.Contains(said, want) {
					t.Errorf("inline %v: %q", inline, said)
				}
			}
		})
	}
}

func TestAClaimIsMountedByItsPath(t *testing.T) {
	p := accepted(t, "  containers: [{name: main, image: busybox, volumeMounts: [{name: v, mountPath: /d}]}]\n"+
		"  volumes: [{name: v, persistentVolumeClaim: {claimName: data, readOnly: true}}]\n")
	root := t.TempDir()
	dir := filepath.Join(root, "volumes", "default_data")
	e := (&Exporter{Root: root, Inline: true}).Export(p)
	if said := strings.Join(e.Refused, "\n"); !strings.Contains(said, dir+" of the claim data is no folder") {
		t.Errorf("its disk may not be mounted, and a kubelet would run the pod without its data: %q", said)
	}
	noErr(t, os.MkdirAll(dir, 0o755))
	e = (&Exporter{Root: root, Inline: true}).Export(p)
	h := e.Pod.Spec.Volumes[0].HostPath
	if len(e.Refused) > 0 || h == nil || h.Path != dir || *h.Type != v1.HostPathDirectory || !e.Pod.Spec.Containers[0].VolumeMounts[0].ReadOnly {
		t.Errorf("%v", e.Pod.Spec)
	}
}

// What the text of a manifest cannot hold is neither changed nor the end of the export.
func TestTheValueOfAVariableIsHeldAsItIsOrRefusedByName(t *testing.T) {
	export := func(value string) Exported {
		p := accepted(t, sleeps)
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "SECRET", Value: value}, {Name: "OTHER", Value: "x"}}
		return (&Exporter{}).Export(p)
	}
	for _, value := range []string{"\u007f", "a\u0085b", "\ufffe"} {
		e := export(value)
		if len(e.Refused) != 1 || !strings.Contains(e.Refused[0], "variable SECRET has a character") || len(e.Text) > 0 {
			t.Errorf("%q: %q\n%s", value, e.Refused, e.Text)
		}
	}
	for _, value := range []string{"\ufeffx", "\r\n", " a ", "\n\n a\n", "a\tb\n\t", "null", "1e3", "0o17", "=", "<<", "y", "2001-01-01", "a: b #c",
		"\u2028", "\x01", "\U000e0001", "- ", "? x", "'\"\\", strings.Repeat("x ", 300)} {
		e, got := export(value), &v1.Pod{}
		if err := yaml.Unmarshal(e.Text, got); err != nil || len(e.Refused) > 0 || got.Spec.Containers[0].Env[0].Value != value {
			t.Errorf("%q: %v, %q\n%s", value, err, e.Refused, e.Text)
		}
	}
	p := accepted(t, sleeps)
	p.Spec.Containers[0].Args = []string{"\u007f"}
	if e := (&Exporter{}).Export(p); len(e.Refused) != 1 || !strings.HasPrefix(e.Refused[0], "its manifest has a character") {
		t.Errorf("%q", e.Refused)
	}
}

func TestAPodWithoutTheSuffixOfItsNodeIsNotExported(t *testing.T) {
	p := accepted(t, sleeps)
	p.Name = "web"
	if e := (&Exporter{}).Export(p); len(e.Refused) != 1 || !strings.Contains(e.Refused[0], "podNameSuffix") {
		t.Errorf("%q", e.Refused)
	}
}

func TestTheSettingsOfAKubeletAreCompared(t *testing.T) {
	root, proc := t.TempDir(), t.TempDir()
	mount := func(more string) {
		noErr(t, os.MkdirAll(filepath.Join(proc, "self"), 0o755))
		noErr(t, os.WriteFile(filepath.Join(proc, "self", "mountinfo"), []byte("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"+more), 0o644))
	}
	mount("23 22 8:1 / /elsewhere rw - ext4 /dev/sda1 rw\n")
	n := &Node{Name: "node1", MaxPods: 110, Root: root, Proc: proc, PodLogs: "/var/log/pods", CgroupDriver: cgroups.Systemd, Endpoint: "unix:///run/containerd/containerd.sock"}
	for _, row := range []struct {
		about, settings string
		says            []string
	}{
		{"there are none", "", nil},
		{"they fit", "staticPodPath: /m\ncgroupDriver: systemd\n", nil},
		{"they do not", "staticPodPath: /m\nseccompDefault: true\ncgroupRoot: /x\npodLogsDir: /logs\n",
			[]string{"podLogsDir", "cgroupDriver", "cgroupRoot", "seccompDefault"}},
	} {
		t.Run(row.about, func(t *testing.T) {
			if row.settings != "" {
				noErr(t, os.WriteFile(filepath.Join(root, "config.yaml"), []byte(row.settings), 0o600))
			}
			got, err := n.CheckKubelet(root, "/m")
			noErr(t, err)
			if len(got) != len(row.says) {
				t.Fatalf("%q", got)
			}
			for k, name := range row.says {
				if !strings.HasPrefix(got[k], name+" of ") {
					t.Errorf("%q is not about %s", got[k], name)
				}
			}
		})
	}
	got, err := n.CheckKubelet(t.TempDir(), "/m")
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "--root-dir="+root) {
		t.Errorf("another root dir: %q, %v", got, err)
	}
	noErr(t, os.Remove(filepath.Join(root, "config.yaml")))
	mount("23 22 8:1 / " + filepath.Dir(root) + " rw master:1 - ext4 /dev/sda1 rw\n")
	got, err = n.CheckKubelet(root, "/m")
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "mount --make-rshared "+filepath.Dir(root)) {
		t.Errorf("a mount that is not shared: %q, %v", got, err)
	}
	for _, line := range []string{"staticPodPath: /m\n", "cgroupDriver: systemd\n", "--hostname-override=node1 --root-dir=" + root + "\n"} {
		if text := n.KubeletSettings("/m"); !strings.Contains(text, line) {
			t.Errorf("%s has no %s", text, line)
		}
	}
}

// A kubelet admits all pods again when it starts, and kills what it refuses. With swap it does not
// start, unless it is told to.
func TestTheSettingsByWhichAKubeletAdmitsPodsAreCompared(t *testing.T) {
	root, proc := t.TempDir(), t.TempDir()
	noErr(t, os.MkdirAll(filepath.Join(proc, "self"), 0o755))
	noErr(t, os.WriteFile(filepath.Join(proc, "self", "mountinfo"), []byte("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"), 0o644))
	for _, row := range []struct {
		about    string
		n        Node
		settings string
		says     string // the settings that differ
		needs    string // a line that the kubelet needs
	}{
		{"the usual", Node{MaxPods: 110, Pods: 3}, "", "", "maxPods: 110"},
		{"more pods than usual", Node{MaxPods: 200, Pods: 120}, "", "maxPods", "maxPods: 200"},
		{"the kubelet has room enough", Node{MaxPods: 200, Pods: 120}, "maxPods: 150\n", "", ""},
		{"the kubelet has room for fewer", Node{MaxPods: 110, Pods: 3}, "maxPods: 2\n", "maxPods", ""},
		{"more pods than new ones are let", Node{MaxPods: 2, Pods: 120}, "", "maxPods", "maxPods: 120"},
		{"by the core", Node{MaxPods: 110, Pods: 30, Cores: 2}, "podsPerCore: 10\n", "podsPerCore", "podsPerCore: 0"},
		{"by the core, which is enough", Node{MaxPods: 110, Pods: 30, Cores: 4, PodsPerCore: 20}, "podsPerCore: 10\n", "", "podsPerCore: 20"},
		{"the usual, by the core", Node{MaxPods: 110, Pods: 30, Cores: 4, PodsPerCore: 20}, "", "", ""},
		{"sysctls", Node{MaxPods: 110, UnsafeSysctls: []string{"net.core.*", "kernel.msgmax"}}, "allowedUnsafeSysctls: [kernel.msgmax]\n", "allowedUnsafeSysctls", `allowedUnsafeSysctls: ["net.core.*","kernel.msgmax"]`},
		{"sysctls, and others", Node{MaxPods: 110, UnsafeSysctls: []string{"net.core.*"}}, "allowedUnsafeSysctls: [kernel.msgmax, net.core.*]\n", "", ""},
		{"swap", Node{MaxPods: 110, HasSwap: true}, "", "failSwapOn", "failSwapOn: false"},
		{"swap that the kubelet bears", Node{MaxPods: 110, HasSwap: true}, "failSwapOn: false\n", "", ""},
	} {
		t.Run(row.about, func(t *testing.T) {
			n := row.n
			n.Name, n.Root, n.Proc, n.PodLogs = "node1", root, proc, "/var/log/pods"
			noErr(t, os.WriteFile(filepath.Join(root, "config.yaml"), []byte("staticPodPath: /m\n"+row.settings), 0o600))
			got, err := n.CheckKubelet(root, "/m")
			noErr(t, err)
			var names []string
			for _, text := range got {
				name, _, _ := strings.Cut(text, " of ")
				names = append(names, name)
			}
			if strings.Join(names, " ") != row.says {
				t.Errorf("%q", got)
			}
			if text := n.KubeletSettings("/m"); !strings.Contains(text, "\n"+row.needs) {
				t.Errorf("%s has no %s", text, row.needs)
			}
		})
	}
}

func TestASettingWithTheSameMeaningDoesNotDiffer(t *testing.T) {
	root := t.TempDir()
	n := &Node{Name: "node1", MaxPods: 110, Root: root, PodLogs: "/var/log/pods", CgroupDriver: cgroups.Systemd, Proc: t.TempDir(), Endpoint: "unix:///run/containerd/containerd.sock"}
	noErr(t, os.MkdirAll(filepath.Join(n.Proc, "self"), 0o755))
	noErr(t, os.WriteFile(filepath.Join(n.Proc, "self", "mountinfo"), []byte("22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"), 0o644))
	noErr(t, os.WriteFile(filepath.Join(root, "config.yaml"), []byte("staticPodPath: /etc/kubernetes/manifests/\npodLogsDir: /var/log//pods/\n"+
		"cgroupDriver: systemd\ncgroupRoot:\ncontainerRuntimeEndpoint: /run/containerd/containerd.sock\n"), 0o600))
	if got, err := n.CheckKubelet(root, "/etc/kubernetes/manifests"); err != nil || len(got) > 0 {
		t.Errorf("%v: %q", err, got)
	}
}

func TestTheSettingsForAKubeletAreYAML(t *testing.T) {
	n := &Node{Name: "node1", Root: "/my disk", PodLogs: "/var/log/pods", CgroupDriver: cgroups.Systemd}
	for _, dir := range []string{"/m", "/m #1", "/m: x", "/m\nseccompDefault: true", "/m\n# root", "/\u007f\u0085", "/m "} {
		var got map[string]any
		text := n.KubeletSettings(dir)
		if err := yaml.Unmarshal([]byte(text), &got); err != nil || got["staticPodPath"] != dir || got["seccompDefault"] != false {
			t.Errorf("%q: %v\n%s", dir, err, text)
		}
		if !strings.Contains(text, "--root-dir='/my disk'\n") {
			t.Errorf("a shell takes the flag for two:\n%s", text)
		}
	}
}

func TestTheMountOfAPathIsFoundThoughItHasASpace(t *testing.T) {
	mounts := "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n23 22 8:2 /a\u3000b /my\\040disk rw - ext4 /dev/sdb1 rw\n"
	if at, isShared := sharedAt(mounts, "/my disk/monopod"); at != "/my disk" || isShared {
		t.Errorf("it is on the mount %q, shared: %v", at, isShared)
	}
}

func TestTheDriverOfAPodIsFoundByItsCgroupBelowTheRoot(t *testing.T) {
	const inV1, inV2 = "cpu/kubepods/besteffort/podu", "kubepods/besteffort/podu"
	for _, row := range []struct {
		about, cgroup string
		isUnified     bool
		want          cgroups.Driver
	}{
		{"version 1", inV1, false, cgroups.Cgroupfs},
		{"version 2", inV2, true, cgroups.Cgroupfs},
		{"version 2, of systemd", "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu.slice", true, cgroups.Systemd},
		{"version 2, below another root", "pods/" + inV2, true, cgroups.None},
		{"none", "cpu", false, cgroups.None},
	} {
		t.Run(row.about, func(t *testing.T) {
			mount := t.TempDir()
			noErr(t, os.MkdirAll(filepath.Join(mount, row.cgroup), 0o755))
			if row.isUnified {
				noErr(t, os.WriteFile(filepath.Join(mount, "cgroup.controllers"), []byte("cpu memory pids\n"), 0o644))
			}
			p := accepted(t, sleeps)
			p.UID = "u"
			if got := DriverOf(mount, "/", p); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

func TestAKubeletIsFound(t *testing.T) {
	proc := t.TempDir()
	process := func(id, name string) {
		noErr(t, os.MkdirAll(filepath.Join(proc, id), 0o755))
		noErr(t, os.WriteFile(filepath.Join(proc, id, "comm"), []byte(name+"\n"), 0o644))
	}
	process("1", "systemd")
	process("self", "kubelet")
	if k := Kubelet(proc); k != "" {
		t.Errorf("found %s", k)
	}
	process("742", "k3s-agent")
	if k := Kubelet(proc); k != "k3s-agent (process 742)" {
		t.Errorf("found %q", k)
	}
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
