package rollout

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/prepare"
	"monopod/agent/update"
	"monopod/manifests"
)

// version returns a version of the pod: each image is one, with an instance of its own.
func version(image string, change ...func(*v1.Pod)) *manifests.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("uid-" + image)},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}}}
	for _, do := range change {
		do(p)
	}
	digest := image
	if len(p.Labels) > 0 {
		digest += "+"
	}
	return &manifests.Pod{Pod: p, Digest: digest, File: "/m/web.yaml"}
}

// labelled is a version that runs in the place of another, under its uid.
func labelled(image string) *manifests.Pod {
	return version(image, func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} })
}

var v1st, v2nd = version("one"), version("two")

// running is a pod of which a version runs, as its manifest says.
func running(p *manifests.Pod) Record {
	return Record{Key: p.Key(), Offered: p, Accepted: p, Works: true, Now: Decision{Run: p}, Started: VersionOf(p), Seen: Seen{Ready: true}}
}

// edited is a pod that runs and whose manifest gives another version.
func edited(to *manifests.Pod, change ...func(*Record)) Record {
	r := running(v1st)
	r.Offered = to
	return changed(r, change...)
}

func changed(r Record, change ...func(*Record)) Record {
	for _, do := range change {
		do(&r)
	}
	return r
}

func prepared(r *Record) {
	r.Now.Prepare, r.Prepared = r.Offered, prepare.State{Of: r.Offered, Ready: true}
}
func seenLast(r *Record)  { r.Now.Final, r.Prepared.Final = true, true }
func preparing(r *Record) { r.Now.Prepare = r.Offered }
func unmade(r *Record)    { r.Seen.Unmade = true }
func coming(r *Record)    { r.Coming = VersionOf(r.Accepted) }
func ended(r *Record)     { r.Over = true }
func fresh(r *Record) {
	r.Accepted, r.Works, r.Now, r.Seen, r.Started = nil, false, Decision{}, Seen{}, Version{}
}
func restarted(r *Record) {
	r.Works, r.Now, r.Seen = false, Decision{}, Seen{}
	r.Left = map[string]*checkpoint.Checkpoint{"uid-one": {}}
}
func gone(r *Record)    { r.Offered, r.Gone = nil, true }
func notRead(r *Record) { r.Offered = nil }
func stray(r *Record)   { fresh(r); r.Stray = true }
func held(r *Record)    { r.Hold = &hold.Hold{Reason: "audit"} }
func unknown(r *Record) { r.Lock = Lock{File: "/data/lock", UID: "uid-one"} }
func stopped(r *Record) { r.Stop = &Stop{Version: r.Accepted}; r.Accepted = nil }
func starts(r *Record)  { stopped(r); r.Stop.Starts = true }
func bare(r *Record)    { r.Stop.Version = nil }
func terminated(r *Record) {
	r.Now.Halt = plan.Halt{Waiting: plan.Waiting{Reason: "Terminated"}, Terminated: true}
}
func olderBoot(r *Record) { r.Started = Version{} }

var unready, ready = update.Health{Seen: true}, update.Health{Seen: true, Ready: true}

// tried is a trial of the second version, which ran so long and was not ready.
func tried(h update.Health, spent time.Duration) func(*Record) {
	return func(r *Record) {
		r.Trial = &Trial{Former: v1st, Pinned: v1st, Tried: v2nd, Safe: true, Health: h, Watch: Watch{Spent: spent}}
	}
}

// gaveWay is such a trial that came to its verdict some time ago, which is not on disk.
func gaveWay(ago time.Duration) func(*Record) {
	return func(r *Record) {
		tried(unready, 0)(r)
		r.Trial.Reason, r.Trial.Found = "it has failed", noon.Wall.Add(-ago)
	}
}
func waitsForDisk(r *Record) { r.Trial.Safe = false }
func wasReady(r *Record) {
	tried(ready, 0)(r)
	r.Trial.Watch = Watch{isReady: true, ready: asked.Stable}
}

