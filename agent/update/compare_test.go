package update

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

// short writes the containers of a verdict as the rows have them.
func short(v Verdict) string {
	var out []string
	for _, c := range v.Containers {
		out = append(out, fmt.Sprintf("%s=%s", c.Name, c.Kind))
	}
	return strings.Join(out, " ")
}

func (r *row) check(t *testing.T, old, edited *v1.Pod) {
	t.Helper()
	before, after := old.DeepCopy(), edited.DeepCopy()
	v := Compare(old, edited)
	if v.Kind != r.kind || short(v) != r.of {
		t.Errorf("%v of %q, want %v of %q: %v", v.Kind, short(v), r.kind, r.of, v.Fields)
	}
	if r.field != "" && !slices.ContainsFunc(v.Fields, func(f Field) bool { return f.String() == r.field }) {
		t.Errorf("the fields lack %q: %v", r.field, v.Fields)
	}
	if (v.Kind == Nothing) != (len(v.Fields) == 0) {
		t.Errorf("%v with the fields %v", v.Kind, v.Fields)
	}
	for _, f := range v.Fields {
		for _, secret := range []string{"hunter", "opensesame", "sesame2", "s3cret"} {
			if strings.Contains(f.String()+f.Note, secret) {
				t.Errorf("a secret is told: %s", f)
			}
		}
	}
	if back := Compare(edited, old); (back.Kind == Nothing) != (v.Kind == Nothing) {
		t.Errorf("the other way round it is %v", back.Kind)
	}
	if !reflect.DeepEqual(before, old) || !reflect.DeepEqual(after, edited) {
		t.Error("a pod was changed")
	}
}

func TestTheVerdictFollowsFromTheFields(t *testing.T) {
	rows := slices.Concat(same, live, resize, restart, replace)
	if len(rows) < 120 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, r := range rows {
		t.Run(strings.ReplaceAll(r.name, "/", " "), func(t *testing.T) { r.check(t, pod(t), pod(t, r.edit)) })
	}
}

// of edits two versions alike first.
func TestTheVerdictOfOtherPods(t *testing.T) {
	csi := spec(func(s *v1.PodSpec) {
		s.Volumes[1].VolumeSource = v1.VolumeSource{CSI: &v1.CSIVolumeSource{NodePublishSecretRef: &v1.LocalObjectReference{Name: "a"}}}
	})
	near := spec(func(s *v1.PodSpec) {
		s.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}}}
	})
	never := spec(func(s *v1.PodSpec) { s.RestartPolicy = v1.RestartPolicyNever })
	ending := app(func(c *v1.Container) { c.RestartPolicy = new(v1.ContainerRestartPolicyNever) })
	privileged := bare(func(c *v1.Container) { c.SecurityContext = &v1.SecurityContext{Privileged: new(true)} })
	whole := spec(func(s *v1.PodSpec) { s.Resources = podResources("2", "2Gi") })
	wholeOf := func(cpu, memory string) func(*v1.Pod) {
		return spec(func(s *v1.PodSpec) { s.Resources = podResources(cpu, memory) })
	}
	alone := spec(func(s *v1.PodSpec) { s.Containers, s.InitContainers = s.Containers[2:], nil })
	first := func(edit func(*v1.Container)) func(*v1.Pod) { return app(edit) }
	guaranteed := both(alone, first(limit("cpu", "1")), first(limit("memory", "1Gi")))
	for _, r := range []struct {
		of func(*v1.Pod)
		row
	}{
		{csi, row{"another secret of a volume", spec(func(s *v1.PodSpec) { s.Volumes[1].CSI.NodePublishSecretRef.Name = "b" }), Replace, "", ""}},
		{near, row{"the labels of an affinity", spec(func(s *v1.PodSpec) {
			s.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"] = "b"
		}), Replace, "", ""}},
		{never, row{"a pod that ends, image", app(func(c *v1.Container) { c.Image = "web:2" }), Replace, "", `spec.containers[app].image: "web:1" -> "web:2"`}},
		{never, row{"a pod that ends, label", func(p *v1.Pod) { p.Labels["app"] = "api" }, Live, "", ""}},
		{never, row{"a pod that ends, cpu", app(limit("cpu", "2")), Resize, "app=resize", ""}},
		{never, row{"a pod that ends, memory by a restart", side(request("memory", "64Mi")), Replace, "", ""}},
		{ending, row{"a container that ended, and is to run on", app(func(c *v1.Container) { c.RestartPolicy = nil }), Replace, "", ""}},
		{privileged, row{"privileges of a second", security(func(s *v1.SecurityContext) { s.Privileged = new(true) }), Restart, "app=restart", ""}},
		{privileged, row{"the last privileges", bare(func(c *v1.Container) { c.SecurityContext = nil }), Replace, "", ""}},
		{whole, row{"pod-level cpu", wholeOf("3", "2Gi"), Resize, "side=resize bare=resize", `spec.resources.limits[cpu]: 2 -> 3`}},
		{whole, row{"pod-level cpu of 0, which is no limit", wholeOf("0", "2Gi"), Replace, "", `spec.resources.limits[cpu]: 2 -> 0`}},
		{whole, row{"pod-level memory", wholeOf("2", "3Gi"), Restart, "side=restart bare=resize", ""}},
		{whole, row{"pod-level resources gone", spec(func(s *v1.PodSpec) { s.Resources = nil }), Replace, "", "spec.resources: removed"}},
		{whole, row{"a pod-level limit gone", spec(func(s *v1.PodSpec) { delete(s.Resources.Limits, "memory") }), Replace, "", ""}},
		{alone, row{"BestEffort becomes Burstable", first(request("cpu", "1")), Replace, "", "status.qosClass: BestEffort -> Burstable"}},
		{alone, row{"BestEffort becomes Guaranteed", both(first(limit("cpu", "1")), first(limit("memory", "1Gi"))), Replace, "", "status.qosClass: BestEffort -> Guaranteed"}},
		{guaranteed, row{"Guaranteed stays Guaranteed", first(limit("cpu", "2")), Resize, "bare=resize", ""}},
		{guaranteed, row{"a request below the limit", first(request("cpu", "500m")), Replace, "", "status.qosClass: Guaranteed -> Burstable"}},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, pod(t, r.of), pod(t, r.of, r.edit)) })
	}
}

