package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/gc"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/worker"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// waitsFor returns why the first container of a pod waits.
func (r *rig) waitsFor(key string) string {
	r.Helper()
	st := r.status(key).ContainerStatuses[0].State
	if st.Waiting == nil {
		return fmt.Sprintf("%+v", st)
	}
	return st.Waiting.Reason + ": " + st.Waiting.Message
}

func TestAPullSaysHowLongItTakes(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("new:1", 25*time.Second, nil)
		r.want(manifest("web", "new:1"))
		for _, row := range []struct {
			after time.Duration
			want  string
		}{
			{time.Second, `ContainerCreating: pulling image "new:1"`},
			{10 * time.Second, `ContainerCreating: pulling image "new:1", 10s so far`},
			{10 * time.Second, `ContainerCreating: pulling image "new:1", 20s so far`},
		} {
			r.after(row.after)
			if got := r.waitsFor("default/web-n"); got != row.want {
				t.Errorf("after %s: %s, want %s", row.after, got, row.want)
			}
		}
		r.after(5 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestPullsWaitForOthersAndSaySo(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("", 25*time.Second, nil)
		var docs []string
		for k := range image.Parallel + 1 {
			docs = append(docs, manifest(fmt.Sprintf("p%d", k), fmt.Sprintf("new:%d", k), "initContainers: [{name: i, image: img:1}]"))
		}
		r.Program("i", critest.Exits(0))
		r.want(docs...)
		r.after(12 * time.Second)
		said := map[string]int{}
		for k := range docs {
			said[strings.ReplaceAll(r.waitsFor(fmt.Sprintf("default/p%d-n", k)), fmt.Sprintf("new:%d", k), "X")]++
		}
		if said[`PodInitializing: pulling image "X", 10s so far`] != image.Parallel || said[`PodInitializing: image "X" waits for other pulls, 10s so far`] != 1 {
			t.Errorf("said %v", said)
		}
		r.after(40 * time.Second)
		if n := len(r.Running()); n != len(docs) {
			t.Errorf("%d run", n)
		}
	})
}

func TestAPullEndsWithItsPod(t *testing.T) {
	live(t, func(r *rig) {
		slow := r.Fault(critest.On("PullImage").Of("new:1").Hang())
		r.want(manifest("web", "new:1"))
		<-slow.Struck()
		r.want()
		r.after(time.Second)
		if calls := r.Calls(); !slices.ContainsFunc(calls, func(c critest.Call) bool { return c.Method == "PullImage" && c.Err != nil }) {
			t.Error("the pull goes on")
		}
		if pods := r.store.Pods(); len(pods) > 0 {
			t.Errorf("%s is still there", pods[0].Name)
		}
	})
}

func TestAFailedPullBacksOffAndIsTriedAgain(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("new:1", time.Second, errors.New("no route: https://me:geheim@reg"))
		r.want(manifest("web", "new:1"))
		const failed = `PullImage new:1: failed to pull and unpack image "docker.io/library/new:1": no route: https://***@reg`
		const backOff = `ImagePullBackOff: Back-off pulling image "new:1": ErrImagePull: ` + failed
		for _, row := range []struct {
			after time.Duration
			pulls int
			want  string
		}{
			{2 * time.Second, 1, "ErrImagePull: " + failed},
			{8 * time.Second, 1, "ErrImagePull: " + failed},
			{1500 * time.Millisecond, 2, "ErrImagePull: " + failed + ` (pulling image "new:1")`},
			{time.Second, 2, backOff},
			{19800 * time.Millisecond, 3, backOff + ` (pulling image "new:1")`},
			{time.Second, 3, backOff},
		} {
			r.after(row.after)
			if got, n := r.waitsFor("default/web-n"), r.Count("PullImage"); got != row.want || n != row.pulls {
				t.Errorf("after %s: %d pulls, %s\nwant %d, %s", row.after, n, got, row.pulls, row.want)
			}
		}
		r.OnPull("new:1", 0, nil)
		r.after(40 * time.Second)
		r.expect("default/web-n/c")
		if strings.Contains(r.log.String(), "geheim") {
			t.Errorf("a password is in the log")
		}
	})
}

func TestAnImageThatIsNotToBePulledIsLookedForEveryTenSeconds(t *testing.T) {
	live(t, func(r *rig) {
		r.want(strings.Replace(manifest("web", "new:1"), "image:", "imagePullPolicy: Never, image:", 1))
		r.after(95 * time.Second)
		if got := r.waitsFor("default/web-n"); got != `ErrImageNeverPull: Container image "new:1" is not present with pull policy of Never` {
			t.Error(got)
		}
		r.AddImage("new:1")
		r.after(10 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestSecretsForPulls(t *testing.T) {
	var log lines
	good := &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`{"auths": {}}`)}}
	other := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}, Type: "Opaque"}
	text := slog.New(slog.NewTextHandler(&log, nil))
	disk := &instance.Disk{}
	good.Namespace, good.Name = "a", "good"
	disk.Objects.Replace([]*manifests.Object{documents.NewObject(nil, good, ""), documents.NewObject(nil, other, "")})
	w := (&worker.Pool{Events: events.Open(events.Config{Log: slog.New(slog.DiscardHandler)}), Disk: disk, Log: text}).New(t.Context(), manifests.Key{}, nil)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	for _, name := range []string{"", "missing", "other", "good"} {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, v1.LocalObjectReference{Name: name})
	}
	if got := w.PullSecrets(p, disk.Objects.Now(), text); len(got) != 1 || got[0] != good {
		t.Errorf("secrets %v", got)
	}
	for _, want := range []string{"there is no secret a/missing", `secret a/other: type \"Opaque\" holds no credentials`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	}
}

func TestImagesThatPodsName(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kicks := 0
	n := &gc.ImageNeeds{Root: root, Changed: func() { kicks++ }}
	if _, known := n.All(); known {
		t.Error("known before anything was read")
	}
	pod := func(name string, images ...string) *manifests.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		for _, i := range images {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Image: i})
		}
		return &manifests.Pod{Pod: p}
	}
	wanted := pod("new", "a:1", "b:1")
	wanted.Spec.InitContainers = []v1.Container{{Image: "init:1"}}
	wanted.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "vol:1"}}}, {}}
	n.Publish([]*manifests.Pod{wanted})
	n.Publish([]*manifests.Pod{wanted})
	former, gone := pod("former", "old:1"), pod("gone", "gone:1")
	former.UID, gone.UID = "1", "2"
	now := metav1.Now()
	for _, c := range []*checkpoint.Checkpoint{checkpoint.NewCheckpoint(former, now), checkpoint.NewCheckpoint(gone, now).Removing(now, checkpoint.Mark{})} {
		if err := root.Save(c); err != nil {
			t.Fatal(err)
		}
	}
	all, known := n.All()
	var got []string
	for _, need := range all {
		got = append(got, need.Pod+" "+need.Image)
	}
	want := []string{"ns/new init:1", "ns/new a:1", "ns/new b:1", "ns/new vol:1", "ns/former old:1"}
	if !known || !slices.Equal(got, want) || kicks != 1 {
		t.Errorf("got %q (%v, %d kicks)\nwant %q", got, known, kicks, want)
	}
}
