package update

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheAnnotationWinsOverTheSetting(t *testing.T) {
	for _, row := range []struct {
		annotation, setting string
		first               bool
	}{
		{"", Prepare, false}, {"", StopFirst, true}, {"", "", false},
		{"stop-first", Prepare, true}, {"prepare", StopFirst, false}, {"nonsense", StopFirst, true},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"monopod.update": row.annotation}}}
		if got := StopsFirst(p, row.setting); got != row.first {
			t.Errorf("%q and %q: stops first: %v", row.annotation, row.setting, got)
		}
	}
}
