package rollout

import (
	"testing"
	"time"

	"monopod/agent/update"
)

// look is a moment at which a watch is looked at.
type look struct {
	after time.Duration // since the first
	update.Health
	want Outcome
	why  string
}

func itLives() bool { return true }

func TestAWatchComesToItsOutcome(t *testing.T) {
	const s = time.Second
	type health = update.Health
	limits := update.Limits{Within: 30 * s, Stable: 10 * s}
	seen, ready, waits := health{Seen: true}, health{Seen: true, Ready: true}, health{Seen: true, Waits: true}
	again, excused := health{Seen: true, Ready: true, Restarts: 1}, health{Seen: true, Excused: true}
	late := "it was not ready within 30s"
	rows := []struct {
		name   string
		limits update.Limits
		spent  time.Duration
		looks  []look
	}{
		{"never ready", limits, 0, []look{{0, seen, Watching, ""}, {29 * s, seen, Watching, ""}, {30 * s, seen, RollBack, late}}},
		{"what was spent before counts", limits, 20 * s, []look{{0, seen, Watching, ""}, {9 * s, seen, Watching, ""}, {10 * s, seen, RollBack, late}}},
		{"all was spent, and it is ready", limits, 30 * s, []look{{0, ready, Watching, ""}, {10 * s, ready, Healthy, ""}}},
		{"the former is not gone", limits, 0, []look{{0, health{}, Watching, ""}, {60 * s, health{}, Watching, ""}, {61 * s, seen, Watching, ""}, {91 * s, seen, RollBack, late}}},
		{"pulls and a missing network do not count", limits, 0, []look{{0, seen, Watching, ""}, {1 * s, waits, Watching, ""}, {60 * s, waits, Watching, ""}, {88 * s, seen, Watching, ""}, {116 * s, seen, Watching, ""}, {117 * s, seen, RollBack, late}}},
		{"ready in time, and stable", limits, 0, []look{{0, seen, Watching, ""}, {29 * s, ready, Watching, ""}, {38 * s, ready, Watching, ""}, {39 * s, ready, Healthy, ""}}},
		{"ready, and then not", limits, 0, []look{{0, ready, Watching, ""}, {9 * s, seen, RollBack, "it was ready, and did not stay so for 10s"}}},
		{"a restart that nothing else shows", limits, 0, []look{{0, ready, Watching, ""}, {9 * s, again, RollBack, "it was ready, and a container restarted within 10s"}}},
		{"restarts before it is ready", limits, 0, []look{{0, seen, Watching, ""}, {9 * s, again, Watching, ""}, {19 * s, again, Healthy, ""}}},
		{"a restart that others asked for: it begins again", limits, 0, []look{{0, seen, Watching, ""}, {20 * s, ready, Watching, ""}, {25 * s, excused, Watching, ""}, {26 * s, seen, Watching, ""}, {50 * s, again, Watching, ""}, {60 * s, again, Healthy, ""}}},
		{"ready before a restart that others asked for, and not after it", limits, 0, []look{{0, ready, Watching, ""}, {5 * s, excused, Watching, ""}, {6 * s, seen, Watching, ""}, {36 * s, seen, RollBack, late}}},
		{"its sandbox waits for the network, once it was ready", limits, 0, []look{{0, ready, Watching, ""}, {5 * s, waits, Watching, ""}, {90 * s, seen, Watching, ""}, {100 * s, ready, Watching, ""}, {110 * s, ready, Healthy, ""}}},
		{"success", limits, 0, []look{{0, health{Seen: true, Succeeded: true}, Healthy, ""}}},
		{"failure", limits, 0, []look{{0, health{Seen: true, Failed: true}, RollBack, "it has failed"}}},
		{"failure once it was ready", limits, 0, []look{{0, ready, Watching, ""}, {s, health{Seen: true, Failed: true}, RollBack, "it has failed"}}},
		{"no limit any more", update.Limits{Stable: 10 * s}, 30 * s, []look{{0, seen, Healthy, ""}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w, began := Watch{Spent: row.spent}, time.Now()
			for _, at := range row.looks {
				now := began.Add(at.after)
				next, got, why, again := w.Look(Sight{Now: now, Limits: row.limits, Lives: itLives}, at.Health)
				w = next
				if got != at.want || why != at.why {
					t.Errorf("after %s: %v %q, want %v %q", at.after, got, why, at.want, at.why)
				}
				if passes := at.Seen && !at.Waits && !at.Excused; got == Watching && passes && (!again.After(now) || again.Sub(now) > watchEvery) {
					t.Errorf("after %s: it is looked at again %s later", at.after, again.Sub(now))
				}
			}
		})
	}
}

