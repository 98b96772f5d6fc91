package shutdown

import (
	"testing"
	"testing/synctest"
	"time"

	"monopod/manifests"
)

// course runs a sequence of pods of which each needs some time, and returns when each was
// told to stop, with the time that it was given, and when all was over.
func course(t *testing.T, periods []Period, all []Pod, needs map[string]time.Duration) (told, given map[string]time.Duration, over time.Duration) {
	told, given = map[string]time.Duration{}, map[string]time.Duration{}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := New(func(k manifests.Key) bool {
			at, ok := told[k.Name]
			return ok && time.Since(began) >= at+needs[k.Name]
		})
		q.Periods = periods
		q.Begin(all)
		for len(q.Done) == 0 {
			for wave := q.Next(time.Now()); len(wave) > 0; wave = q.Next(time.Now()) {
				for _, k := range wave {
					h, ok := q.HaltOf(k)
					if _, twice := told[k.Name]; twice || !ok {
						t.Errorf("%s: told twice, or not halted", k)
					}
					told[k.Name], given[k.Name] = time.Since(began), h.Grace
				}
			}
			time.Sleep(time.Second)
			if time.Since(began) > time.Hour {
				t.Fatal("it does not end")
			}
		}
		over = time.Since(began)
	})
	return told, given, over
}

func TestTheNextPodsStopOnceTheFormerHave(t *testing.T) {
	told, given, _ := course(t, TwoPeriods(25*time.Second, 5*time.Second), pods("web>db", "db", "proxy:2000000000"),
		map[string]time.Duration{"web": 4 * time.Second, "db": time.Second})
	for name, want := range map[string][2]time.Duration{"web": {0, 10 * time.Second}, "db": {4 * time.Second, 16 * time.Second}, "proxy": {5 * time.Second, 5 * time.Second}} {
		if told[name] != want[0] || given[name] != want[1] {
			t.Errorf("%s was told after %s and given %s, want %s", name, told[name], given[name], want)
		}
	}
}

func TestAPodThatDoesNotStopTakesNoOthersTime(t *testing.T) {
	told, given, over := course(t, TwoPeriods(25*time.Second, 5*time.Second), pods("web>db", "db", "proxy:2000000000"),
		map[string]time.Duration{"web": time.Hour, "db": time.Hour, "proxy": time.Hour})
	for name, want := range map[string][2]time.Duration{"web": {0, 10 * time.Second}, "db": {10 * time.Second, 10 * time.Second}, "proxy": {20 * time.Second, 5 * time.Second}} {
		if told[name] != want[0] || given[name] != want[1] {
			t.Errorf("%s was told after %s and given %s, want %s", name, told[name], given[name], want)
		}
	}
	if over > 27*time.Second {
		t.Errorf("over after %s", over)
	}
}

func TestNothingIsHaltedAfterACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(func(manifests.Key) bool { return false })
		changes := 0
		q.Changed = func() { changes++ }
		q.Begin(pods("web>db", "db"))
		q.Next(time.Now())
		if stopped := q.Cancel(); len(stopped) != 1 || q.On() || changes != 2 {
			t.Errorf("%v were stopped, on: %t, %d changes", stopped, q.On(), changes)
		}
		time.Sleep(time.Hour)
		if wave := q.Next(time.Now()); len(wave) > 0 || len(q.Done) > 0 {
			t.Errorf("%v are next, %d done", wave, len(q.Done))
		}
		if _, halted := q.HaltOf(key("web")); halted {
			t.Error("web is halted")
		}
		q.Begin(nil)
		q.Next(time.Now())
		if len(q.Done) != 1 {
			t.Error("a second shutdown, of no pods, does not end")
		}
	})
}
