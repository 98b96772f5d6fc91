package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/cri/critest"
)

func TestARemovedPodForgetsItsUpdate(t *testing.T) {
	for _, when := range []string{"while it is watched", "once it is rolled back"} {
		t.Run(when, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("img:2", critest.ExitsAfter(200*time.Millisecond, 1))
				if when == "while it is watched" {
					answers(r, "readiness")
				}
				bad := healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1))
				r.want(manifest("web", "img:1"))
				r.want(bad)
				r.after(10 * time.Second)
				if n := r.updateRecords(); n != 1 {
					r.Errorf("%d records", n)
				}
				r.want()
				r.after(time.Minute)
				r.expect()
				if n := r.updateRecords(); n != 0 {
					r.Errorf("%d records are left", n)
				}
				r.want(bad) // a new pod: there is nothing to go back to
				r.after(5 * time.Minute)
				if got := r.status("default/web-n").ContainerStatuses[0].Image; !strings.HasSuffix(got, "img:2") {
					r.Errorf("%s is there", got)
				}
			})
		})
	}
}

func TestTheSameContentIsNotTriedAgain(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.want(watched("img:2"))
			r.after(time.Minute)
			r.kill()
			r.start()
			r.want("# touched\n" + watched("img:2"))
			r.after(time.Minute)
		})
		r.stop()
		r.reboot()
		r.start()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.runsID(former)
		if words := r.words("default/web-n"); !strings.Contains(words, "update rolled back: ") {
			r.Errorf("it says %q", words)
		}
	})
}

func TestOtherContentIsTried(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.AddImage("img:3")
		r.want(manifest("web", "img:1"))
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.want(watched("img:3"))
		r.after(time.Minute)
		r.replaced("img:3")
		r.Program("img:2")
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.replaced("img:2")
		if n := len(r.rollbacks()); n != 1 {
			r.Errorf("%d rollbacks", n)
		}
	})
}

// The manifest of the former version says what runs already.
func TestTheFormerContentRestartsNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.want(manifest("web", "img:1"))
			r.after(time.Minute)
		})
		r.runsID(former)
		if words := r.words("default/web-n"); words != "" {
			r.Errorf("it says %q", words)
		}
		r.Program("img:2")
		r.want(watched("img:2")) // by hand, after a change: it is tried again
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

func TestAPodWithoutFormerVersionStays(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.want(watched("img:2"))
		r.after(10 * time.Minute)
		if st := r.status("default/web-n"); st.ContainerStatuses[0].RestartCount < 3 || len(r.rollbacks()) > 0 || r.updateRecords() > 0 {
			r.Errorf("status %+v, %q", st.ContainerStatuses, r.rollbacks())
		}
	})
}

func TestAVersionThatNeverRanIsNotOneToGoBackTo(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.offline("img:9")
		r.want(manifest("web", "img:9"))
		r.want(watched("img:2"))
		r.after(10 * time.Minute)
		if got := r.status("default/web-n").ContainerStatuses[0].Image; !strings.HasSuffix(got, "img:2") || len(r.rollbacks()) > 0 {
			r.Errorf("%s is there, %q", got, r.rollbacks())
		}
	})
}

// A version on trial that does not work gives way also while another edit of its manifest waits.
func TestAVersionOnTrialGivesWayWhileAnotherWaits(t *testing.T) {
	for _, row := range []struct {
		name, given string
		waits, ends func(r *rig)
		then        string
	}{
		{"for its image", unready("img:3"), func(r *rig) { r.offline("img:3") }, func(r *rig) { r.AddImage("img:3") }, "img:3"},
		{"as the pod is held", unready("img:3"), func(r *rig) { r.AddImage("img:3"); r.holds("web", "audit", "") }, func(r *rig) { r.releases("web") }, "img:3"},
		{"the former one again, as the pod is held", manifest("web", "img:1"), func(r *rig) { r.holds("web", "audit", "") }, func(r *rig) { r.releases("web") }, ""},
	} {
		for _, isKilled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed: %v", row.name, isKilled), func(t *testing.T) {
				live(t, func(r *rig) {
					answered := answers(r, "readiness")
					r.want(manifest("web", "img:1"))
					r.after(time.Minute)
					former := r.imageID()
					r.want(unready("img:2"))
					r.after(10 * time.Second)
					row.waits(r)
					r.want(row.given)
					r.after(10 * time.Second)
					r.runsImage("img:2")
					if isKilled {
						r.kill()
						r.start()
						r.want(row.given)
					}
					r.after(time.Minute)
					r.runsID(former)
					if texts := r.rollbacks(); len(texts) != 1 || !strings.Contains(texts[0], "(img:2): it was not ready within 30s") {
						t.Errorf("events %q", texts)
					}
					if words := r.words("default/web-n"); (row.then != "") != strings.Contains(words, "update waits: ") || strings.Contains(words, "rolled back") {
						t.Errorf("it says %q", words)
					}
					answered.fail()
					row.ends(r)
					r.after(5 * time.Minute)
					if row.then == "" {
						r.runsID(former)
					} else {
						r.runsImage(row.then)
					}
					if words := r.words("default/web-n"); words != "" || r.updateRecords() > 1 {
						t.Errorf("it says %q, with %d records", words, r.updateRecords())
					}
				})
			})
		}
	}
}