// A variable has the value of the time when its container started.
func TestWhatVariablesKeepIsNoted(t *testing.T) {
	for _, r := range []struct {
		name string
		edit func(*v1.Pod)
		path string
		note string
	}{
		{"a label", func(p *v1.Pod) { p.Labels["tier"] = "back" }, "metadata.labels[tier]", "variable TIER of container app keeps its value until that restarts"},
		{"another label", func(p *v1.Pod) { p.Labels["app"] = "api" }, "metadata.labels[app]", ""},
		{"an annotation", annotate("team", "red"), "metadata.annotations[team]", "variable TEAM of container app keeps its value until that restarts"},
		{"a limit", app(limit("cpu", "2")), "spec.containers[app].resources.limits[cpu]", "variable CPUS of container app keeps its value until that restarts"},
		{"a request of memory", app(request("memory", "96Mi")), "spec.containers[app].resources.requests[memory]", "the OOM score stays until the container restarts"},
		{"with a restart", both(annotate("team", "red"), app(func(c *v1.Container) { c.TTY = true })), "metadata.annotations[team]", ""},
		{"with a restart of another", both(annotate("team", "red"), side(func(c *v1.Container) { c.TTY = true })), "metadata.annotations[team]",
			"variable TEAM of container app keeps its value until that restarts"},
		{"with another pod", both(annotate("team", "red"), spec(func(s *v1.PodSpec) { s.HostPID = true })), "metadata.annotations[team]", ""},
	} {
		v := Compare(pod(t), pod(t, r.edit))
		i := slices.IndexFunc(v.Fields, func(f Field) bool { return f.Path == r.path })
		if i < 0 {
			t.Errorf("%s: %v lack %s", r.name, v.Fields, r.path)
		} else if v.Fields[i].Note != r.note {
			t.Errorf("%s: noted %q, want %q", r.name, v.Fields[i].Note, r.note)
		}
	}
}

