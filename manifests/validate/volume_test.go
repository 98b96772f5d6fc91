package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/documents"
	"monopod/manifests/validate"
)

func TestClaimVolumes(t *testing.T) {
	long := strings.Repeat("a.", 125) + "a"
	for _, tt := range []struct{ volume, problems string }{
		{"{claimName: data}", ""},
		{"{claimName: data, readOnly: true}", ""},
		{"{claimName: other}", "6:58 spec.volumes[0].persistentVolumeClaim.claimName: no file gives the PersistentVolumeClaim other"},
		{"{}", "6:23 spec.volumes[0].persistentVolumeClaim.claimName: Required value"},
		{"{claimName: a/b}", `6:58 spec.volumes[0].persistentVolumeClaim.claimName: Invalid value: "a/b"`},
		{"{claimName: " + long + "}", "6:58 spec.volumes[0].persistentVolumeClaim.claimName: Too long"},
	} {
		pods, problems := documents.Decode("/m/x.yaml", []byte(podYAML("web", "volumes: [{name: v, persistentVolumeClaim: "+tt.volume+"}]")+
			"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"), node1)
		if accepted := len(pods) == 1; accepted != (tt.problems == "") {
			t.Errorf("%s: %d pods", tt.volume, len(pods))
		}
		checkWords(t, problems, tt.problems)
		if len(pods) == 1 && !slices.ContainsFunc(pods[0].Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil }) {
			t.Errorf("%s: no claim", tt.volume)
		}
	}
}

// A manifest may have thousands of containers and volumes, and is checked on a small machine.
func TestTheCostOfMountsGrowsWithTheirNumber(t *testing.T) {
	asked := func(n int) (calls int) {
		pod := &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{}}}
		for k := range n {
			name := fmt.Sprint("v", k)
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name})
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Image: "i", VolumeMounts: []v1.VolumeMount{{Name: name, MountPath: "/v"}},
				Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: name, Path: "a", Key: "A"}}}}})
		}
		validate.Pod(pod, validate.Given{Misread: func(string) bool { calls++; return false }})
		return calls
	}
	if few, many := asked(50), asked(500); many > 12*few {
		t.Errorf("%d questions for 50 containers, %d for 500", few, many)
	}
}
