package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/manifests"
)

func TestAVersionArrivesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(image string) *manifests.Pod {
			pods, _ := manifests.Decode("/m/a.yaml", []byte(manifest("a", image)), manifests.Options{NodeName: "n"})
			return pods[0]
		}
		l := &syncLoop{arrivals: map[manifests.Key]*arrival{}, order: admission.NewStartOrder(checkpoint.Boot{}, admission.NewTable(node.Facts{}, nil, nil), admission.World{}, nil)}
		began, one, two := time.Now(), read("img:1"), read("img:2")
		l.arrived([]*manifests.Pod{one})
		time.Sleep(time.Hour)
		l.arrived([]*manifests.Pod{read("img:1")}) // the same, read again
		if at := l.arrivals[one.Key()].at; !at.Equal(began) {
			t.Errorf("it came at %s", at)
		}
		l.arrived([]*manifests.Pod{two})
		if at := l.arrivals[two.Key()].at; !at.Equal(time.Now()) {
			t.Errorf("another version came at %s", at)
		}
		if names := l.desiredNames(); len(names) != 1 || !names[one.Key().String()] {
			t.Errorf("wanted are %v", names)
		}
		l.arrived(nil)
		if len(l.arrivals)+len(l.desiredNames()) != 0 {
			t.Errorf("left: %v", l.arrivals)
		}
	})
}
