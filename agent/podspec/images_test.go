package podspec

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestTheImagesThatAContainerNeeds(t *testing.T) {
	image := func(name string) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: name + ":1", PullPolicy: v1.PullAlways}}}
	}
	p := specPod(func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{image("mounted"), image("another's"), {Name: "dir"}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "dir"}, {Name: "mounted"}}
	})
	want := []WantedImage{{"", "busybox:1", ""}, {"mounted", "mounted:1", v1.PullAlways}}
	if got := WantedImages(p, &p.Spec.Containers[0]); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
