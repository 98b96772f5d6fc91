package podspec

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
)

// VolumePlugin returns the kubelet's name of the volume's plugin.
func VolumePlugin(v *v1.Volume) string {
	switch {
	case v.HostPath != nil:
		return "host-path"
	case v.ConfigMap != nil:
		return "configmap"
	case v.Secret != nil:
		return "secret"
	case v.DownwardAPI != nil:
		return "downward-api"
	case v.Projected != nil:
		return "projected"
	case v.Image != nil:
		return "image"
	case v.PersistentVolumeClaim != nil:
		return "local-volume"
	case v.EmptyDir != nil, v.VolumeSource == v1.VolumeSource{}:
		return "empty-dir"
	}
	return "other"
}

// VolumeInput returns the data about the pod and the machine that the pod's volumes need. Fields
// have the same values in files as in variables.
func VolumeInput(p *v1.Pod, n *Host) volume.Input {
	return volume.Input{
		Memory: volumeMemory(p, n),
		Field: func(f *v1.ObjectFieldSelector) (string, error) {
			return fieldValue(p, f.FieldPath, Input{}, n)
		},
		Resource: func(r *v1.ResourceFieldSelector) (string, error) { return resourceValue(p, nil, r, n) },
	}
}

// volumeImage returns the image that the runtime mounts for a volume; nil if it is no image volume.
func volumeImage(p *v1.Pod, name string, in Input) *rt.ImageSpec {
	i := slices.IndexFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
	if i < 0 || p.Spec.Volumes[i].Image == nil {
		return nil
	}
	return &rt.ImageSpec{Image: in.VolumeImages[name], UserSpecifiedImage: p.Spec.Volumes[i].Image.Reference, Annotations: p.Annotations}
}

// NoImageVolumes explains the error of a runtime that does not support image volumes and gets a
// mount without a host path. No CRI feature reports this in advance; these are the errors of
// containerd before 2.1 and CRI-O before 1.31.
func NoImageVolumes(config *rt.ContainerConfig, err error) error {
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
