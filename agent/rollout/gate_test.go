package rollout

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/window"
)

// noon is a Friday.
var noon = checkpoint.Moment{Mark: checkpoint.Mark{Boot: "a", Up: 9 * time.Hour}, Wall: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}

func ago(d time.Duration) checkpoint.Moment {
	return checkpoint.Moment{Mark: checkpoint.Mark{Boot: noon.Boot, Up: noon.Up - d}, Wall: noon.Wall.Add(-d)}
}

// sundays is a world in which pods change in the night to Monday only.
func sundays(w *World) {
	w.Rules.Windows, _ = window.Parse("Sun 02:00-04:00")
}

func soon(w *World) {
	w.Rules.Windows, _ = window.Parse("12:00-12:01, 12:01-12:02")
	w.Now.Wall = noon.Wall.Add(-20 * time.Second)
}

// lockIs is a lock of which that is known, and which keeps a change away for that long.
func lockIs(state Locked, since time.Duration) func(*Record) {
	return func(r *Record) {
		unknown(r)
		r.Lock.State = state
		if since > 0 {
			r.Lock.Since = ago(since)
		}
	}
}

func heldFor(d time.Duration) func(*Record) {
	return func(r *Record) { r.Hold = &hold.Hold{Reason: "audit", Since: noon.Wall, At: noon.Mark, For: d} }
}

func back(r *Record)     { r.Back = true }
func outdated(r *Record) { r.Seen.Outdated = `restart with the changed ConfigMap "app"` }

func TestTheGate(t *testing.T) {
	const webHeld, nodeIs = "held: audit (`monopod release web` ends it)", "the node is held: a visit (`monopod release` ends it)"
	const closed, lock = "outside of the update window, which opens Sun 2026-05-03 02:00:00 UTC", "locked by its workload: /data/lock, at most until 2026-05-01 12:50:00 UTC"
	const unset = "the clock is not set: whether the update window is open is not known"
	for _, row := range []struct {
		name  string
		is    func(*Record)
		world func(*World)
		says  string        // in words
		waits int           // for how much
		again time.Duration // 0: nothing
		goes  string        // of its removal
	}{
		{"nothing keeps a change away", func(*Record) {}, worldIs, "", 0, 0, ""},
		{"a hold does, until it is released", held, worldIs, webHeld, 1, 0, webHeld},
		{"or until it ends", heldFor(30 * time.Second), worldIs, "held: audit until 2026-05-01 12:00:30 UTC (`monopod release web` ends it)", 1, 30 * time.Second, "held: audit until 2026-05-01 12:00:30 UTC (`monopod release web` ends it)"},
		{"which is looked at each minute, as the clock may be set", heldFor(time.Hour), worldIs, "held: audit until 2026-05-01 13:00:00 UTC (`monopod release web` ends it)", 1, time.Minute, "held: audit until 2026-05-01 13:00:00 UTC (`monopod release web` ends it)"},
		{"a hold of the node as well", func(*Record) {}, heldNode, nodeIs, 1, 0, nodeIs},
		{"so does a closed window", func(*Record) {}, sundays, closed, 1, time.Minute, closed},
		{"until it opens", func(*Record) {}, soon, "outside of the update window, which opens Fri 2026-05-01 12:00:00 UTC", 1, 20 * time.Second,
			"outside of the update window, which opens Fri 2026-05-01 12:00:00 UTC"},
		{"an open window does not, and is looked at as it closes", func(*Record) {}, func(w *World) { w.Rules.Windows, _ = window.Parse("11:00-13:00") }, "", 0, time.Minute, ""},
		{"no window is open before the clock is set", func(*Record) {}, func(w *World) {
			w.Rules.Windows, _ = window.Parse("00:00-24:00")
			w.Now.Wall = time.Date(1970, 1, 1, 0, 0, 30, 0, time.UTC)
		}, unset, 1, time.Minute, unset},
		{"a lock of which nothing is known yet keeps it away in silence", lockIs(Unlooked, 0), worldIs, "", 1, lookEvery, ""},
		{"a free lock does not, and is looked for again", lockIs(Free, 0), worldIs, "", 0, lookEvery, ""},
		{"a lock that is held does, but no removal", lockIs(Held, 10*time.Minute), worldIs, lock, 1, lookEvery, ""},
		{"one of which the disk says nothing counts as held", lockIs(Unknown, 10*time.Minute), worldIs,
			"its disk does not say whether its workload locks it: /data/lock, at most until 2026-05-01 12:50:00 UTC", 1, lookEvery, ""},
		{"for so long only", lockIs(Held, time.Hour-time.Second), worldIs, "locked by its workload: /data/lock, at most until 2026-05-01 12:01:00 UTC", 1, time.Second, ""},
		{"then it keeps nothing away", lockIs(Held, time.Hour), worldIs, "", 0, 0, ""},
		{"also if the agent that counts now did not look yet", lockIs(Unlooked, time.Hour), worldIs, "", 0, 0, ""},
		{"and one of which the disk says nothing", lockIs(Unknown, time.Hour), worldIs, "", 0, 0, ""},
		{"before its time counts it has all of it", lockIs(Held, 0), worldIs, "locked by its workload: /data/lock, at most for 1h0m0s", 1, lookEvery, ""},
		{"all are gateTexts in one order", func(r *Record) { held(r); lockIs(Held, 10*time.Minute)(r) }, func(w *World) { heldNode(w); sundays(w) },
			webHeld + "; " + nodeIs + "; " + closed + "; " + lock, 4, lookEvery, webHeld + "; " + nodeIs + "; " + closed},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, w := edited(v2nd, row.is), worldOf(row.world)
			g, goes := r.ofChange(w), r.ofRemoval(w)
			again := time.Duration(0)
			if !g.again.IsZero() {
				again = g.again.Sub(w.Now.Wall)
			}
			if says := gateTexts(g.waits); says != row.says || len(g.waits) != row.waits || again != row.again || gateTexts(goes.waits) != row.goes {
				t.Errorf("it says %q of %d waits, again in %s; of its removal %q", says, len(g.waits), again, gateTexts(goes.waits))
			}
		})
	}
}

