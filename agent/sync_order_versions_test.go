package agent

import (
	"strings"
	"testing"
	"time"

	"monopod/cri/critest"
)

// What ran before a boot starts again, though its successor waits for another pod.
func TestAfterARebootTheFormerVersionRunsThoughItsSuccessorWaitsForItsTurn(t *testing.T) {
	for _, held := range []bool{false, true} {
		live(t, func(r *rig) {
			next := after("web", "db", "img:2")
			r.want(manifest("web", "img:1"))
			if held {
				r.holds("web", "", "")
			}
			r.want(next)
			r.after(time.Minute)
			r.runsImage("img:1")
			r.stop()
			r.reboot()
			r.start()
			r.want(next)
			r.after(time.Minute)
			r.runsImage("img:1")
			r.stop()
			r.start()
			r.want(next)
			r.after(time.Minute)
			r.runsImage("img:1")
			if held {
				return
			}
			r.want(next, manifest("db", "img:1"))
			r.after(time.Minute)
			r.expect("default/web-n/c", "default/db-n/c")
			for _, c := range r.Containers() {
				if c.Pod == "web-n" && c.Config.Image.UserSpecifiedImage != "img:2" && strings.HasSuffix(c.State.String(), "RUNNING") {
					r.Errorf("%s runs", c.Config.Image.UserSpecifiedImage)
				}
			}
		})
	}
}

// And if it starts after other pods itself, when these are ready.
func TestAfterARebootTheFormerVersionHasAnOrderOfItsOwn(t *testing.T) {
	live(t, func(r *rig) {
		db, next := manifest("db", "img:1"), after("web", "cache", "img:2")
		r.want(db, after("web", "db", "img:1"))
		r.want(db, next)
		r.after(time.Minute)
		r.expect("default/web-n/c", "default/db-n/c")
		r.stop()
		r.reboot()
		slow := r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		r.start()
		r.want(db, next)
		r.after(time.Minute)
		r.expect()
		slow.Release()
		r.ClearFaults()
		r.after(5 * time.Second)
		r.expect("default/web-n/c", "default/db-n/c")
	})
}

func TestAHeldPodStartsInTheOrderOfTheVersionThatWasHeld(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "", "")
		r.stops("web")
		r.want(after("web", "db", "img:2"))
		r.starts("web")
		r.after(time.Minute)
		r.runsImage("img:1")
		r.releases("web")
		r.after(time.Minute)
		r.runsImage("img:1")
	})
}

// What a version starts after may be gone with the edit that replaced it.
func TestAVersionThatComesBackWaitsForNoTurn(t *testing.T) {
	live(t, func(r *rig) {
		db := manifest("db", "img:1")
		r.want(db, strings.Replace(after("web", "db", "img:1"), "{monopod", "{monopod.update-health: 30s, monopod", 1))
		r.after(time.Minute)
		former := r.status("default/web-n").ContainerStatuses[0].ImageID
		r.Program("default/web-n/c", critest.Exits(1))
		r.want(watched("img:2"))
		r.after(2 * time.Minute)
		if got := r.imageID(); got != former {
			r.Errorf("%s runs: %s", got, r.words("default/web-n"))
		}
	})
}

func TestAVersionThatIsAskedBackWaitsForNoTurn(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"))
		r.after(time.Minute)
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.runsImage("img:2")
		r.mustGoBack("")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if st := r.status("default/web-n"); !strings.HasSuffix(st.ContainerStatuses[0].Image, "img:1") {
			r.Errorf("%s runs: %s", st.ContainerStatuses[0].Image, r.words("default/web-n"))
		}
	})
}

// A pod stops in the order in which it runs, whatever its manifest says by now.
func TestAShutdownStopsPodsInTheOrderOfWhatRuns(t *testing.T) {
	goesDown(t, func(r *rig) {
		r.Program("default/web-n/c", critest.Runs().OnTerm(4*time.Second, 0))
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"))
		r.after(time.Minute)
		r.holds("web", "", "")
		r.want(manifest("db", "img:1"), manifest("web", "img:2"))
		r.after(time.Minute)
		r.down(true)
		r.after(2 * time.Second)
		r.expect("default/db-n/c", "default/web-n/c")
		r.after(time.Minute)
		r.expect()
	})
}