func TestAResizeNotesVolumesInMemory(t *testing.T) {
	inMemory := spec(func(s *v1.PodSpec) {
		s.Volumes = append(s.Volumes, v1.Volume{Name: "shm", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}})
	})
	onDisk := Compare(pod(t), pod(t, app(limit("memory", "1Gi"))))
	if len(onDisk.Fields) != 1 || onDisk.Fields[0].Note != "" {
		t.Errorf("of volumes on disk it notes %+v", onDisk.Fields)
	}
	v := Compare(pod(t, inMemory), pod(t, inMemory, app(limit("memory", "1Gi"))))
	if want := "volumes in memory keep their size until the pod is replaced"; v.Kind != Resize || len(v.Fields) != 1 || v.Fields[0].Note != want {
		t.Errorf("%v of %+v", v.Kind, v.Fields)
	}
}

func TestLongValuesAreShortened(t *testing.T) {
	long := func(end string) func(*v1.Pod) {
		return app(func(c *v1.Container) { c.Args = []string{strings.Repeat("é", 200) + end + strings.Repeat("x", 200)} })
	}
	v := Compare(pod(t, long("old")), pod(t, long("new")))
	if len(v.Fields) != 1 {
		t.Fatal(v.Fields)
	}
	change := v.Fields[0].Change
	if n := len([]rune(change)); n > 120 || !strings.Contains(change, "old") || !strings.Contains(change, "new") || strings.ContainsRune(change, '\uFFFD') {
		t.Errorf("%d characters: %s", n, change)
	}
}

// Of each text 48 characters are told: 12 before the first that differs, if there are more before it.
func TestWhichPartOfAValueIsTold(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, row := range []struct{ name, a, b, want string }{
		{"short ones", "a", "b", "a -> b"},
		{"as long as one is told", x(47) + "a", x(47) + "b", x(47) + "a -> " + x(47) + "b"},
		{"the beginning differs", "a" + x(50), "b" + x(50), "a" + x(47) + "… -> b" + x(47) + "…"},
		{"one that differs after twelve", x(12) + "a" + x(50), x(12) + "b" + x(50), x(12) + "a" + x(35) + "… -> " + x(12) + "b" + x(35) + "…"},
		{"one that differs after thirteen", x(13) + "a" + x(50), x(13) + "b" + x(50), "…" + x(12) + "a" + x(35) + "… -> …" + x(12) + "b" + x(35) + "…"},
		{"the end differs", x(50) + "a", x(50) + "b", "…" + x(47) + "a -> …" + x(47) + "b"},
		{"what is told reaches just to the end", x(20) + "a" + x(35), x(20) + "b" + x(35), "…" + x(12) + "a" + x(35) + " -> …" + x(12) + "b" + x(35)},
		{"what is told reaches just not to the end", x(20) + "a" + x(36), x(20) + "b" + x(36), "…" + x(12) + "a" + x(35) + "… -> …" + x(12) + "b" + x(35) + "…"},
	} {
		if got := shorten(row.a, row.b); got != row.want {
			t.Errorf("%s:\n got  %s\n want %s", row.name, got, row.want)
		}
	}
}