// So does one that fails for good: the version that waits does not start in its place first.
func TestAVersionThatFailedOnTrialGivesWayWhileAnotherWaits(t *testing.T) {
	for _, isKilled := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed: %v", isKilled), func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("img:2", critest.ExitsAfter(8*time.Second, 7))
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				former := r.imageID()
				r.want(watched("img:2", "restartPolicy: Never"))
				r.after(5 * time.Second)
				r.offline("img:3")
				next := watched("img:3", "restartPolicy: Never")
				r.want(next)
				r.after(2 * time.Second)
				r.runsImage("img:2")
				if isKilled {
					r.kill()
					r.start()
					r.want(next)
				}
				r.after(10 * time.Second)
				r.runsID(former)
				if texts := r.rollbacks(); len(texts) != 1 || !strings.Contains(texts[0], "(img:2): it has failed: container c ended with exit code 7") {
					t.Errorf("events %q", texts)
				}
				r.AddImage("img:3")
				r.after(10 * time.Minute)
				r.runsImage("img:3")
			})
		})
	}
}

// What works meanwhile is what the version that waited goes back to.
func TestAVersionThatWaitedGoesBackToTheOneThatWorkedMeanwhile(t *testing.T) {
	live(t, func(r *rig) {
		answered := answers(r)
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.want(unready("img:2"))
		r.after(2 * time.Second)
		r.offline("img:3")
		r.want(unready("img:3"))
		r.after(time.Minute)
		former := r.imageID()
		r.runsImage("img:2")
		answered.fail("readiness")
		r.AddImage("img:3")
		r.after(5 * time.Minute)
		r.runsID(former)
		r.isBack(former, "(img:3): it was not ready within 30s")
	})
}

// A removal that waits, as the pod is held, ends no trial: the manifest may come back meanwhile.
func TestARemovalThatWaitsEndsNoTrial(t *testing.T) {
	for _, row := range []struct {
		name, given string
		lasts       time.Duration // how long the version has run when its manifest goes
	}{
		{"while the version is on trial", unready("img:2"), 5 * time.Second},
		{"once it gave way", unready("img:2"), time.Minute},
		{"once it gave way, and comes back as the former one", manifest("web", "img:1"), time.Minute},
	} {
		for _, isKilled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed: %v", row.name, isKilled), func(t *testing.T) {
				live(t, func(r *rig) {
					answers(r, "readiness")
					r.want(manifest("web", "img:1"))
					r.after(time.Minute)
					former := r.imageID()
					r.want(unready("img:2"))
					r.after(row.lasts)
					started := r.containerIDs()
					r.holds("web", "audit", "")
					r.want()
					if isKilled {
						r.kill()
						r.start()
						r.want()
					}
					r.after(10 * time.Minute)
					if now := r.containerIDs(); !slices.Equal(now, started) {
						t.Errorf("there is %v, and was %v", now, started)
					}
					r.want(row.given)
					r.after(time.Minute)
					r.runsID(former)
					r.releases("web")
					started = r.containerIDs()
					r.after(time.Hour)
					if now := r.containerIDs(); !slices.Equal(now, started) {
						t.Errorf("there is %v, and was %v", now, started)
					}
					r.want()
					r.after(time.Minute)
					if n := r.updateRecords(); n != 0 {
						t.Errorf("%d records are left", n)
					}
				})
			})
		}
	}
}

// What an edit of a stopped pod starts takes the place of a version that worked, too.
func TestAVersionThatStartsAfterAStopIsOnTrial(t *testing.T) {
	for _, isKilled := range []bool{false, true} {
		for _, doc := range []string{unready("img:2"), elsewhere(unready("img:2"))} {
			live(t, func(r *rig) {
				answers(r, "readiness")
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				former := r.imageID()
				r.stops("web")
				r.after(time.Minute)
				r.want(doc)
				r.after(time.Minute)
				r.isStopped("web")
				if isKilled {
					r.kill()
					r.start()
					r.want(doc)
					r.after(time.Minute)
				}
				r.starts("web")
				r.after(20 * time.Second)
				r.runsImage("img:2")
				r.after(time.Minute)
				r.isBack(former, "it was not ready within 30s")
			})
		}
	}
}

// An edit that is taken back while the pod is stopped leaves nothing.
func TestAnEditThatIsTakenBackWhileThePodIsStoppedIsNoUpdate(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.stops("web")
		r.after(time.Minute)
		r.want(unready("img:2"))
		r.after(time.Minute)
		r.want(manifest("web", "img:1"))
		r.starts("web")
		r.after(5 * time.Minute)
		r.stays("img:1")
		if words := r.words("default/web-n"); words != "" || r.updateRecords() != 0 {
			t.Errorf("it says %q, with %d records", words, r.updateRecords())
		}
	})
}
