package podevents

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/message"
	"monopod/agent/objects"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// recorder is that of default/web-n, which is desired with the uid "u".
func recorder() *Recorder {
	pod := &manifests.Pod{Pod: plantest.Pod(v1.RestartPolicyAlways, "a", "b")}
	return &Recorder{Events: events.Open(events.Config{Log: slog.New(slog.DiscardHandler)}), Key: pod.Key(),
		Known: map[string]*checkpoint.Checkpoint{}, Current: func() *manifests.Pod { return pod }}
}

// recorded are the events of a recorder: how many, "!" before warnings, the reason, the
// container, the text for root.
func recorded(r *Recorder) (all []string) {
	r.Events.List("").Each(func(e *v1.Event) bool {
		kind := ""
		if e.Type == v1.EventTypeWarning {
			kind = "!"
		}
		all = append(all, fmt.Sprintf("%d %s%s (%s) %s", e.Count, kind, e.Reason, events.ContainerOf(&e.InvolvedObject), e.Message))
		return true
	})
	return all
}

func expect(t *testing.T, r *Recorder, want ...string) {
	t.Helper()
	if got := recorded(r); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFailedStartSaysWhatFailed(t *testing.T) {
	no := errors.New("no")
	for _, row := range []struct {
		name      string
		container string
		reason    string // in the pod's status
		err       error
		want      []string
	}{
		{"a container", "a", "RunContainerError", no, []string{"1 !Failed (a) Error: no"}},
		{"the pod", "", "FailedCreatePodSandBox", no, []string{"1 !FailedCreatePodSandBox () said"}},
		{"the pod's cgroup", "", "FailedCreatePodContainer", no, []string{"1 !FailedCreatePodContainer () unable to ensure pod container exists: said"}},
		{"an image that a former try failed to pull", "a", "", &image.Error{Reason: image.ImagePullBackOff, Image: "img:1", Err: no},
			[]string{`1 BackOff (a) Back-off pulling image "img:1"`, "1 !Failed (a) Error: ImagePullBackOff"}},
		{"an image that must not be pulled", "a", "", &image.Error{Reason: image.ErrNeverPull, Image: "img:1", Err: no},
			[]string{"1 !ErrImageNeverPull (a) no", "1 !Failed (a) Error: ErrImageNeverPull"}},
		{"an image that the runtime cannot look at", "a", "", &image.Error{Reason: image.ErrInspect, Image: "img:1", Err: no},
			[]string{"1 !InspectFailed (a) no", "1 !Failed (a) Error: ImageInspectError"}},
		{"a name of no image", "a", "", &image.Error{Reason: image.InvalidName, Image: "IMG", Err: no},
			[]string{"1 !InspectFailed (a) no", "1 !Failed (a) Error: InvalidImageName"}},
		{"a pull, which is tried again later", "a", "", fmt.Errorf("start: %w", &image.Error{Reason: "ErrImagePull", Image: "img:1", Err: no}),
			[]string{`1 !Failed (a) Failed to pull image "img:1": no`, "1 !Failed (a) Error: ErrImagePull", `1 BackOff (a) Back-off pulling image "img:1"`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := recorder()
			r.RecordFailure(&plan.Facts{Pod: r.Current()}, plan.Action{Name: row.container}, plan.Failure{Waiting: plan.Waiting{Reason: row.reason, Message: message.Private("said")}}, row.err)
			expect(t, r, row.want...)
		})
	}
}

// A back-off lasts over many passes, and each is one event.
func TestEachBackOffIsRecordedOnce(t *testing.T) {
	r := recorder()
	s := plantest.Scene{Pod: r.Current().Pod, Accepted: true, Here: plantest.World(plantest.Exit("a", 1, 1, 0, "0s"), plantest.Up("b", 0))}.Facts()
	waits := &plan.Plan{Waiting: map[string]plan.Waiting{"a": {Reason: plan.CrashLoop}, "b": {Reason: "ErrImagePull"}}}
	const said = " !BackOff (a) Back-off restarting failed container a in pod web-n_default(u)"
	r.RecordBackOffs(&s, waits)
	r.RecordBackOffs(&s, waits)
	expect(t, r, "1"+said)
	s.Instance().Containers = append(s.Instance().Containers, plantest.Exit("a", 2, 1, 0, "10s"))
	s.Instance().Sort()
	r.RecordBackOffs(&s, waits)
	r.RecordBackOffs(&s, waits)
	expect(t, r, "2"+said)
}

// Who may not read what a container or its manifest says reads as much as is known without.
func TestAKillSaysWhy(t *testing.T) {
	for _, row := range []struct {
		name          string
		action        plan.Action
		whole, public string
	}{
		{"no reason", plan.Action{Name: "a"}, "Stopping container a", "Stopping container a"},
		{"any reason", plan.Action{Name: "a", Reason: "it is 5"}, "Stopping container a: it is 5", "Stopping container a: " + message.Mark},
		{"a hook", plan.Action{Name: "a", Cause: checkpoint.CauseHook, Reason: "x"}, "FailedPostStartHook", "FailedPostStartHook"},
		{"a probe", plan.Action{Name: "a", Cause: checkpoint.CauseProbe, Reason: "it said 5"}, "it said 5", "Container a failed its probe"},
		{"another version", plan.Action{Name: "a", Cause: checkpoint.CauseUpdate, Reason: "env X"}, "env X", "Container a has another version"},
		{"a request", plan.Action{Name: "a", Cause: checkpoint.CauseRequest, Reason: "x"},
			"Stopping container a: " + checkpoint.RestartRequested, "Stopping container a: " + checkpoint.RestartRequested},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := killing(row.action)
			if text.String() != row.whole || text.Public() != row.public {
				t.Errorf("root reads %q, anybody %q", text, text.Public())
			}
			r := recorder()
			row.action.UID = "u"
			r.RecordKilling(row.action)
			expect(t, r, "1 Killing (a) "+row.whole)
		})
	}
}

