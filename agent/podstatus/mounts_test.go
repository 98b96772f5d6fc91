package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/pleg"
)

func TestAMountTellsItsImageWhereTheRuntimeDoes(t *testing.T) {
	c := &v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "told", MountPath: "/told/"}, {Name: "silent", MountPath: "/silent"}, {Name: "dir", MountPath: "/dir"}}}
	made := &pleg.Container{Status: &rt.ContainerStatus{Mounts: []*rt.Mount{
		{ContainerPath: "/told/", Image: &rt.ImageSpec{Image: "sha256:1"}}, {ContainerPath: "/silent", Image: &rt.ImageSpec{}}, {ContainerPath: "/dir", HostPath: "/x"}}}}
	for _, n := range []*pleg.Container{made, nil} {
		all := mountsOf(c, n)
		told := all[0].VolumeStatus
		if (n != nil) != (told != nil) || told != nil && told.Image.ImageRef != "sha256:1" || all[1].VolumeStatus != nil || all[2].VolumeStatus != nil {
			t.Errorf("made: %v, mounts %+v", n != nil, all)
		}
	}
}