// waitsTurn is a version that waits for the pod db, which is never ready.
func waitsTurn(r *Record) {
	r.Order = Order{Of: r.Offered, After: []manifests.Key{{Namespace: "default", Name: "db"}}, Since: noon.Wall.Add(-time.Minute)}
}
func waitsAWhile(r *Record) { waitsTurn(r); r.Order.Timeout = 90 * time.Second }
func waitedLong(r *Record)  { waitsTurn(r); r.Order.Timeout = time.Minute }
func hadTurn(r *Record)     { waitsTurn(r); r.Order.Since = time.Time{} }

// formerAfter is an order of the version that ran before.
func formerAfter(other string, timeout time.Duration) func(*Record) {
	return func(r *Record) {
		r.Order.Former = &Order{Of: v1st, After: []manifests.Key{{Namespace: "default", Name: other}}, Timeout: timeout}
	}
}
func turnComes(r *Record) { waitsTurn(r); r.Order.After[0].Name = "cache" } // which is ready

// full is a world in which the node has no room.
func full(w *World) {
	w.Room = func(*manifests.Pod) *admission.Rejection {
		return &admission.Rejection{Reason: "OutOfcpu", Message: message.Fixed("no cpu is left")}
	}
}
func blind(w *World) { w.Blind = true }
func down(w *World)  { w.Down = true }
func waves(w *World) {
	w.Down, w.Terminated = true, func(manifests.Key) (plan.Halt, bool) {
		return plan.Halt{Waiting: plan.Waiting{Reason: "Terminated"}, Terminated: true}, true
	}
}
func heldNode(w *World)  { w.NodeHold = &hold.Hold{Reason: "a visit"} }
func stopFirst(w *World) { w.StopsFirst = func(*v1.Pod) bool { return true } }
func replaces(w *World)  { w.Policy = "Replace" }

func worldOf(change ...func(*World)) *World {
	w := &World{Now: noon, Rules: Rules{LockMax: time.Hour}, Names: Names{Has: func(manifests.Key) bool { return true }}, Ready: func(key manifests.Key) bool { return key.Name == "cache" },
		Limits: func(*manifests.Pod) update.Limits { return asked }, Terminated: func(manifests.Key) (plan.Halt, bool) { return plan.Halt{}, false }, StopsFirst: func(*v1.Pod) bool { return false }, Room: func(*manifests.Pod) *admission.Rejection { return nil }, Lives: func(*manifests.Pod) bool { return true }}
	for _, do := range change {
		do(w)
	}
	return w
}

// sized is a version of the pod that asks for so many cpus.
func sized(cpu string) *manifests.Pod {
	p := version("one")
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi")}
	p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: amounts, Limits: amounts}
	p.Digest = "sized " + cpu
	return p
}

