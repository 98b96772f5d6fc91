package documents_test

import (
	"strings"
	"testing"

	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

// An annotation of monopod's on what is no pod has no effect, which is said where it may have been meant to have one.
func TestAnAnnotationOfNoPodIsAWarning(t *testing.T) {
	const here = "~4:17 metadata.annotations[NAME]: has no effect here: write it into the metadata of a pod"
	const onList = "~4:17 metadata.annotations[NAME]: has no effect on a list: write it into the metadata of its pods"
	for _, r := range []struct{ kind, name, rest, want string }{
		{"ConfigMap", "monopod.restart-on-config-change", "", here},
		{"ConfigMap", "monopod.bogus", "", here},
		{"ConfigMap", "monpod.update", "", here},
		{"ConfigMap", "mongod.example.com/update", "", ""},
		{"Secret", "monopod.on-config-change", "", strings.Replace(here, "[NAME]", "", 1)},
		{"PersistentVolumeClaim", "monopod.update", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", here},
		{"List", "monopod.update", "items: []\n", onList},
		{"List", "monopod.serail", "items: []\n", onList},
		{"PodList", "monopod.start-after", "items: []\n", onList},
		{"List", "monopod.serial", "items: []\n", ""},
		{"List", "monopod.node", "items: []\n", ""},
		{"List", "argocd.example.com/x", "items: []\n", ""},
	} {
		file := "apiVersion: v1\nkind: " + r.kind + "\nmetadata: {name: a,\n  annotations: {" + r.name + ": '7'}}\n" + r.rest
		c := documents.Read("/m/app.yaml", []byte(file), documenttest.Node1)
		t.Log(r.kind, r.name)
		documenttest.CheckWords(t, c.Problems, strings.ReplaceAll(r.want, "NAME", r.name))
		if c.Unclear {
			t.Error("it is unclear what the file gives")
		}
	}
}
