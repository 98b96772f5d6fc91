package devicename

import (
	"slices"
	"testing"
)

func TestAnnotationsNameCDIDevices(t *testing.T) {
	got := CDIOf(map[string]string{
		"cdi.k8s.io/b": "example.com/gpu=1,example.com/gpu=0", "cdi.k8s.io/a": "example.com/gpu=0", "cdi.k8s.io/c": "none,", "other/x": "example.com/gpu=2",
	})
	if want := []string{"example.com/gpu=0", "example.com/gpu=1"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := CDIOf(map[string]string{"a": "b"}); got != nil {
		t.Errorf("%q of none", got)
	}
}