func TestAKindIsReadByItsName(t *testing.T) {
	for name, want := range map[string]Kind{"nothing": Nothing, "live": Live, "replace": Replace} {
		k := Kind(9)
		if err := k.UnmarshalText([]byte(name)); err != nil || k != want {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	k := Restart
	if err := k.UnmarshalText([]byte("odd")); err == nil || k != Restart {
		t.Errorf("no kind: %v, %v", k, err)
	}
}

func TestAVerdictInALine(t *testing.T) {
	field := Field{Path: "spec.hostPID", Change: "false -> true"}
	for want, v := range map[string]Verdict{
		"nothing":                              {},
		"replace: spec.hostPID: false -> true": {Kind: Replace, Fields: []Field{field}},
		"replace: spec.hostPID: false -> true, and 2 more": {Kind: Replace, Fields: []Field{field, {}, {}}},
	} {
		if got := v.Summary(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhyAPodBecomesTheNextVersionSo(t *testing.T) {
	live, first, second := Field{Path: "metadata.labels[app]", Kind: Live}, Field{Path: "spec.hostPID", Kind: Replace}, Field{Path: "spec.hostIPC", Kind: Replace}
	plain, annotated := pod(t), pod(t, annotate("monopod.update", "replace"))
	for _, row := range []struct {
		name string
		v    Verdict
		next *v1.Pod
		want string
	}{
		{"fields take it", Verdict{Kind: Replace, Fields: []Field{first, live, second}}, plain, "spec.hostPID, spec.hostIPC"},
		{"fields take it, whatever its annotation says", Verdict{Kind: Replace, Fields: []Field{first}}, annotated, "spec.hostPID"},
		{"nothing changes", Verdict{}, annotated, ""},
		{"its annotation says so", Verdict{Kind: Replace, Fields: []Field{live}}, annotated, "any change replaces it, as its annotation monopod.update says"},
		{"the setting says so", Verdict{Kind: Replace, Fields: []Field{live}}, plain, "any change replaces it, as the setting updatePolicy says"},
		{"of containers that restart as their pod's limits change", Verdict{Kind: Restart, Fields: []Field{live}}, plain, ""},
	} {
		if got := row.v.Because(row.next); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// What is being made of a version is kept where the next one has it alike.
func TestWhatIsBeingMadeIsKept(t *testing.T) {
	version := func(digest string, edits ...func(*v1.Pod)) *manifests.Pod {
		return &manifests.Pod{Pod: pod(t, edits...), Digest: digest}
	}
	image := app(func(c *v1.Container) { c.Image = "web:2" })
	replaced := spec(func(s *v1.PodSpec) { s.HostPID = true })
	for _, row := range []struct {
		name      string
		next      *manifests.Pod
		container string
		policy    string
		want      bool
	}{
		{"the same version", version("d1", replaced), "app", PolicyInPlace, true},
		{"nothing restarts", version("d2", app(limit("cpu", "2"))), "app", PolicyInPlace, true},
		{"nothing restarts, but any change replaces it", version("d2", app(limit("cpu", "2"))), "app", PolicyReplace, false},
		{"the container restarts", version("d2", image), "app", PolicyInPlace, false},
		{"another one restarts", version("d2", image), "side", PolicyInPlace, true},
		{"one restarts, of a sandbox", version("d2", image), "", PolicyInPlace, false},
		{"the pod is replaced", version("d2", replaced), "app", PolicyInPlace, false},
	} {
		if got := Keeps(version("d1"), row.next, row.container, row.policy); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if v := Planned(version("d1"), version("d2", image), PolicyReplace); v.Kind != Replace || len(v.Containers) > 0 {
		t.Errorf("a pod that any change replaces: %v of %v", v.Kind, v.Containers)
	}
	if v := Planned(version("d1"), version("d2", image), PolicyInPlace); v.Kind != Restart || len(v.Containers) != 1 {
		t.Errorf("a pod that changes in place: %v of %v", v.Kind, v.Containers)
	}
}

func TestThePolicyDecidesWhatAVerdictComesTo(t *testing.T) {
	for _, k := range []Kind{Nothing, Live, Resize, Restart, Replace} {
		if got := Plan(Verdict{Kind: k}, false, PolicyInPlace); got != k {
			t.Errorf("%v is planned as %v", k, got)
		}
		if got := Plan(Verdict{Kind: k}, false, PolicyReplace); got != Replace {
			t.Errorf("%v is planned as %v", k, got)
		}
	}
	for _, policy := range []string{PolicyInPlace, PolicyReplace} {
		if got := Plan(Verdict{}, true, policy); got != Nothing {
			t.Errorf("the same manifest is planned as %v", got)
		}
		if got := Plan(Verdict{Kind: Replace}, true, policy); got != Replace { // a uid is in no digest
			t.Errorf("another uid is planned as %v", got)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{Nothing: "nothing", Live: "live", Resize: "resize", Restart: "restart", Replace: "replace", 7: "Kind(7)"} {
		if text, _ := k.MarshalText(); k.String() != want || string(text) != want {
			t.Errorf("%d is %s and %s, want %s", int(k), k, text, want)
		}
	}
}

// People read what a field says as its file does: JSON escapes nothing for HTML.
func TestAFieldIsToldWithoutEscapes(t *testing.T) {
	v := Compare(pod(t), pod(t, app(func(c *v1.Container) { c.Command = []string{"sh", "-c", "a <b >c && d"} })))
	var told []string
	for _, f := range v.Fields {
		told = append(told, f.String())
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, `["sh","-c","a <b >c && d"]`) {
		t.Error(text)
	}
}
