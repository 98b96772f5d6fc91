package validate_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/documents"
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
