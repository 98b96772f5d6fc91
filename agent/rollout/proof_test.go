package rollout

import (
	"testing"
	"time"

	"monopod/agent/update"
)

func TestWhetherAVersionWorks(t *testing.T) {
	const s = time.Second
	began := time.Now()
	type sight struct {
		after  time.Duration
		health update.Health
	}
	ready := func(restarts int32) update.Health { return update.Health{Seen: true, Ready: true, Restarts: restarts} }
	unready := func(restarts int32) update.Health { return update.Health{Seen: true, Restarts: restarts} }
	excused := func(restarts int32) update.Health {
		return update.Health{Seen: true, Excused: true, Restarts: restarts}
	}
	for _, row := range []struct {
		name   string
		sights []sight
		at     time.Duration
		want   bool
	}{
		{"nothing was seen", nil, time.Hour, false},
		{"it is ready, and never crashed", []sight{{0, ready(0)}}, 0, true},
		{"it was, and is not ready any more", []sight{{0, ready(0)}, {s, unready(0)}}, time.Hour, false},
		{"it is ready after a crash since a moment", []sight{{0, ready(0)}, {s, unready(1)}, {2 * s, ready(1)}}, 11 * s, false},
		{"it is ready after a crash for long enough", []sight{{0, ready(0)}, {s, unready(1)}, {2 * s, ready(1)}}, 12 * s, true},
		{"it had crashed before this agent saw it", []sight{{0, ready(3)}}, 9 * s, false},
		{"a restart that its owner asked for is no crash", []sight{{0, ready(0)}, {s, excused(0)}, {2 * s, ready(1)}}, 2 * s, true},
		{"it was ready for long enough, and is not any more", []sight{{0, ready(1)}, {10 * s, unready(1)}}, time.Hour, true},
		{"it was ready for a moment, again and again", []sight{{0, ready(0)}, {s, unready(1)}, {10 * s, ready(1)}, {11 * s, unready(2)}}, time.Hour, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Proof{}
			for _, at := range row.sights {
				p = p.Saw(v1st, at.health, began.Add(at.after), 10*s)
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

// What a version that took the place of another in place restarted for that is not its crash.
func TestAVersionIsNotBlamedForTheOneBefore(t *testing.T) {
	now := time.Now()
	p := Proof{}.Saw(v1st, update.Health{Seen: true, Restarts: 7}, now, time.Minute)
	p = p.Saw(v2nd, update.Health{Seen: true, Ready: true, Restarts: 8}, now, time.Minute)
	if !p.Holds(v2nd, now, time.Minute) || p.Holds(v1st, now, time.Minute) {
		t.Errorf("%+v", p)
	}
}

func TestWhenAVersionWasReadyLast(t *testing.T) {
	const s = time.Second
	began := time.Now()
	saw := func(p Proof, after time.Duration, isReady bool) Proof {
		return p.Saw(first, update.Health{Seen: true, Ready: isReady}, began.Add(after), 10*s)
	}
	p := saw(saw(Proof{}, 0, true), 5*s, true)
	if is, last := p.LastReady(first); !is || !last.IsZero() {
		t.Errorf("it is ready: %v, %s", is, last)
	}
	p = saw(saw(p, 20*s, false), 30*s, false)
	if is, last := p.LastReady(first); is || !last.Equal(began.Add(20*s)) {
		t.Errorf("it is not ready any more: %v, %s", is, last)
	}
	p = p.Saw(second, update.Health{Seen: true, Ready: true}, began.Add(40*s), 10*s)
	since, former := p.Since()
	if !since.Equal(began.Add(40*s)) || !former.Equal(began.Add(20*s)) {
		t.Errorf("the next one is ready since %s, the one before was at %s", since, former)
	}
	if is, last := p.LastReady(first); is || !last.IsZero() {
		t.Errorf("the former one is ready: %v, %s", is, last)
	}
}
