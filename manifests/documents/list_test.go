package documents_test

import (
	"testing"

	"monopod/manifests/documents"
	"monopod/manifests/documents/documenttest"
)

// An unknown field of a list is an error that names the field, and its pods run all the same; what a pod that is
// missing meanwhile was in is not known.
func TestTheFieldsOfAListAreKnown(t *testing.T) {
	const item = "- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec: {containers: [{name: c, image: i}]}\n"
	for _, r := range []struct{ name, head, validation, want string }{
		{"as kubectl prints it", "metadata: {resourceVersion: '', selfLink: '', continue: x, remainingItemCount: 3}", "", ""},
		{"with a number for an annotation", "metadata: {name: a, labels: {a: b}, annotations: {monopod.serial: 7}}", "", ""},
		{"another list of items", "itmes: []", "", `3:1 itmes: unknown field "itmes"`},
		{"another field in its metadata", "metadata: {annotation: {monopod.node: a}}", "", `3:12 metadata.annotation: unknown field "annotation": did you mean "annotations"?`},
		{"one that is a warning", "itmes: []", "Warn", `~3:1 itmes: unknown field "itmes"`},
		{"one that is ignored", "itmes: []", "Ignore", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			o := documenttest.Node1
			o.Validation = r.validation
			c := documents.Read("/m/app.yaml", []byte("apiVersion: v1\nkind: List\n"+r.head+"\nitems:\n"+item), o)
			documenttest.CheckWords(t, c.Problems, r.want)
			if isWrong := r.want != "" && r.validation == ""; len(c.Pods) != 1 || c.Unclear != isWrong {
				t.Errorf("%d pods, unclear: %v", len(c.Pods), c.Unclear)
			}
		})
	}
}

// A field that an item has twice is one problem.
func TestADuplicateInAnItemIsToldOnce(t *testing.T) {
	c := documents.Read("/m/app.yaml", []byte("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {a: b}\n  data: {a: c}\n"), documenttest.Node1)
	if len(c.Problems) != 1 {
		t.Error(documenttest.Words(c.Problems))
	}
}
