package agent

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
)

// volumeInput returns what the pod's volumes must know of the pod and the
// machine. Their files say the same as variables would.
func volumeInput(p *v1.Pod, n *node) volume.Input {
	return volume.Input{
		Memory: volumeMemory(p, n),
		Field: func(f *v1.ObjectFieldSelector) (string, error) {
			return fieldValue(p, f.FieldPath, containerInput{}, n)
		},
		Resource: func(r *v1.ResourceFieldSelector) (string, error) { return resourceValue(p, nil, r, n) },
	}
}

// volumeImage returns the image that the runtime shall mount for a volume, or
// nil if it is no image volume.
func volumeImage(p *v1.Pod, name string, in containerInput) *rt.ImageSpec {
	i := slices.IndexFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
	if i < 0 || p.Spec.Volumes[i].Image == nil {
		return nil
	}
	return &rt.ImageSpec{Image: in.VolumeImages[name], UserSpecifiedImage: p.Spec.Volumes[i].Image.Reference, Annotations: p.Annotations}
}

// noImageVolumes explains the error of a runtime that does not know image
// volumes. Such a runtime sees a mount without a host path. No feature tells
// beforehand; these are the words of containerd before 2.1 and CRI-O before 1.31.
func noImageVolumes(config *rt.ContainerConfig, err error) error {
	i := slices.IndexFunc(config.Mounts, func(m *rt.Mount) bool { return m.Image != nil })
	if err == nil || i < 0 {
		return err
	}
	for _, words := range []string{`failed to mkdir ""`, `failed to stat ""`, "HostPath is empty"} {
		if strings.Contains(err.Error(), words) {
			return fmt.Errorf("the runtime cannot mount image %q as a volume: it needs to be containerd 2.1, CRI-O 1.31 or newer: %w",
				config.Mounts[i].Image.UserSpecifiedImage, err)
		}
	}
	return err
}