// Where the end of a container is seen late, the verdict waits for as long.
func TestAVersionIsHealthyOnceAnEndWouldHaveBeenSeen(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		isReady bool // in the end
		want    Outcome
	}{"it stayed ready": {true, Healthy}, "it ended meanwhile": {false, RollBack}} {
		var w Watch
		began, o := time.Now(), Watching
		see := func(after time.Duration, isReady bool) {
			sight := Sight{Now: began.Add(after), Limits: update.Limits{Within: 30 * s, Stable: s}, Late: 2 * s, Lives: itLives}
			w, o, _, _ = w.Look(sight, update.Health{Seen: true, Ready: isReady})
		}
		see(0, true)
		see(s, true)
		if o != Watching {
			t.Errorf("%s: %v at once", name, o)
		}
		see(3*s, row.isReady)
		if o != row.want {
			t.Errorf("%s: %v, want %v", name, o, row.want)
		}
	}
}

// A container whose process is not seen may have ended, and the runtime is still to tell.
func TestAVersionWithoutAProcessIsHealthyOnceItsEndWouldHaveBeenTold(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		lives   time.Duration // since when its process is seen; 0: never
		ends    bool          // as the runtime tells after 4 s
		outcome Outcome
		after   time.Duration
	}{
		"its process is seen":       {lives: 1, outcome: Healthy, after: s},
		"its process is seen later": {lives: 3 * s, outcome: Healthy, after: 3 * s},
		"the end is told":           {ends: true, outcome: RollBack, after: 4 * s},
		"no process is ever seen":   {outcome: Healthy, after: s + untold},
	} {
		var w Watch
		began, now, o := time.Now(), time.Duration(0), Watching
		for o == Watching && now < time.Minute {
			var again time.Time
			sight := Sight{Now: began.Add(now), Limits: update.Limits{Within: 30 * s, Stable: s}, Lives: func() bool { return row.lives > 0 && now >= row.lives }}
			w, o, _, again = w.Look(sight, update.Health{Seen: true, Ready: !row.ends || now < 4*s})
			if o == Watching {
				now = again.Sub(began)
			}
		}
		if o != row.outcome || now != row.after {
			t.Errorf("%s: %v after %s, want %v after %s", name, o, now, row.outcome, row.after)
		}
	}
}

func TestTimeInWhichNothingIsSeenIsNotSpent(t *testing.T) {
	limits := update.Limits{Within: 30 * time.Second, Stable: 10 * time.Second}
	w, began := Watch{Spent: 5 * time.Second}, time.Now()
	see := func(after time.Duration, isBlind, isReady bool) {
		w, _, _, _ = w.Look(Sight{Now: began.Add(after), Limits: limits, Blind: isBlind, Lives: itLives}, update.Health{Seen: true, Ready: isReady})
	}
	see(0, false, false)
	see(time.Second, true, false)
	see(time.Minute, false, false)
	see(time.Minute+9*time.Second, false, true)
	if w.Spent != 15*time.Second {
		t.Errorf("spent %s", w.Spent)
	}
	if see(time.Hour, false, true); w.Spent != 15*time.Second {
		t.Errorf("spent %s once it was ready", w.Spent)
	}
}
