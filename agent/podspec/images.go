package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// WantedImage is one image that a container needs.
type WantedImage struct {
	Volume string // "": the container's own
	Name   string
	Policy v1.PullPolicy
}

// WantedImages returns the container's own image, then the images of the image
// volumes that it mounts.
func WantedImages(p *v1.Pod, c *v1.Container) []WantedImage {
	out := []WantedImage{{"", c.Image, c.ImagePullPolicy}}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Image != nil && slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name }) {
			out = append(out, WantedImage{v.Name, v.Image.Reference, v.Image.PullPolicy})
		}
	}
	return out
}
