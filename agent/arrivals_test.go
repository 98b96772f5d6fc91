package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(image string) *manifests.Pod {
			pods, _ := manifests.Decode("/m/a.yaml", []byte(manifest("a", image)), manifests.Options{NodeName: "n"})
			return pods[0]
		}
		a := &arrivals{}
		begun, one, two := time.Now(), read("img:1"), read("img:2")
		a.note([]*manifests.Pod{one})
		time.Sleep(time.Hour)
		if at := a.of(one); !at.Equal(begun) {
			t.Errorf("it came at %s", at)
		}
		a.note([]*manifests.Pod{read("img:1")}) // the same, read anew
		if at := a.of(one); !at.Equal(begun) {
			t.Errorf("it came anew at %s", at)
		}
		a.note([]*manifests.Pod{two})
		if at := a.of(two); !at.Equal(time.Now()) || !a.of(one).IsZero() {
			t.Errorf("another version came at %s, the former one at %s", at, a.of(one))
		}
		if keys := a.keys(); len(keys) != 1 || !keys[one.Key().String()] {
			t.Errorf("wanted are %v", keys)
		}
		a.note(nil)
		if at := a.of(two); !at.IsZero() || len(a.keys()) != 0 {
			t.Errorf("one that is not wanted came at %s", at)
		}
	})
}
