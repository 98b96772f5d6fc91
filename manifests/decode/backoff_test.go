package decode_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
)

// A pod from a checkpoint may carry what no manifest may say.
func TestBackOffThatMakesNoSenseIsNone(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{decode.AnnotationBackOffFirst: "never", decode.AnnotationBackOffMax: "90s"}}}
	if first, most := decode.BackOff(p); first != 0 || most != 90*time.Second {
		t.Errorf("got %s, %s", first, most)
	}
}
