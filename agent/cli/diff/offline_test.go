package diff

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/hold"
	"monopod/agent/outlook"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/agent/window"
	"monopod/manifests"
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

// has is a pod of the agent, as it reported it, with changes.
func has(p *manifests.Pod, phase v1.PodPhase, change ...func(*v1.Pod)) v1.Pod {
	out := *p.Pod.DeepCopy()
	out.Status = v1.PodStatus{Phase: phase, Conditions: []v1.PodCondition{{Type: v1.PodReady}}, ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "fake://c0"}}}
	for _, f := range change {
		f(&out)
	}
	return out
}

// noon is a Monday.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// offline says what manifests would change where no agent runs.
func offline(pods []v1.Pod, wishes hold.State, rules Rules, a *outlook.Asked) outlook.Report {
	rules.Suffix = "-n"
	n := Offline(&client.Known{Pods: pods}, wishes, rules, noon)
	n.World.Limits = func(p *manifests.Pod) update.Limits { return update.LimitsOf(p.Pod, 0, 0) }
	return n.Of(a)
}

func TestWithoutAnAgentTheLastReportsCount(t *testing.T) {
	v1st, v2nd := web(t, "img:1"), web(t, "img:2")
	never := func(p *v1.Pod) { p.Status.ContainerStatuses = nil }
	refused := func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfcpu"} }
	leaves := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	reports := func(p *v1.Pod) {
		status.SetProblems(p, []string{"the runtime is slow"})
		status.SetPulls(p, []status.Pull{{Text: "no image"}})
		p.Annotations[status.AnnHeld] = "held"
	}
	held := hold.State{Held: map[string]hold.Hold{"default/web-n": {Reason: "audit"}}}
	byNode := hold.State{Node: &hold.Hold{Reason: "a visit"}, Held: held.Held}
	stopped := hold.State{Stopped: map[string]hold.Stop{"default/web-n": {}}}
	windows, err := window.Parse("Sun 02:00-03:00")
	if err != nil {
		t.Fatal(err)
	}
	const audit, visit, image = "held: audit (`monopod release web` ends it)", "the node is held: a visit (`monopod release` ends it)", "spec.containers[c].image"
	for _, row := range []struct {
		name    string
		has     []v1.Pod
		wishes  hold.State
		rules   Rules
		desired *manifests.Pod // nil: none, and the manifests are all that there are
		want    string
	}{
		{"one that was not there", nil, hold.State{}, Rules{}, v1st, `new "" ""`},
		{"one that runs so, whatever was reported of it", []v1.Pod{has(v1st, v1.PodRunning, reports)}, hold.State{}, Rules{}, v1st, `unchanged "" ""`},
		{"another version", []v1.Pod{has(v1st, v1.PodRunning, reports)}, hold.State{}, Rules{}, v2nd, fmt.Sprintf("restarted %q %q", image, "")},
		{"another version by the settings", []v1.Pod{has(v1st, v1.PodRunning)}, hold.State{}, Rules{Policy: update.PolicyReplace}, v2nd, `replaced "any change replaces it, as the setting updatePolicy says" ""`},
		{"one that leaves comes back as another", []v1.Pod{has(v1st, v1.PodRunning, leaves)}, hold.State{}, Rules{}, v1st, `new "" ""`},
		{"one that has ended", []v1.Pod{has(v1st, v1.PodSucceeded)}, held, Rules{}, v2nd, `replaced "it has ended, and runs again" ""`},
		{"one that was refused", []v1.Pod{has(v1st, v1.PodFailed, refused)}, hold.State{}, Rules{}, v2nd, `new "" ""`},
		{"one that was never made", []v1.Pod{has(v1st, v1.PodPending, never)}, held, Rules{}, v2nd, fmt.Sprintf("restarted %q %q", image, "")},
		{"one that was stopped", []v1.Pod{has(v1st, v1.PodPending)}, stopped, Rules{}, v2nd, fmt.Sprintf("restarted %q %q", image, "stopped by request; `monopod start` runs it again")},
		{"one that is held", []v1.Pod{has(v1st, v1.PodRunning)}, byNode, Rules{}, v2nd, fmt.Sprintf("restarted %q %q", image, audit+"; "+visit)},
		{"outside of the window", []v1.Pod{has(v1st, v1.PodRunning)}, hold.State{}, Rules{Gate: rollout.Rules{Windows: windows}}, v2nd,
			fmt.Sprintf("restarted %q %q", image, "outside of the update window, which opens Sun 2026-05-10 02:00:00 UTC")},
		{"a removal", []v1.Pod{has(v1st, v1.PodRunning)}, byNode, Rules{}, nil, fmt.Sprintf(`removed "" %q`, audit+"; "+visit)},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := outlook.About(nil, nil, true)
			if row.desired != nil {
				asked = outlook.About([]*manifests.Pod{row.desired}, nil, false)
			}
			r := offline(row.has, row.wishes, row.rules, asked)
			if len(r.Pods) != 1 {
				t.Fatalf("%+v", r)
			}
			if p := r.Pods[0]; fmt.Sprintf("%s %q %q", p.Action, p.Reason, p.Waits) != row.want {
				t.Errorf("\n got  %s %q %q\n want %s", p.Action, p.Reason, p.Waits, row.want)
			}
			if len(row.has) > 0 && row.name == "another version" && row.has[0].Annotations[status.AnnHeld] == "" {
				t.Error("the reported pod is changed")
			}
		})
	}
}
