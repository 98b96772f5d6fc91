package gc

import (
	"log/slog"
	"os"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/manifests"
)

func TestImagesThatPodsName(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kicks := 0
	n := &ImageNeeds{Root: root, Changed: func() { kicks++ }}
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

// What images the stored pods need is known without a look at the disk.
func TestTheNeedForImagesReadsNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	pod := func(uid string) *checkpoint.Checkpoint {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID(uid)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "img:" + uid}}}}
		return checkpoint.NewCheckpoint(&manifests.Pod{Pod: p}, metav1.Now())
	}
	root, err := checkpoint.OpenRoot(dir)
	noErr(t, err)
	noErr(t, root.Save(pod("read")))
	root.Close()

	root, err = checkpoint.OpenRoot(dir) // of the next agent
	noErr(t, err)
	defer root.Close()
	_, err = root.Checkpoints(slog.New(slog.DiscardHandler))
	noErr(t, err)
	noErr(t, root.Save(pod("saved")))
	noErr(t, root.Save(pod("removing")))
	noErr(t, root.Save(pod("removing").Removing(metav1.Now(), checkpoint.Mark{})))
	noErr(t, root.Save(pod("gone")))
	root.Forget("gone")
	noErr(t, os.RemoveAll(root.Path("pods")))

	n := &ImageNeeds{Root: root, Changed: func() {}}
	n.Publish(nil)
	needs, known := n.All()
	var got []string
	for _, need := range needs {
		got = append(got, need.Image)
	}
	if !known || !slices.Equal(got, []string{"img:read", "img:saved"}) {
		t.Errorf("needs %v, known %v", got, known)
	}
}
