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
	for name, want := range map[string][2]time.Duration{"web": {0, 10 * time.Second}, "db": {4 * time.Second, 16 * time.Second}, "proxy": {5 * time.Second, 20 * time.Second}} {
		if told[name] != want[0] || given[name] != want[1] {
			t.Errorf("%s was told after %s and given %s, want %s", name, told[name], given[name], want)
		}
	}
}

// A period of critical pods is 0s unless it is set.
func TestCriticalPodsHaveTheTimeThatTheOthersDoNotNeed(t *testing.T) {
	periods := TwoPeriods(30*time.Second, 0)
	for _, row := range []struct {
		what string
		pods []Pod
		told time.Duration
		has  time.Duration
	}{
		{"there are no others", pods("etcd:2000001000"), 0, 30 * time.Second},
		{"the others stop early", pods("etcd:2000001000", "web"), 4 * time.Second, 26 * time.Second},
		{"the others need it all", pods("etcd:2000001000", "slow"), 30 * time.Second, 0},
	} {
		t.Run(row.what, func(t *testing.T) {
			told, given, over := course(t, periods, row.pods, map[string]time.Duration{"web": 4 * time.Second, "slow": time.Hour, "etcd": 20 * time.Second})
			if told["etcd"] != row.told || given["etcd"] != row.has {
				t.Errorf("etcd was told after %s and given %s, want %s and %s", told["etcd"], given["etcd"], row.told, row.has)
			}
			if want := min(row.told+20*time.Second, 30*time.Second); over < want || over > want+2*time.Second {
				t.Errorf("over after %s, want %s", over, want)
			}
		})
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
