package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/cri/critest"
)

// unready is a version that never gets ready, whose update is watched for 30 s.
func unready(image string) string {
	return healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", image, 1))
}

// elsewhere is a version that replaces the pod.
func elsewhere(doc string) string {
	return strings.Replace(doc, "spec:\n", "spec:\n  hostname: other\n", 1)
}

// updateCalls are the calls of an update and its way back, in order.
func updateCalls(t *testing.T, bad string) (methods []string) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		r.ForgetCalls()
		r.want(bad)
		r.after(2 * time.Minute)
		for _, c := range r.Calls() {
			if changes(c.Method) {
				methods = append(methods, c.Method)
			}
		}
	})
	return methods
}

// Whenever the agent dies during an update that is rolled back, the next one rolls it
// back, and says so once.
func TestAKilledAgentsUpdateIsRolledBack(t *testing.T) {
	for kind, bad := range map[string]string{"in place": unready("img:2"), "replaced": elsewhere(unready("img:2"))} {
		counts := map[string]int{}
		methods := updateCalls(t, bad)
		if len(methods) < 7 || kind == "replaced" && len(methods) < 10 {
			t.Fatalf("%s: only calls %v", kind, methods)
		}
		for _, method := range methods {
			counts[method]++
			nth := counts[method]
			for name, killed := range map[string]func(*critest.Fault, func()) *critest.Fault{"before": (*critest.Fault).Before, "after": (*critest.Fault).After} {
				t.Run(kind+", "+name+" "+method, func(t *testing.T) {
					live(t, func(r *rig) {
						r.rollsBackThough(bad, method, killed(critest.On(method).Nth(nth), func() { r.life.cutOff() }))
					})
				})
			}
		}
	}
}

// rollsBackThough updates a pod to a version that never gets ready, lets the agent die in between, and
// checks that the next one goes back.
func (r *rig) rollsBackThough(bad, method string, dies *critest.Fault) {
	answers(r, "readiness")
	r.want(manifest("web", "img:1"))
	former := r.imageID()
	r.after(time.Second)
	r.ForgetCalls()
	life := r.life
	r.Fault(dies)
	r.want(bad)
	for range 120 {
		if r.after(time.Second); life.over.Load() {
			break
		}
	}
	if !life.over.Load() {
		r.Fatalf("%s did not kill the agent", method)
	}
	r.bury()
	r.start()
	r.want(bad)
	r.after(2 * time.Minute)
	r.runsID(former)
	if words := r.words("default/web-n"); !strings.Contains(words, "it was not ready within 30s") {
		r.Errorf("it says %q", words)
	}
	if n := strings.Count(r.log.String(), `msg="update rolled back"`); n > 1 {
		r.Errorf("said %d times", n)
	}
}

// An agent that dies once the former version is accepted, and before it runs, leaves it to the next one
// to say that it is back.
func TestAKilledAgentsRollbackIsSaidByTheNextOne(t *testing.T) {
	for _, dies := range []*critest.Fault{critest.On("RunPodSandbox").Nth(2), critest.On("StartContainer").Nth(2)} {
		live(t, func(r *rig) {
			r.rollsBackThough(elsewhere(unready("img:2")), "the update", dies.Before(func() { r.life.cutOff() }))
			if texts := r.rollbacks(); len(texts) != 1 || !strings.Contains(texts[0], "(img:2): it was not ready within 30s") {
				r.Errorf("events %q", texts)
			}
			if n := r.samples()["monopod_rollbacks_total"]; n != 1 {
				r.Errorf("%v rollbacks are counted", n)
			}
			r.kill()
			r.start()
			r.want(elsewhere(unready("img:2")))
			r.after(time.Minute)
			if n := strings.Count(r.log.String(), `msg="update rolled back"`); n != 1 {
				r.Errorf("said %d times", n)
			}
		})
	}
}

// The time that is left counts from when the next agent sees the version.
func TestAKilledAgentsWatchGoesOn(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(unready("img:2"))
		r.after(21 * time.Second)
		r.kill()
		r.after(time.Hour) // for which it did not run
		r.start()
		r.want(unready("img:2"))
		r.after(5 * time.Second)
		r.stays("img:2")
		r.after(40 * time.Second)
		r.runsID(former)
		r.isBack(former, "it was not ready within 30s")
	})
}

func TestAKilledAgentsHealthyVersionStays(t *testing.T) {
	for _, when := range []time.Duration{time.Second, 8 * time.Second, 12 * time.Second, time.Minute} {
		live(t, func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.want(watched("img:2"))
			for range 3 {
				r.after(when)
				r.kill()
				r.start()
				r.want(watched("img:2"))
			}
			r.after(time.Minute)
			r.stays("img:2")
			if n := r.updateRecords(); n != 0 {
				r.Errorf("%d records are left", n)
			}
		})
	}
}

// Whatever a reboot does to a version, it has its whole time after it.
func TestARebootIsNoReasonToRollBack(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(unready("img:2"))
		r.after(25 * time.Second)
		r.kill()
		r.reboot()
		r.start()
		r.want(unready("img:2"))
		r.after(25 * time.Second)
		r.stays("img:2")
		a.fail()
		r.after(3 * time.Second) // it is ready
		r.kill()
		r.reboot()
		r.boot.ID = "a third"
		r.start()
		r.want(unready("img:2"))
		r.after(time.Minute)
		r.stays("img:2")
		if r.imageID() == former || r.updateRecords() > 0 {
			r.Errorf("%s runs, %d records", r.imageID(), r.updateRecords())
		}
	})
}

func TestImagesOfTheFormerVersionAreKept(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		bad := healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1))
		needs := func() (names []string) {
			all, _ := r.sync.needs.All()
			for _, n := range all {
				names = append(names, n.Image)
			}
			return names
		}
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(bad)
		r.after(5 * time.Second)
		if !slices.Contains(needs(), former) {
			r.Errorf("needs %v while it is watched", needs())
		}
		r.kill()
		r.start()
		r.want(bad)
		if !slices.Contains(needs(), former) || !slices.Contains(needs(), "img:2") {
			r.Errorf("needs %v after a restart", needs())
		}
		r.after(2 * time.Minute)
		r.runsID(former)
		r.want()
		r.after(time.Minute)
		if slices.Contains(needs(), former) {
			r.Errorf("needs %v once the pod is gone", needs())
		}
	})
}
