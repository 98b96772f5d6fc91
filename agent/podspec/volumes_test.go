package podspec

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestThePluginOfAVolume(t *testing.T) {
	for want, source := range map[string]v1.VolumeSource{
		"host-path":    {HostPath: &v1.HostPathVolumeSource{}},
		"configmap":    {ConfigMap: &v1.ConfigMapVolumeSource{}},
		"secret":       {Secret: &v1.SecretVolumeSource{}},
		"downward-api": {DownwardAPI: &v1.DownwardAPIVolumeSource{}},
		"projected":    {Projected: &v1.ProjectedVolumeSource{}},
		"image":        {Image: &v1.ImageVolumeSource{}},
		"local-volume": {PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}},
		"empty-dir":    {EmptyDir: &v1.EmptyDirVolumeSource{}},
		"other":        {NFS: &v1.NFSVolumeSource{}},
	} {
		if got := VolumePlugin(&v1.Volume{Name: "v", VolumeSource: source}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := VolumePlugin(&v1.Volume{Name: "v"}); got != "empty-dir" {
		t.Errorf("a volume of no kind: %s", got)
	}
}

func TestTheImageOfAVolume(t *testing.T) {
	image := func(name string) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: name + ":1"}}}
	}
	p := specPod(func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{image("first"), {Name: "dir"}, image("last")} })
	in := Input{VolumeImages: map[string]string{"first": "sha256:1", "last": "sha256:2"}}
	for name, want := range map[string]string{"first": "sha256:1 first:1", "last": "sha256:2 last:1", "dir": "", "none": ""} {
		got := ""
		if s := volumeImage(p, name, in); s != nil {
			got = s.Image + " " + s.UserSpecifiedImage
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The error of a runtime that mounts no images is explained, where one is to be mounted.
func TestARuntimeThatMountsNoImages(t *testing.T) {
	dir, image := &rt.Mount{HostPath: "/x"}, &rt.Mount{Image: &rt.ImageSpec{UserSpecifiedImage: "data:1"}}
	with := func(all ...*rt.Mount) *rt.ContainerConfig { return &rt.ContainerConfig{Mounts: all} }
	old, other := errors.New(`failed to mkdir "": no such file`), errors.New("no space left")
	const explained = `the runtime cannot mount image "data:1" as a volume`
	for _, row := range []struct {
		name   string
		config *rt.ContainerConfig
		err    error
		want   string
	}{
		{"no error", with(image), nil, ""},
		{"no image", with(dir), old, "failed to mkdir"},
		{"no mounts", with(), old, "failed to mkdir"},
		{"an image that is mounted first", with(image, dir), old, explained},
		{"an image that is mounted last", with(dir, image), old, explained},
		{"another error", with(image), other, "no space left"},
	} {
		if got := errText(NoImageVolumes(row.config, row.err)); !strings.HasPrefix(got, row.want) || (row.want == "") != (got == "") {
			t.Errorf("%s: %s", row.name, got)
		}
	}
}
