package poduid

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestTheHashIsThatOfTheContentNotTheUID(t *testing.T) {
	p := &v1.Pod{}
	p.UID = "1"
	if got := HashOf(p); got != "1" {
		t.Errorf("a pod that has no annotation: %s", got)
	}
	p.Annotations = map[string]string{AnnotationHash: "2"}
	if got := HashOf(p); got != "2" {
		t.Errorf("a pod that changed in place: %s", got)
	}
}
