package update

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// A tag that moved restarts the containers that have it; learning or forgetting what it means does
// nothing.
func TestAMovedTagRestartsTheContainersThatHaveIt(t *testing.T) {
	name := pod(t).Spec.Containers[0].Image
	means := func(digest string) *v1.Pod {
		if digest == "" {
			return pod(t)
		}
		return annotations.WithTagImages(pod(t), map[string]string{name: "r@sha256:" + digest, "other": "r@sha256:" + digest})
	}
	for _, row := range []struct {
		was, is string
		want    Kind
	}{{"", "1", Nothing}, {"1", "", Nothing}, {"1", "1", Nothing}, {"1", "2", Restart}} {
		v := Compare(means(row.was), means(row.is))
		if v.Kind != row.want {
			t.Errorf("from %q to %q: %v of %v", row.was, row.is, v.Kind, v.Fields)
		}
		if row.want == Restart && fmt.Sprint(v.Fields) != "[spec.containers["+pod(t).Spec.Containers[0].Name+"].image: \"r@sha256:1\" -> \"r@sha256:2\"]" {
			t.Errorf("fields %v", v.Fields)
		}
	}
}

func TestImagesThatRanByTheirNames(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i", Image: "a"}},
		Containers:     []v1.Container{{Name: "c", Image: "a"}, {Name: "d", Image: "b"}},
		Volumes:        []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "e"}}}},
	}}
	st := &v1.PodStatus{
		InitContainerStatuses: []v1.ContainerStatus{{Name: "i", ImageID: "old"}},
		ContainerStatuses: []v1.ContainerStatus{{Name: "c", ImageID: "new",
			VolumeMounts: []v1.VolumeMountStatus{{Name: "v", VolumeStatus: &v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: "vol"}}}}}},
	}
	if got := fmt.Sprint(RanByName(p, st)); got != "map[a:new e:vol]" {
		t.Error(got)
	}
}
