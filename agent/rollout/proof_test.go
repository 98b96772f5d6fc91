package rollout

import (
	"testing"
	"time"
)

func TestAVersionIsProvenOnceItWasReadyForSomeTime(t *testing.T) {
	const s = time.Second
	began := time.Now()
	type sight struct {
		after   time.Duration
		isReady bool
	}
	for _, row := range []struct {
		name   string
		sights []sight
		at     time.Duration
		want   bool
	}{
		{"nothing was seen", nil, time.Hour, false},
		{"it is ready for long enough", []sight{{0, true}}, 10 * s, true},
		{"it is ready since a moment", []sight{{0, true}}, 9 * s, false},
		{"it was ready for long enough, and is not any more", []sight{{0, true}, {10 * s, false}}, time.Hour, true},
		{"it was ready for a moment, again and again", []sight{{0, true}, {s, false}, {10 * s, true}, {11 * s, false}}, time.Hour, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Proof{}
			for _, at := range row.sights {
				p = p.Saw(v1st, at.isReady, began.Add(at.after), 10*s)
			}
			if got := p.Holds(v1st, began.Add(row.at), 10*s); got != row.want {
				t.Errorf("%v", got)
			}
			if p.Holds(v2nd, began.Add(row.at), 10*s) {
				t.Error("another version is proven with it")
			}
		})
	}
}
