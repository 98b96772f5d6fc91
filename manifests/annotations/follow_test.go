package annotations

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestHowOftenTagsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"1h": "1h0m0s true true", "10m": "10m0s true true", "720h": "720h0m0s true true", "0s": "0s true true",
		"9m59s": "0s false false", "721h": "0s false false", "-1h": "0s false false", "daily": "0s false false", "": "0s false false",
	} {
		p := &v1.Pod{}
		p.Annotations = map[string]string{FollowImages: text}
		every, said, good := FollowOf(p)
		if got := fmt.Sprint(every, said && good, good); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if every, said, good := FollowOf(&v1.Pod{}); every != 0 || said || !good {
		t.Errorf("without the annotation: %v %v %v", every, said, good)
	}
}

func TestWhatTagsMeanIsKeptWithThePod(t *testing.T) {
	p := &v1.Pod{}
	refs := map[string]string{"a:1": "a@sha256:1", "b": "sha256:2"}
	got := TagImagesOf(WithTagImages(p, refs))
	if fmt.Sprint(got) != fmt.Sprint(refs) || p.Annotations != nil {
		t.Errorf("%v, and the pod %v", got, p.Annotations)
	}
	if got := TagImagesOf(WithTagImages(WithTagImages(p, refs), nil)); got != nil {
		t.Errorf("none: %v", got)
	}
	p.Annotations = map[string]string{TagImages: "{"}
	if got := TagImagesOf(p); got != nil {
		t.Errorf("damaged: %v", got)
	}
}

func TestImagesOfAPodAreNamedOnce(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Image: "b"}}, Containers: []v1.Container{{Image: "a"}, {Image: "b"}, {}},
		Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "c"}}}, {}},
	}}
	if got := fmt.Sprint(ImageNames(p)); got != "[a b c]" {
		t.Error(got)
	}
}
