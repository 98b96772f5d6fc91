package overview

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// store is a folder of reports until the test ends.
func store(t *testing.T) *status.Store {
	t.Helper()
	s, err := status.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func labels(uid string) map[string]string { return map[string]string{podspec.LabelPodUID: uid} }

func sandbox(uid string, state rt.PodSandboxState) *rt.PodSandbox {
	return &rt.PodSandbox{Labels: labels(uid), State: state}
}

func container(uid, name, image string, state rt.ContainerState) *rt.Container {
	return &rt.Container{Labels: labels(uid), Metadata: &rt.ContainerMetadata{Name: name}, Image: &rt.ImageSpec{Image: "sha256:0", UserSpecifiedImage: image}, State: state}
}

func TestWhatRunsOfAPodName(t *testing.T) {
	const ready, gone = rt.PodSandboxState_SANDBOX_READY, rt.PodSandboxState_SANDBOX_NOTREADY
	const runs, exited = rt.ContainerState_CONTAINER_RUNNING, rt.ContainerState_CONTAINER_EXITED
	for _, row := range []struct {
		name   string
		listed pleg.Listed
		want   string // uids, each with its containers
	}{
		{"nothing", pleg.Listed{}, ""},
		{"a sandbox that is ready", pleg.Listed{Sandboxes: []*rt.PodSandbox{sandbox("1", ready)}}, "1:"},
		{"not one that is dead", pleg.Listed{Sandboxes: []*rt.PodSandbox{sandbox("1", gone)}}, ""},
		{"a container that outlives its sandbox", pleg.Listed{Sandboxes: []*rt.PodSandbox{sandbox("1", gone)}, Containers: []*rt.Container{container("1", "a", "img:1", runs)}}, "1: a=img:1"},
		{"not one that has exited", pleg.Listed{Sandboxes: []*rt.PodSandbox{sandbox("1", ready)}, Containers: []*rt.Container{container("1", "a", "img:1", exited)}}, "1:"},
		{"an image that has an id alone", pleg.Listed{Containers: []*rt.Container{container("1", "a", "", runs)}}, "1: a=sha256:0"},
		{"containers by name, instances by uid", pleg.Listed{Containers: []*rt.Container{
			container("2", "b", "img:2", runs), container("2", "a", "img:1", runs), container("1", "c", "img:3", runs)}}, "1: c=img:3; 2: a=img:1 b=img:2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, p := range runningOf(manifests.Key{Namespace: "default", Name: "web-n"}, &row.listed) {
				if p.Namespace != "default" || p.Name != "web-n" {
					t.Errorf("it is of %s/%s", p.Namespace, p.Name)
				}
				text := string(p.UID) + ":"
				for _, c := range p.Spec.Containers {
					text += fmt.Sprintf(" %s=%s", c.Name, c.Image)
				}
				got = append(got, text)
			}
			if got := strings.Join(got, "; "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestLookedAtOnceEachDesiredPodHasAStatus(t *testing.T) {
	s := store(t)
	desired := map[string]bool{"default/a": true, "default/b": true}
	looked := func(want string, before ...error) {
		t.Helper()
		got := ""
		if err := LookedAt(s, desired, before...); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	looked("2 of 2 pods have not been looked at yet")
	s.SetPod("default/a", &v1.Pod{})
	s.SetPod("default/old", &v1.Pod{})
	looked("1 of 2 pods have not been looked at yet")
	s.SetPod("default/b", &v1.Pod{})
	looked("")
	looked("the manifests are unknown", nil, fmt.Errorf("the manifests are unknown"))
}

func TestARuntimeThatDoesNotListIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.Fault(critest.On("ListPodSandbox").Hang())
		c := cri.New(r.Conn())
		c.Timeouts.Query = time.Minute
		w := pleg.NewWatch(c, &checkpoint.Marks{}, store(t), slog.New(slog.DiscardHandler))
		defer w.Lister.Close()
		_, err := Running(t.Context(), w.Lister)
		if want := "the runtime did not list its pods within 20s: is it stuck?"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}