func TestDecide(t *testing.T) {
	restarts := func(p *v1.Pod) { p.UID, p.Spec.RestartPolicy = v1st.UID, v1.RestartPolicyAlways }
	inPlace := running(version("one", restarts))
	failedBeside := changed(running(v2nd), ended, func(r *Record) { r.Offered = version("three") })
	inPlace.Offered = version("two", restarts)
	foreign := version("win", func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} })
	for _, row := range []struct {
		name  string
		is    Record
		world *World
		want  string
	}{
		// Starts.
		{"a new pod starts", changed(running(v1st), fresh), worldOf(), "run one, take its room"},
		{"without room it waits, and nothing of it is there", changed(running(v1st), fresh), worldOf(full), "rest; waits by Room"},
		{"while the node is held nothing new starts", changed(running(v1st), fresh), worldOf(heldNode), "rest; waits by Hold"},
		{"nor while the machine goes down", changed(running(v1st), fresh), worldOf(down, heldNode), "rest; waits by Shutdown"},
		{"what was let start goes on after a restart of the agent", changed(running(v1st), restarted), worldOf(down, heldNode, full), "run one, take its room"},
		{"a pod for another system never runs", changed(running(foreign), fresh), worldOf(full), "rest; waits by Room"},
		{"what is left of a refused pod goes", changed(running(v1st), fresh, restarted), worldOf(full), "run nothing; waits by Room"},

		// The start order.
		{"a pod whose turn has not come rests", changed(running(v1st), fresh, waitsTurn), worldOf(), "rest; waits by StartOrder"},
		{"its former version runs on", edited(v2nd, waitsTurn), worldOf(), "run one; waits by StartOrder"},
		{"one from before the last boot starts again", edited(v2nd, restarted, waitsTurn, olderBoot), worldOf(), "run one; waits by StartOrder"},
		{"in its own turn", edited(v2nd, restarted, waitsTurn, olderBoot, formerAfter("db", 0)), worldOf(), "rest; waits by StartOrder"},
		{"which may come before that of its successor", edited(v2nd, restarted, waitsTurn, olderBoot, formerAfter("cache", 0)), worldOf(), "run one; waits by StartOrder"},
		{"and is awaited at most for its own time", edited(v2nd, restarted, waitsTurn, olderBoot, formerAfter("db", 90*time.Second)), worldOf(), "rest; waits by StartOrder; again in 30s"},
		{"then it starts", edited(v2nd, restarted, waitsTurn, olderBoot, formerAfter("db", time.Minute)), worldOf(), "run one; waits by StartOrder"},
		{"one that has ended does not start again", edited(v2nd, restarted, waitsTurn, olderBoot, ended), worldOf(), "rest; waits by StartOrder"},
		{"one that a cancelled shutdown halted starts again", edited(v2nd, terminated, waitsTurn, olderBoot), worldOf(), "run one; waits by StartOrder"},
		{"in its own turn, too", edited(v2nd, terminated, waitsTurn, olderBoot, formerAfter("db", 0)), worldOf(), "run one halted; waits by StartOrder"},
		{"what a previous agent was removing goes", changed(running(v1st), fresh, restarted, waitsTurn), worldOf(), "run nothing; waits by StartOrder"},

		{"before its time is up it waits", changed(running(v1st), fresh, waitsAWhile), worldOf(), "rest; waits by StartOrder; again in 30s"},
		{"once its time is up it starts", changed(running(v1st), fresh, waitedLong), worldOf(), "run one, take its room"},
		{"once all are ready it starts", changed(running(v1st), fresh, turnComes), worldOf(), "run one, take its room"},
		{"one that had its turn waits for its room alone", changed(running(v1st), fresh, hadTurn), worldOf(full), "rest; waits by Room"},
		{"one that starts again after a stop has its time, too", changed(running(v1st), starts, waitsAWhile), worldOf(), "run one halted; waits by StartOrder; again in 30s"},

		// Changes.
		{"a version that asks for nothing new takes over at once", edited(labelled("one")), worldOf(full), "run one+, in place"},
		{"but not through a closed gate", edited(labelled("one"), held), worldOf(), "run one, prepare one+; waits by Hold; waits by Preparing"},
		{"and not under updatePolicy Replace", edited(labelled("one")), worldOf(replaces), "run one, prepare one+; waits by Preparing"},
		{"another version is prepared beside the one that runs", edited(v2nd), worldOf(), "run one, prepare two; waits by Preparing"},
		{"once it is prepared, there is a last look at what it needs", edited(v2nd, prepared), worldOf(), "run one, prepare two at last; waits by LastLook"},
		{"after which it takes its place", edited(v2nd, prepared, seenLast), worldOf(), "run two, take its room"},
		{"a last look that was not asked for is none", edited(v2nd, prepared, seenLast, func(r *Record) { r.Now.Final = false }), worldOf(), "run one, prepare two at last; waits by LastLook"},
		{"a gate that closes makes it void", edited(v2nd, prepared, seenLast, held), worldOf(), "run one, prepare two; waits by Hold"},
		{"so does a node without room", edited(v2nd, prepared, seenLast), worldOf(full), "run one, prepare two; waits by Room"},
		{"so does another version", changed(edited(v2nd, prepared, seenLast), func(r *Record) { r.Offered = version("three") }), worldOf(), "run one, prepare three; waits by Preparing"},
		{"a version in place has its last look, too", edited(labelled("one"), prepared, seenLast), worldOf(replaces), "run one+, take its room"},
		{"not through a closed gate", edited(v2nd, prepared, held), worldOf(), "run one, prepare two; waits by Hold"},
		{"nor through one of which nothing is known yet", edited(v2nd, prepared, unknown), worldOf(), "run one, prepare two; waits by Look; again in 2s"},
		{"nor without room", edited(v2nd, prepared), worldOf(full), "run one, prepare two; waits by Room"},
		{"a version that can never run is not prepared", edited(foreign, prepared), worldOf(final), "run one; waits by Room"},
		{"the machine that goes down changes nothing", edited(v2nd, prepared), worldOf(down), "run one, prepare two; waits by Shutdown"},
		{"a resize needs nothing but its room", changed(running(sized("1")), func(r *Record) { r.Offered = sized("2") }), worldOf(), "run sized 2, take its room"},
		{"and an open gate", changed(running(sized("1")), held, func(r *Record) { r.Offered = sized("2") }), worldOf(), "run sized 1, prepare sized 2; waits by Hold; waits by Preparing"},
		{"stop first: the former one goes at once", edited(v2nd), worldOf(stopFirst), "run two, take its room"},
		{"stop first waits for the gate all the same", edited(v2nd, held), worldOf(stopFirst), "run one, prepare two; waits by Hold; waits by Preparing"},
		{"a version of which nothing was made is given up for the next", edited(v2nd, preparing, unmade), worldOf(), "run two, take its room"},
		{"but starts until that is prepared, if it has taken the place of another one", edited(v2nd, preparing, unmade, coming), worldOf(), "run one, prepare two; waits by Preparing"},
		{"and is given up then", edited(v2nd, prepared, unmade, coming), worldOf(heldNode), "run two, take its room"},
		{"and that is believed only of what was asked", edited(v2nd, unmade), worldOf(), "run one, prepare two; waits by Preparing"},
		{"a pod that has ended starts its next version", edited(v2nd, ended, held), worldOf(), "run two, take its room"},
		{"after a restart of the agent the former one is kept, too", edited(v2nd, restarted), worldOf(), "run one, prepare two; waits by Preparing"},

		// The owner's stops.
		{"a stopped pod keeps its volumes and runs nothing", changed(running(v1st), stopped), worldOf(), "run one halted; waits by Stopped"},
		{"also in another version, and with its turn not come", changed(edited(v2nd), stopped, waitsTurn), worldOf(down), "run one halted; waits by Stopped"},
		{"one without a version rests", changed(running(v1st), fresh, stopped), worldOf(), "rest; waits by Stopped"},
		{"one that is started starts", changed(running(v1st), starts), worldOf(heldNode), "run one, take its room"},
		{"without room it stays halted", changed(running(v1st), starts), worldOf(full), "run one halted; waits by Room"},
		{"as another version it starts once that is prepared", changed(edited(v2nd), starts), worldOf(), "run one halted, prepare two; waits by Preparing"},
		{"as one that restarts nothing it starts at once", changed(edited(labelled("one")), starts), worldOf(), "run one+, take its room"},
		{"so it does with other resources", changed(running(sized("1")), starts, func(r *Record) { r.Offered = sized("2") }), worldOf(), "run sized 2, take its room"},
		{"not with another image", changed(inPlace, starts), worldOf(), "run one halted, prepare two; waits by Preparing"},
		{"and was looked at last", changed(edited(v2nd), starts, prepared), worldOf(), "run one halted, prepare two at last; waits by LastLook"},
		{"then the one before goes", changed(edited(v2nd), starts, prepared, seenLast), worldOf(), "run two, take its room"},
		{"or at once, if it stops first", changed(edited(v2nd), starts), worldOf(stopFirst), "run two, take its room"},
		{"before its turn as well", changed(running(v1st), starts, waitsTurn), worldOf(), "run one halted; waits by StartOrder"},

		// Removals.
		{"a pod without a manifest goes", changed(running(v1st), gone), worldOf(down, full), "run nothing"},
		{"not while it is held", changed(running(v1st), held, gone), worldOf(), "run one; waits by Hold"},
		{"held or not, one that has ended goes", changed(running(v1st), held, ended, gone), worldOf(), "run nothing"},
		{"nor while it is held and stopped", changed(running(v1st), held, stopped, gone), worldOf(), "run one halted; waits by Hold"},
		{"a stopped one goes", changed(running(v1st), stopped, gone), worldOf(), "run nothing"},
		{"one that never ran is forgotten", changed(running(v1st), fresh, held, gone), worldOf(), "rest"},
		{"what a previous agent left goes", changed(running(v1st), restarted, gone), worldOf(), "run nothing"},
		{"what the runtime has of a pod that nobody knows goes", changed(running(v1st), stray, gone), worldOf(), "run nothing"},
		{"and what it has of one that may not start", changed(running(v1st), stray), worldOf(full), "run nothing; waits by Room"},
		{"before its manifests are read, nothing is decided on what a pod left", changed(running(v1st), restarted, notRead), worldOf(), "rest"},

		// The shutdown.
		{"a pod whose turn to stop has come is halted", running(v1st), worldOf(waves), "run one halted, take its room; waits by Shutdown"},
		{"with it goes what was prepared", edited(v2nd, prepared), worldOf(waves), "run one halted; waits by Shutdown; waits by Shutdown"},
		{"what a previous agent left is stopped, too", changed(running(v1st), restarted, waitsTurn), worldOf(waves), "run one halted; waits by StartOrder; waits by Shutdown"},
		{"whether or not its manifest is read", changed(running(v1st), restarted, notRead), worldOf(waves), "run one halted; waits by Shutdown"},
		{"it runs on when the machine stays up, though its manifest is not read", changed(running(v1st), terminated, notRead), worldOf(), "run one"},
		{"and waits for its turn otherwise", changed(running(v1st), terminated, waitsTurn), worldOf(), "run one halted; waits by StartOrder"},
		{"what goes, goes", changed(running(v1st), gone), worldOf(waves), "run nothing"},
		{"a stopped pod stays so", changed(running(v1st), stopped), worldOf(waves), "run one halted; waits by Stopped"},

		// Trials.
		{"a version on trial is looked at each second", changed(running(v2nd), tried(unready, 0)), worldOf(), "run two, take its room; again in 1s"},
		{"and when its time is over", changed(running(v2nd), tried(unready, 29500*time.Millisecond)), worldOf(), "run two, take its room; again in 500ms"},
		{"or when it was ready for long enough", changed(running(v2nd), tried(ready, 0), func(r *Record) { r.Trial.Watch = Watch{isReady: true, ready: 9500 * time.Millisecond} }), worldOf(), "run two, take its room; again in 500ms"},
		{"or earlier, if anything else is looked at then", changed(running(v2nd), tried(unready, 0), outdated, lockIs(Held, time.Hour-100*time.Millisecond)), worldOf(), "run two, take its room; restart waits by Lock; again in 100ms"},
		{"what waits for what is no fault of its own is not looked at", changed(running(v2nd), tried(update.Health{Seen: true, Waits: true}, 0)), worldOf(), "run two, take its room"},
		{"nor one of which nothing was seen", changed(running(v2nd), tried(update.Health{}, 0)), worldOf(), "run two, take its room"},
		{"nor one that is not on trial yet", changed(running(v1st), tried(unready, 0), waitsForDisk), worldOf(), "run one, take its room"},
		{"one that has ended is healthy", changed(running(v2nd), tried(update.Health{Seen: true, Succeeded: true}, 0)), worldOf(), "run two, take its room; trial: healthy"},
		{"or failed, while another waits, which starts after that", changed(failedBeside, tried(update.Health{Seen: true, Failed: true}, 0)), worldOf(), "run two, prepare three; waits by Preparing; trial: rolls back; again in 10s"},
		{"which it does at once if the one on trial succeeded", changed(failedBeside, tried(update.Health{Seen: true, Succeeded: true}, 0)), worldOf(), "run three, take its room"},
		{"one whose time is over rolls back, as soon as that is on disk", changed(running(v2nd), tried(unready, 30*time.Second)), worldOf(), "run two, take its room; trial: rolls back; again in 10s"},
		{"until then it runs", changed(running(v2nd), gaveWay(time.Second)), worldOf(), "run two, take its room; again in 9s"},
		{"at most until the time of the disk is over", changed(running(v2nd), gaveWay(fileWithin)), worldOf(), "run two, take its room; trial: overdue"},
		{"nothing is said of what cannot be seen", changed(running(v2nd), tried(unready, 30*time.Second)), worldOf(blind), "run two, take its room; again in 1s"},
		{"nor of what is halted", changed(running(v2nd), tried(unready, 30*time.Second)), worldOf(waves), "run two halted, take its room; waits by Shutdown"},
		{"what is refused goes on with its trial", changed(edited(version("three")), tried(unready, 0)), worldOf(full), "run one, prepare three; waits by Preparing; waits by Room; again in 1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := Decide(&row.is, row.world)
			got := d.String()
			if !d.Again.IsZero() {
				got += "; again in " + d.Again.Sub(noon.Wall).String()
			}
			if got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// final is a world that refuses what only another manifest can mend.
func final(w *World) {
	w.Room = func(p *manifests.Pod) *admission.Rejection { return admission.AdmitOS(p.Pod) }
}

func TestAVersionWhoseRoomWasTakenMeanwhileWaits(t *testing.T) {
	why := admission.Rejection{Reason: admission.ReasonUIDInUse, Message: message.Fixed("another pod has it")}
	for _, row := range []struct {
		name string
		is   Record
		want string
	}{
		{"a new pod rests", changed(running(v1st), fresh), "rest; waits by Room"},
		{"the former version runs on, and the next stays prepared", edited(v2nd, prepared), "run one, prepare two; waits by Room"},
		{"a pod that is started stays halted", changed(running(v1st), starts), "run one halted; waits by Room"},
		{"a trial goes on", changed(running(v2nd), tried(unready, 30*time.Second)), "run two; waits by Room; trial: rolls back"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Deny(&row.is, worldOf(), row.is.Offered, &why).String(); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

func TestWhichPodMayGiveWayToOthers(t *testing.T) {
	refused := func(reason string) func(*Record) {
		return func(r *Record) { r.Now.Refused = &Refusal{Of: r.Offered, Why: admission.Rejection{Reason: reason}} }
	}
	waits := func(by ...Cause) func(*Record) {
		return func(r *Record) {
			for _, cause := range by {
				r.Now.Waits = append(r.Now.Waits, Wait{By: cause})
			}
		}
	}
	for _, row := range []struct {
		name string
		is   Record
		want bool
	}{
		{"it lacks nothing but room", edited(v2nd, refused("OutOfcpu"), waits(ByRoom)), true},
		{"it lacks something else, too", edited(v2nd, refused("OutOfcpu"), waits(ByLack, ByRoom)), false},
		{"nothing of it runs", changed(running(v1st), fresh, refused("OutOfcpu"), waits(ByRoom)), false},
		{"it is not refused", edited(v2nd, waits(ByRoom)), false},
		{"it will never run", edited(v2nd, refused("PodOSNotSupported"), waits(ByRoom)), false},
		{"its gate is closed by now", edited(v2nd, refused("OutOfcpu"), waits(ByRoom), held), false},
	} {
		if got := MayGiveWay(&row.is, worldOf()); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// A name over which the loop panicked has what it had, and says why nothing becomes of the rest.
func TestANameStaysAsItIsOverAFault(t *testing.T) {
	again := noon.Wall.Add(time.Minute)
	for name, is := range map[string]Record{"its version runs": running(v1st), "its manifest is gone": changed(running(v1st), gone)} {
		d := Stay(&is, message.Fixed("panic"), noon.Wall, again)
		if d.Run != is.Now.Run || !d.WaitsBy(ByFault) || !d.Again.Equal(again) || (d.Refused != nil) != (is.Offered != nil) {
			t.Errorf("%s: %+v", name, d)
		}
		if d.Refused != nil && (d.Refused.Of != is.Offered || d.Refused.Why.Reason != "UnexpectedAdmissionError" || !d.Refused.Since.Equal(noon.Wall)) {
			t.Errorf("%s: %+v", name, d.Refused)
		}
	}
}
