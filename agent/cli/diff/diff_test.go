package diff

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/window"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// web is default/web-n with an image, as a manifest gives it.
func web(t *testing.T, image string) *manifests.Pod {
	t.Helper()
	pods, problems := manifests.Decode("/m/web.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: '"+image+"'}]}\n"), manifests.Options{NodeName: "n", NameSuffix: true})
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	return pods[0]
}

// has is a pod of the agent, as it reports it, with changes.
func has(p *manifests.Pod, phase v1.PodPhase, change ...func(*v1.Pod)) v1.Pod {
	out := *p.Pod.DeepCopy()
	out.Status = v1.PodStatus{Phase: phase, ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "fake://c0"}}}
	for _, f := range change {
		f(&out)
	}
	return out
}

// said writes a report in one line: of each pod the action and what that waits for.
func said(r Report) string {
	var all []string
	for _, p := range r.Pods {
		text := string(p.Action) + " " + p.Name
		if p.Waits != "" {
			text += " waits: " + p.Waits
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestWhatBecomesOfAPod(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	saying := func(word string) *manifests.Pod {
		p := *v2nd
		p.Pod = v2nd.Pod.DeepCopy()
		p.Annotations["monopod.update"] = word
		return &p
	}
	never := func(p *v1.Pod) { p.Status.ContainerStatuses = nil }
	held := func(p *v1.Pod) { status.SetProblems(p, nil); p.Annotations[status.AnnHeld] = "held: audit" }
	leaves := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	far := func(p *v1.Pod) { p.Annotations["kubernetes.io/config.source"] = "http" }
	node := Gate{Node: "the node is held: a visit"}
	const byNode, byBoth = " waits: the node is held: a visit", " waits: held: audit; the node is held: a visit"
	for _, row := range []struct {
		name    string
		has     []v1.Pod
		desired []*manifests.Pod
		whole   bool // the manifests are all that there are
		policy  string
		gate    Gate
		want    string
	}{
		{"one that the agent does not have", nil, []*manifests.Pod{v1st}, false, "", Gate{}, "new default/web-n"},
		{"one that it has so", []v1.Pod{has(v1st, v1.PodRunning)}, []*manifests.Pod{v1st}, false, "", Gate{}, "unchanged default/web-n"},
		{"another version", []v1.Pod{has(v1st, v1.PodRunning)}, []*manifests.Pod{v2nd}, false, "", Gate{}, "restarted default/web-n"},
		{"another version where pods are replaced", []v1.Pod{has(v1st, v1.PodRunning)}, []*manifests.Pod{v2nd}, false, update.PolicyReplace, Gate{}, "replaced default/web-n"},
		{"another version that says replace", []v1.Pod{has(v1st, v1.PodRunning)}, []*manifests.Pod{saying("replace")}, false, "", Gate{}, "replaced default/web-n"},
		{"another version that says in place where pods are replaced", []v1.Pod{has(v1st, v1.PodRunning)}, []*manifests.Pod{saying("InPlace")}, false, update.PolicyReplace, Gate{}, "restarted default/web-n"},
		{"another version of one that has ended", []v1.Pod{has(v1st, v1.PodSucceeded)}, []*manifests.Pod{v2nd}, false, "", Gate{}, "replaced default/web-n"},
		{"one that leaves comes back as another", []v1.Pod{has(v1st, v1.PodRunning, leaves)}, []*manifests.Pod{v1st}, false, "", Gate{}, "new default/web-n"},
		{"one beside the files", []v1.Pod{has(v1st, v1.PodRunning)}, nil, false, "", Gate{}, ""},
		{"one that no file gives any more", []v1.Pod{has(v1st, v1.PodRunning)}, nil, true, "", Gate{}, "removed default/web-n"},
		{"one of the URL", []v1.Pod{has(v1st, v1.PodRunning, far)}, nil, true, "", Gate{}, ""},

		{"what does not change waits for nothing", []v1.Pod{has(v1st, v1.PodRunning, held)}, []*manifests.Pod{v1st}, false, "", node, "unchanged default/web-n"},
		{"a new one waits for the node", nil, []*manifests.Pod{v1st}, false, "", node, "new default/web-n" + byNode},
		{"a change waits for the pod's hold and the node's", []v1.Pod{has(v1st, v1.PodRunning, held)}, []*manifests.Pod{v2nd}, false, "", node, "restarted default/web-n" + byBoth},
		{"a removal waits for both", []v1.Pod{has(v1st, v1.PodRunning, held)}, nil, true, "", node, "removed default/web-n" + byBoth},
		{"one that never was waits for the node alone", []v1.Pod{has(v1st, v1.PodPending, held, never)}, []*manifests.Pod{v2nd}, false, "", node, "restarted default/web-n" + byNode},
		{"one that has ended waits for the node alone", []v1.Pod{has(v1st, v1.PodFailed, held)}, []*manifests.Pod{v2nd}, false, "", node, "replaced default/web-n" + byNode},
		{"its removal waits for nothing", []v1.Pod{has(v1st, v1.PodFailed, held)}, nil, true, "", node, "removed default/web-n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Of(&client.Known{Pods: row.has}, row.desired, nil, row.whole, row.policy, row.gate)
			if got := said(r); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			changes := 0
			if row.want != "" && !strings.HasPrefix(row.want, "unchanged") {
				changes = 1
			}
			if r.Changes != changes {
				t.Errorf("%d changes, want %d", r.Changes, changes)
			}
		})
	}
}

func TestAChangeWaitsForTheUpdateWindow(t *testing.T) {
	windows, err := window.Parse("Sun 02:00-03:00")
	if err != nil {
		t.Fatal(err)
	}
	desired, pods := []*manifests.Pod{web(t, "img:2")}, []v1.Pod{has(web(t, "img:1"), v1.PodRunning)}
	for at, want := range map[time.Time]string{
		time.Date(2026, 1, 4, 2, 30, 0, 0, time.Local): "restarted default/web-n",
		time.Date(2026, 1, 4, 3, 30, 0, 0, time.Local): "restarted default/web-n waits: outside of the update window, which opens Sun",
	} {
		got := said(Of(&client.Known{Pods: pods}, desired, nil, false, "", Gate{Window: windows.Closed(at)}))
		if !strings.HasPrefix(got, want) || strings.Contains(got, "window") != strings.Contains(want, "window") {
			t.Errorf("at %s: %q, want %q", at, got, want)
		}
	}
}

// What the agent adds to a pod that it reports is no difference.
func TestTheAgentsOwnAnnotationsAreNoDifference(t *testing.T) {
	p := web(t, "img:1")
	reported := has(p, v1.PodRunning, func(p *v1.Pod) {
		status.SetProblems(p, []string{"the runtime is slow"})
		p.Annotations[status.AnnHeld] = "held"
	})
	if r := Of(&client.Known{Pods: []v1.Pod{reported}}, []*manifests.Pod{p}, nil, false, "", Gate{}); r.Pods[0].Action != Unchanged || r.Pods[0].Difference != nil {
		t.Errorf("got %+v", r.Pods[0])
	}
	if reported.Annotations[status.AnnHeld] == "" {
		t.Error("the agent's pod is changed")
	}
}

func TestAReportForAPerson(t *testing.T) {
	k := &client.Known{Pods: []v1.Pod{has(web(t, "img:1"), v1.PodRunning)}}
	other := web(t, "img:1")
	other.Name = "other-n"
	var out strings.Builder
	r := Of(k, []*manifests.Pod{web(t, "img:2"), other}, map[string]string{"default/web-n": "web.yaml"}, false, "", Gate{})
	if err := r.Print(&out, ""); err != nil {
		t.Fatal(err)
	}
	const want = "new         default/other-n\nrestarted   default/web-n (web.yaml)\n    because: spec.containers[c].image\n    spec.containers[c].image: \"img:1\" -> \"img:2\"\n1 new, 1 restarted\n"
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	if err := (Report{}).Print(&out, ""); err != nil || out.String() != "no pods\n" {
		t.Errorf("of none it says %q: %v", out.String(), err)
	}
}

// What a pod is replaced or restarted for is told, also where it is no field, and the lock that may
// keep that away.
func TestAReplacedOrRestartedPodNamesItsReason(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	with := func(p *manifests.Pod, change func(*v1.Pod)) *manifests.Pod {
		next := *p
		next.Pod = p.Pod.DeepCopy()
		change(next.Pod)
		next.Digest = manifests.Restored(next.Pod)
		return &next
	}
	lockable := with(v1st, func(p *v1.Pod) {
		p.Annotations[decode.AnnotationUpdateLock] = "/run/lock"
		p.Spec.Volumes = []v1.Volume{{Name: "run", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "run", MountPath: "/run"}}
	})
	edited := with(lockable, func(p *v1.Pod) { p.Spec.Containers[0].Image = "img:2" })
	hostname := with(v2nd, func(p *v1.Pod) { p.Spec.Hostname = "other" })
	for _, row := range []struct {
		name          string
		has           v1.Pod
		next          *manifests.Pod
		policy        string
		reason, waits string
	}{
		{"a field of a container", has(v1st, v1.PodRunning), v2nd, "", "spec.containers[c].image", ""},
		{"a field of the sandbox, among others", has(v1st, v1.PodRunning), hostname, "", "spec.hostname", ""},
		{"the policy", has(v1st, v1.PodRunning), v2nd, update.PolicyReplace, "each change replaces it: updatePolicy, or its annotation monopod.update, says so", ""},
		{"its end", has(v1st, v1.PodSucceeded), v2nd, "", "it has ended, and runs again", ""},
		{"a lock", has(lockable, v1.PodRunning), edited, "", "spec.containers[c].image", "the lock of its workload, if /run/lock is there"},
		{"nothing", has(v1st, v1.PodRunning), v1st, "", "", ""},
	} {
		r := Of(&client.Known{Pods: []v1.Pod{row.has}}, []*manifests.Pod{row.next}, nil, false, row.policy, Gate{})
		if p := r.Pods[0]; p.Reason != row.reason || p.Waits != row.waits {
			t.Errorf("%s: %s because of %q, waits for %q, want %q and %q", row.name, p.Action, p.Reason, p.Waits, row.reason, row.waits)
		}
	}
}

// The trial is that of the settings, or of the pod's own annotation.
func TestAPodThatGivesWayUnlessItWorksSaysSo(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	own := *v2nd
	own.Pod = v2nd.Pod.DeepCopy()
	own.Annotations[decode.AnnotationUpdateHealth] = "45s"
	own.Digest = manifests.Restored(own.Pod)
	says := func(within string) string {
		return "the version that runs comes back, if it works, unless this one is ready within " + within + " and stays so for 10s"
	}
	for _, row := range []struct {
		name   string
		has    []v1.Pod
		next   *manifests.Pod
		health time.Duration
		want   string
	}{
		{"none is asked for", []v1.Pod{has(v1st, v1.PodRunning)}, v2nd, 0, ""},
		{"by the setting", []v1.Pod{has(v1st, v1.PodRunning)}, v2nd, time.Minute, says("1m0s")},
		{"by the annotation", []v1.Pod{has(v1st, v1.PodRunning)}, &own, time.Minute, says("45s")},
		{"nothing starts", []v1.Pod{has(v1st, v1.PodRunning)}, v1st, time.Minute, ""},
		{"nothing ran", nil, v2nd, time.Minute, ""},
		{"what ran has ended", []v1.Pod{has(v1st, v1.PodSucceeded)}, v2nd, time.Minute, ""},
	} {
		k, desired := &client.Known{Pods: row.has}, []*manifests.Pod{row.next}
		r := Of(k, desired, nil, false, "", Gate{})
		r.AddTrials(k, desired, row.health, 10*time.Second)
		if got := r.Pods[0].Trial; got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
