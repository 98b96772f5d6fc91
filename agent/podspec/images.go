package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/annotations"
)

// WantedImage is one image that a container needs.
type WantedImage struct {
	Volume string // "": the container's own
	Name   string
	Policy v1.PullPolicy
}

// WantedImages returns the container's own image, then the images of the image
// volumes that it mounts. An image whose tag is followed is the one that the tag meant
// when this version of the pod was made; it is not pulled again.
func WantedImages(p *v1.Pod, c *v1.Container) []WantedImage {
	refs := annotations.TagImagesOf(p)
	wanted := func(volume, name string, policy v1.PullPolicy) WantedImage {
		ref := refs[name]
		switch {
		case ref == "":
			return WantedImage{volume, name, policy}
		case policy == v1.PullAlways:
			policy = v1.PullIfNotPresent
		}
		return WantedImage{volume, ref, policy}
	}
	out := []WantedImage{wanted("", c.Image, c.ImagePullPolicy)}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Image != nil && slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name }) {
			out = append(out, wanted(v.Name, v.Image.Reference, v.Image.PullPolicy))
		}
	}
	return out
}