func worldIs(*World) {}

func TestTheGateIsBeforeEveryStopForAChange(t *testing.T) {
	all := func(r *Record) { held(r); lockIs(Held, time.Minute)(r) }
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		want  string
	}{
		{"another version waits for it", edited(v2nd, prepared, all), worldOf(sundays), "run one, prepare two; waits by Hold; waits by Window; waits by Lock"},
		{"one that has ended does not", edited(v2nd, prepared, all, ended), worldOf(sundays), "run two, take its room"},
		{"the former version does not wait to come back", edited(v2nd, prepared, seenLast, all, back), worldOf(sundays, heldNode), "run two, take its room"},
		{"but until it is prepared", edited(v2nd, all, back), worldOf(sundays), "run one, prepare two; waits by Preparing"},
		{"and for its room", edited(v2nd, prepared, all, back), worldOf(sundays, full), "run one, prepare two; waits by Room"},
		{"also in place of one that has ended on a node that is held", edited(v2nd, ended, back), worldOf(heldNode), "run two, take its room"},
		{"a removal waits for it, and for no lock", edited(nil, gone, all), worldOf(sundays), "run one; waits by Hold; waits by Window"},

		{"a restart for changed config may be", changed(running(v1st), outdated), worldOf(), "run one, take its room; may restart"},
		{"not through the gate", changed(running(v1st), outdated, all), worldOf(sundays),
			"run one, take its room; restart waits by Hold; restart waits by Window; restart waits by Lock"},
		{"nor before it was looked for a lock", changed(running(v1st), outdated, unknown), worldOf(), "run one, take its room; restart waits by Look"},
		{"of a version that came back neither", changed(running(v1st), outdated, held, back), worldOf(), "run one, take its room; restart waits by Hold"},
		{"of the version before the one that waits as well", edited(v2nd, outdated, held), worldOf(),
			"run one, prepare two; waits by Hold; waits by Preparing; restart waits by Hold"},
		{"beside one that is only being prepared it may be", edited(v2nd, outdated), worldOf(), "run one, prepare two; waits by Preparing; may restart"},
		{"while its version waits for its turn as well", edited(v2nd, outdated, held, waitsTurn), worldOf(), "run one; waits by StartOrder; restart waits by Hold"},
		{"and while its removal waits", edited(nil, gone, outdated, held), worldOf(), "run one; waits by Hold; restart waits by Hold"},
		{"what has ended restarts for nothing", changed(running(v1st), outdated, ended), worldOf(), "run one, take its room"},

		{"a held pod that was stopped starts as it was held", edited(v2nd, held, starts), worldOf(sundays), "run one, take its room, prepare two; waits by Hold; waits by Window"},
		{"on a node that is held, too", edited(v2nd, starts), worldOf(heldNode), "run one, take its room, prepare two; waits by Hold"},
		{"it needs its room for that", edited(v2nd, held, starts), worldOf(full), "run one halted; waits by Room"},
		{"and its turn", edited(v2nd, held, starts, waitsTurn, formerAfter("db", 0)), worldOf(), "run one halted; waits by StartOrder"},
		{"but not that of the version that it is kept from", edited(v2nd, held, starts, waitsTurn, formerAfter("cache", 0)), worldOf(), "run one, take its room; waits by Hold; waits by StartOrder"},
		{"a window alone does not keep its version", edited(v2nd, starts, prepared, seenLast), worldOf(sundays), "run two, take its room"},
		{"one of which nothing was there starts as its manifest says", edited(v2nd, held, starts, bare), worldOf(), "run two, take its room"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Decide(&row.is, row.world).String(); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

func TestWhatWaitsIsAskedAgain(t *testing.T) {
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		looks bool
		again time.Duration // 0: never
	}{
		{"what waits for nothing is not", running(v1st), worldOf(sundays), false, 0},
		{"an update that waits for a window is", edited(v2nd), worldOf(sundays), false, time.Minute},
		{"a removal, too", edited(nil, gone), worldOf(sundays), false, time.Minute},
		{"an update of a pod with a lock is, also while it waits for something else", edited(v2nd, lockIs(Free, 0)), worldOf(), true, lookEvery},
		{"what is known of a lock stays known when its time is over", edited(v2nd, lockIs(Held, 2*time.Hour)), worldOf(), true, 0},
		{"also while a container is to restart", changed(running(v1st), outdated, lockIs(Held, 2*time.Hour)), worldOf(), true, 0},
		{"nothing is known of it once nothing waits", changed(running(v1st), lockIs(Held, time.Minute)), worldOf(), false, 0},
		{"nor once the update goes on", edited(v2nd, prepared, seenLast, lockIs(Free, 0)), worldOf(), false, 0},
		{"the first start on a held node is when the hold ends", changed(running(v1st), fresh),
			worldOf(func(w *World) { w.NodeHold = &hold.Hold{Since: noon.Wall, At: noon.Mark, For: 9 * time.Second} }), false, 9 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := Decide(&row.is, row.world)
			again := time.Duration(0)
			if !d.Again.IsZero() {
				again = d.Again.Sub(row.world.Now.Wall)
			}
			if d.Looks != row.looks || again != row.again {
				t.Errorf("it looks: %v, again in %s: %s", d.Looks, again, d)
			}
		})
	}
}