// The events of a version that goes are about that version.
func TestWhatAnEventIsAbout(t *testing.T) {
	r := recorder()
	old := plantest.Pod(v1.RestartPolicyAlways, "gone")
	old.UID = "old"
	r.Known["old"] = checkpoint.NewCheckpoint(&manifests.Pod{Pod: old}, metav1.Now())
	for _, row := range []struct {
		uid, container string
		path           string
	}{
		{"u", "a", "spec.containers{a}"},
		{"old", "gone", "spec.containers{gone}"},
		{"unknown", "", ""},
	} {
		about := r.About(row.uid, row.container)
		if about.Kind != "Pod" || about.Namespace != "default" || about.Name != "web-n" || about.UID != types.UID(row.uid) || about.FieldPath != row.path {
			t.Errorf("%s: %+v", row.uid, about)
		}
	}
}

func TestAPassThatFailedIsAboutTheDesiredPod(t *testing.T) {
	r := recorder()
	r.RecordError(errors.New("no"))
	r.Events.List("").Each(func(e *v1.Event) bool {
		if e.InvolvedObject.UID != "u" {
			t.Errorf("it is about %+v", e.InvolvedObject)
		}
		return true
	})
	expect(t, r, "1 !FailedSync () no")
	none := recorder()
	none.Current = func() *manifests.Pod { return nil }
	none.RecordError(errors.New("no"))
	expect(t, none, "1 !FailedSync () no")
}

func TestSecretsForPulls(t *testing.T) {
	var log strings.Builder
	good := &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`{"auths": {}}`)}}
	other := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}, Type: "Opaque"}
	good.Namespace, good.Name = "a", "good"
	from := objects.NewSet([]*manifests.Object{documents.NewObject(nil, good, ""), documents.NewObject(nil, other, "")})
	r := recorder()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	for _, name := range []string{"", "missing", "other", "good"} {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, v1.LocalObjectReference{Name: name})
	}
	if got := r.PullSecrets(p, from, slog.New(slog.NewTextHandler(&log, nil))); len(got) != 1 || got[0] != good {
		t.Errorf("secrets %v", got)
	}
	for _, want := range []string{"there is no secret a/missing", `secret a/other: type \"Opaque\" holds no credentials`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
	const said = "1 !FailedToRetrieveImagePullSecret () Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed."
	expect(t, r, fmt.Sprintf(said, "missing"), fmt.Sprintf(said, "other"))
}
