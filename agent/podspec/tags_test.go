package podspec

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// What a followed tag means is wanted, and not pulled again for each start.
func TestAFollowedTagIsTheImageThatItMeans(t *testing.T) {
	p := annotations.WithTagImages(&v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "b:1", PullPolicy: v1.PullNever}}}}}},
		map[string]string{"a:1": "a@sha256:1", "b:1": "b@sha256:2"})
	c := &v1.Container{Image: "a:1", ImagePullPolicy: v1.PullAlways, VolumeMounts: []v1.VolumeMount{{Name: "v"}}}
	if got := fmt.Sprint(WantedImages(p, c)); got != "[{ a@sha256:1 IfNotPresent} {v b@sha256:2 Never}]" {
		t.Error(got)
	}
	c.Image = "a:2"
	if got := WantedImages(p, c)[0]; got != (WantedImage{"", "a:2", v1.PullAlways}) {
		t.Errorf("%v", got)
	}
}
