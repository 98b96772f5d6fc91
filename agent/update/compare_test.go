package update

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
