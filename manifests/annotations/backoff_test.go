package annotations_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/annotations"
)

// A pod from a checkpoint may carry what no manifest may say.
func TestBackOffThatMakesNoSenseIsNone(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.BackOffFirst: "never", annotations.BackOffMax: "90s"}}}
	if first, most := annotations.BackOffOf(p); first != 0 || most != 90*time.Second {
		t.Errorf("got %s, %s", first, most)
	}
}
