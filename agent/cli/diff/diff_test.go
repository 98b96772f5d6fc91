package diff

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/hold"
	"monopod/agent/outlook"
	"monopod/manifests"
)

// printed is what a person reads of one version in the place of another.
func printed(t *testing.T, is *manifests.Pod, change func(*v1.Pod)) string {
	t.Helper()
	next := *is
	next.Pod = is.Pod.DeepCopy()
	change(next.Pod)
	next.Digest = manifests.Restored(next.Pod)
	r := offline([]v1.Pod{has(is, v1.PodRunning)}, hold.State{}, Rules{}, outlook.About([]*manifests.Pod{&next}, nil, false))
	var out strings.Builder
	err := Print(&out, &r, "")
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAReportForAPerson(t *testing.T) {
	limit := func(cpu string) v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)} }
	two := web(t, "img:1")
	two.Spec.Containers = append(two.Spec.Containers, *two.Spec.Containers[0].DeepCopy())
	two.Spec.Containers[1].Name = "d"
	for k := range two.Spec.Containers {
		two.Spec.Containers[k].Resources = v1.ResourceRequirements{Limits: limit("1"), Requests: limit("1")}
	}
	two.Digest = manifests.Restored(two.Pod)
	for _, row := range []struct {
		name   string
		change func(*v1.Pod)
		want   string
	}{
		{"nothing", func(*v1.Pod) {}, "unchanged   default/web-n\n1 unchanged\n"},
		{"what takes no restart", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} },
			"updated     default/web-n\n    in place: nothing restarts\n    metadata.labels[a]: unset -> \"b\"\n1 updated\n"},
		{"a resize", func(p *v1.Pod) { p.Spec.Containers[1].Resources.Limits = limit("2") },
			"resized     default/web-n\n    in place: container d is resized, nothing restarts\n    spec.containers[d].resources.limits[cpu]: 1 -> 2\n1 resized\n"},
		{"containers", func(p *v1.Pod) { p.Spec.Containers[0].Image = "img:2"; p.Spec.Containers[1].Image = "img:2" },
			"restarted   default/web-n\n    because: spec.containers[c].image, spec.containers[d].image\n    in place: containers c, d restart\n" +
				"    spec.containers[c].image: \"img:1\" -> \"img:2\"\n    spec.containers[d].image: \"img:1\" -> \"img:2\"\n1 restarted\n"},
		{"one of them, and the other is resized", func(p *v1.Pod) {
			p.Spec.Containers[0].Image = "img:2"
			p.Spec.Containers[1].Resources.Limits = limit("2")
		},
			"restarted   default/web-n\n    because: spec.containers[c].image\n    in place: container c restarts, container d is resized\n" +
				"    spec.containers[c].image: \"img:1\" -> \"img:2\"\n    spec.containers[d].resources.limits[cpu]: 1 -> 2\n1 restarted\n"},
		{"the sandbox", func(p *v1.Pod) { p.Spec.Hostname = "other" },
			"replaced    default/web-n\n    because: spec.hostname\n    spec.hostname: unset -> \"other\"\n1 replaced\n"},
	} {
		if got := printed(t, two, row.change); got != row.want {
			t.Errorf("%s:\n%swant\n%s", row.name, got, row.want)
		}
	}
	var out strings.Builder
	err := Print(&out, &outlook.Report{}, "")
	if err != nil || out.String() != "no pods\n" {
		t.Errorf("of none it says %q: %v", out.String(), err)
	}
}

func TestAPodThatWaitsSaysForWhat(t *testing.T) {
	r := &outlook.Report{Pods: []outlook.Pod{
		{Name: "default/db-n", Action: outlook.Unchanged, Objects: []string{`Secret "s": volumes follow`}},
		{Name: "default/web-n", File: "web.yaml", Action: outlook.New, Waits: "no cpu is left", Trial: "it comes back"},
		{Name: "default/x-n", Action: outlook.Unchanged, RolledBack: "update rolled back: it failed"}}}
	var out strings.Builder
	err := Print(&out, r, "")
	const want = "unchanged   default/db-n\n    Secret \"s\": volumes follow\nnew         default/web-n (web.yaml)\n    waits: no cpu is left\n    on trial: it comes back\n" +
		"unchanged   default/x-n\n    update rolled back: it failed\n2 unchanged, 1 new\n"
	if err != nil || out.String() != want {
		t.Errorf("it says\n%swant\n%s", out.String(), want)
	}
}