func TestALockCountsFromWhenItFirstKeptAChangeAway(t *testing.T) {
	pod := version("one", func(p *v1.Pod) {
		p.Annotations = map[string]string{"monopod.update-lock": "/data/lock"}
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/data"}}
	})
	l := LockOf(pod.Pod, Lock{})
	if l.File != "/data/lock" || l.UID != pod.UID || !l.Since.IsZero() {
		t.Fatalf("%+v", l)
	}
	if l = l.Seen(Free, true, ago(time.Hour)); !l.Since.IsZero() {
		t.Error("a free lock keeps something away")
	}
	if l = l.Seen(Held, false, ago(time.Hour)); !l.Since.IsZero() {
		t.Error("its time counts while a hold keeps the change away, too")
	}
	l = l.Seen(Held, true, ago(time.Minute))
	l = l.Seen(Free, true, ago(time.Second)).Seen(Held, true, noon)
	if l.Since != ago(time.Minute) || LockOf(pod.Pod, l) != l {
		t.Errorf("%+v", l)
	}
	if l = l.Seen(Held, false, ago(50*time.Second)).Seen(Held, false, noon); l.spent(noon) != 10*time.Second || !l.Counts() {
		t.Errorf("%s of one that stays count during a hold, want 10s", l.spent(noon))
	}
	if after := l.Seen(Held, true, ago(5*time.Second)); after.spent(noon) != 15*time.Second {
		t.Errorf("%s of one that stays count after a hold, want 15s", after.spent(noon))
	}
	if after := l.Seen(Free, false, noon).Seen(Held, true, noon); after.Since != noon || after.spent(noon) != 0 {
		t.Errorf("one that was free during a hold counts from %+v, with %s", after.Since, after.Spent)
	}
	if other := LockOf(version("two").Pod, l); other != (Lock{}) {
		t.Errorf("a version without a lock has %+v", other)
	}
	next := pod.DeepCopy()
	next.UID = "uid-two"
	if other := LockOf(next, l); other.UID != next.UID || other.State != Unlooked || !other.Since.IsZero() {
		t.Errorf("another instance has %+v", other)
	}
}
