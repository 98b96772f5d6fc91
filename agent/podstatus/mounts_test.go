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

func TestAMountIsReadOnlyToItsDepthsWhereTheRuntimeSaysSo(t *testing.T) {
	c := &v1.Container{VolumeMounts: []v1.VolumeMount{{Name: "deep", MountPath: "/deep", ReadOnly: true}, {Name: "flat", MountPath: "/flat", ReadOnly: true}, {Name: "open", MountPath: "/open"}}}
	made := &pleg.Container{Status: &rt.ContainerStatus{Mounts: []*rt.Mount{{ContainerPath: "/deep", RecursiveReadOnly: true}, {ContainerPath: "/flat"}}}}
	enabled, disabled := v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyDisabled
	for _, row := range []struct {
		name string
		n    *pleg.Container
		want []*v1.RecursiveReadOnlyMode
	}{
		{"made", made, []*v1.RecursiveReadOnlyMode{&enabled, &disabled, nil}},
		{"not made", nil, []*v1.RecursiveReadOnlyMode{&disabled, &disabled, nil}},
	} {
		for k, m := range mountsOf(c, row.n) {
			if got, want := m.RecursiveReadOnly, row.want[k]; (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s: %s: %v", row.name, m.Name, m)
			}
		}
	}
}
