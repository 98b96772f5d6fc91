package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/node"
	"monopod/agent/status"
	"monopod/manifests"
)

func podKey(name string) manifests.Key { return manifests.Key{Namespace: "default", Name: name + "-n"} }

// stops and starts are what monopod stop and start ask for.
func (r *rig) stops(name string) {
	r.Helper()
	noErr(r.T, r.owner.Stop(r.Context(), podKey(name), nil))
	r.settle()
}

func (r *rig) starts(name string) {
	r.Helper()
	noErr(r.T, r.owner.Start(r.Context(), podKey(name), nil))
	r.settle()
}

// isStopped checks that nothing of a pod is in the runtime, and that its status says why.
func (r *rig) isStopped(name string) {
	r.Helper()
	key := podKey(name)
	for _, b := range r.Sandboxes() {
		if b.Name == key.Name {
			r.Errorf("%s has a sandbox", key)
		}
	}
	st := r.status(key.String())
	if st.Reason != status.ReasonStopped || st.Phase != v1.PodPending {
		r.Errorf("%s: phase %s, reason %q", key, st.Phase, st.Reason)
	}
	if words := r.words(key.String()); strings.Count(words, "stopped by request") != 1 || strings.Contains(words, "|") {
		r.Errorf("it says %q", words)
	}
}

func TestAStoppedPodRunsNothingUntilItIsStarted(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("other", "img:1"))
		r.stops("web")
		r.after(time.Hour)
		r.expect("default/other-n/c")
		r.isStopped("web")
		r.stopsNothing(func() { r.stops("web") })
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/other-n/c", "default/web-n/c")
		if words := r.words("default/web-n"); words != "" {
			r.Errorf("it says %q", words)
		}
		count := map[string]int{}
		r.events.List("").Each(func(e *v1.Event) bool {
			count[e.Reason] += int(max(e.Count, 1))
			return true
		})
		if count["Stopped"] != 1 || count["Starting"] != 1 {
			r.Errorf("events %v", count)
		}
	})
}

// The stop is the whole pod's: hooks, and sidecars after those that rely on them.
func TestAStopKeepsTheOrderOfThePod(t *testing.T) {
	live(t, func(r *rig) {
		r.want("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  initContainers: [{name: side, image: 'img:1', restartPolicy: Always}]\n" +
			"  containers: [{name: c, image: 'img:1', lifecycle: {preStop: {exec: {command: [pre]}}}}]\n")
		r.after(time.Minute)
		r.ForgetCalls()
		r.stops("web")
		r.after(time.Minute)
		r.isStopped("web")
		if n := r.Count("ExecSync"); n != 1 {
			r.Errorf("%d hooks ran", n)
		}
		if n := r.Count("StopContainer"); n != 2 {
			r.Errorf("%d containers were stopped", n)
		}
	})
}

func TestAPodStaysStoppedOverRestartsAndReboots(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stops("web")
		for k := range 3 {
			r.kill()
			if k == 1 {
				r.reboot()
			}
			r.ForgetCalls()
			r.start()
			r.want(manifest("web", "img:1"))
			r.after(time.Hour)
			r.expect()
			r.isStopped("web")
			if n := r.made(); n > 0 {
				r.Errorf("%d calls make something", n)
			}
		}
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.kill()
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

// An agent that dies while it stops a pod does not leave it running.
func TestAStopGoesOnInTheNextAgent(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		noErr(r.T, r.owner.Stop(r.Context(), podKey("web"), nil))
		r.kill()
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.isStopped("web")
	})
}

func TestANewerVersionOfAStoppedPodDoesNotStart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stops("web")
		r.after(time.Minute)
		r.ForgetCalls()
		r.want(manifest("web", "img:2"))
		r.after(time.Hour)
		r.isStopped("web")
		if n := r.made(); n > 0 {
			r.Errorf("%d calls make something", n)
		}
		r.starts("web")
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

func TestAPodThatNeverRanCanBeStopped(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
		r.want(cpuPod("web", "img:1", 3))
		r.stops("web")
		r.isStopped("web")
		r.want(cpuPod("web", "img:1", 1))
		r.after(time.Minute)
		r.expect()
		r.isStopped("web")
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

func TestARemovedManifestEndsAStop(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "volumes: [{name: v, emptyDir: {}}]"))
		r.stops("web")
		r.want()
		r.after(time.Minute)
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) > 0 {
			r.Errorf("left on disk: %v", dirs)
		}
		r.kill()
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

func TestAStoppedPodKeepsItsVolumes(t *testing.T) {
	live(t, func(r *rig) {
		doc := strings.Replace(manifest("web", "img:1", "volumes: [{name: v, emptyDir: {}}]"), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1)
		r.want(doc)
		r.after(time.Second)
		c, _ := r.Container("c")
		file := filepath.Join(r.dir, "pods", c.UID, "volumes/kubernetes.io~empty-dir/v/file")
		noErr(t, os.WriteFile(file, []byte("x"), 0o600))
		r.stops("web")
		r.after(time.Hour)
		r.isStopped("web")
		r.kill()
		r.start()
		r.want(doc)
		r.after(time.Hour)
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if _, err := os.Stat(file); err != nil {
			r.Error(err)
		}
	})
}

// A stopped pod whose manifest goes keeps its volumes as long as its removal waits, and stays
// stopped where the manifest comes back meanwhile.
func TestAStoppedPodIsNotRemovedWhileItIsHeld(t *testing.T) {
	live(t, func(r *rig) {
		doc := manifest("web", "img:1", "volumes: [{name: v, emptyDir: {}}]")
		r.want(doc)
		volume := filepath.Join(r.dir, "pods", string(r.pod("default/web-n").UID), "volumes")
		r.stops("web")
		r.holds("web", "", "")
		stays := func(docs ...string) {
			r.Helper()
			r.want(docs...)
			r.after(time.Minute)
			r.expect()
			if st := r.status("default/web-n"); st.Reason != status.ReasonStopped {
				r.Errorf("its reason is %q", st.Reason)
			}
			if _, err := os.Stat(volume); err != nil {
				r.Error(err)
			}
		}
		stays()
		if words := r.words("default/web-n"); !strings.Contains(words, "removal waits: held (`monopod release web` ends it)") {
			r.Errorf("it says %q", words)
		}
		r.kill()
		r.start()
		stays()
		stays(doc)
		r.isStopped("web")
		stays()
		r.releases("web")
		r.after(time.Minute)
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) > 0 {
			r.Errorf("left on disk: %v", dirs)
		}
		r.want(doc)
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

// What a stopped pod had is free, and it waits for it when it is started.
func TestAStoppedPodHoldsNoAllocation(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
		r.want(cpuPod("web", "img:1", 2))
		r.stops("web")
		r.after(time.Minute)
		r.want(cpuPod("web", "img:1", 2), cpuPod("other", "img:1", 1))
		r.after(time.Minute)
		r.expect("default/other-n/c")
		r.starts("web")
		for range 2 {
			r.after(time.Minute)
			r.expect("default/other-n/c")
			if st := r.status("default/web-n"); st.Reason != "OutOfcpu" {
				r.Errorf("status %q", st.Reason)
			}
			r.kill()
			r.start()
			r.want(cpuPod("web", "img:1", 2), cpuPod("other", "img:1", 1))
		}
		r.want(cpuPod("web", "img:1", 2))
		r.after(2 * time.Minute)
		r.expect("default/web-n/c")
	})
}

// While a stopped pod's containers still run, no other pod gets what they have.
func TestAStoppingPodHoldsItsAllocation(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
		r.Program("c", modelPrograms["stubborn"]...)
		r.want(cpuPod("web", "img:1", 2))
		r.stops("web")
		r.want(cpuPod("web", "img:1", 2), cpuPod("other", "img:1", 1))
		r.after(5 * time.Second)
		r.expect("default/web-n/c")
		r.after(time.Minute)
		r.expect("default/other-n/c")
	})
}

// A stop that could not be written down is none.
func TestAStopThatIsNotOnDiskIsRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		file := filepath.Join(r.dir, "holds.json")
		noErr(t, os.WriteFile(file, []byte("{}"), 0o600))
		pin(t, file)
		if err := r.owner.Stop(r.Context(), podKey("web"), nil); err == nil {
			r.Error("it says that the pod is stopped")
		}
		r.after(time.Minute)
		r.expect("default/web-n/c")
		var refusal *status.Refusal
		if err := r.owner.Stop(r.Context(), podKey("none"), nil); !errors.As(err, &refusal) || !refusal.Unknown {
			r.Errorf("error %v", err)
		}
	})
}

func TestAnUnreadableRecordStartsNoStoppedPod(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("other", "img:1"))
		r.stops("web")
		r.after(time.Minute)
		for range 2 {
			r.kill()
			noErr(t, os.WriteFile(filepath.Join(r.dir, "holds.json"), []byte("{"), 0o600))
			r.start()
			r.want(manifest("web", "img:1"), manifest("other", "img:1"))
			r.after(time.Minute)
			r.expect("default/other-n/c")
			r.isStopped("web")
		}
		if !strings.Contains(r.log.String(), "holds.json") {
			r.Error("it is not said")
		}
	})
}

func TestAStoppedPodIsNotRestarted(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stops("web")
		_, err := r.sync.Restart(r.Context(), "default", "web-n", "")
		if err == nil || !strings.Contains(err.Error(), "monopod start") {
			r.Errorf("error %v", err)
		}
		r.after(time.Minute)
		r.isStopped("web")
	})
}

// Pods that start after a stopped one wait for it.
func TestPodsWaitForAStoppedPod(t *testing.T) {
	live(t, func(r *rig) {
		db, web := manifest("db", "img:1"), after("web", "db", "img:1")
		r.want(db)
		r.stops("db")
		r.want(db, web)
		r.after(time.Minute)
		r.expect()
		r.starts("db")
		r.after(time.Minute)
		r.expect("default/db-n/c", "default/web-n/c")
		r.stops("web")
		r.after(time.Minute)
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/db-n/c", "default/web-n/c")
	})
}

func TestASecondAgentKnowsWhichVersionIsStopped(t *testing.T) {
	live(t, func(r *rig) {
		r.boot = checkpoint.Boot{ID: "one", Since: time.Now()}
		r.want(manifest("web", "img:1"))
		r.stops("web")
		r.after(time.Minute)
		r.kill()
		r.start()
		if !slices.ContainsFunc(r.known, func(p *manifests.Pod) bool { return p.Name == "web-n" }) {
			r.Error("the last good version is lost")
		}
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.isStopped("web")
	})
}

// The disk does not take that a pod was started again: the next agent is not to stop it.
func TestAStartThatTheDiskDoesNotTakeIsRecordedLater(t *testing.T) {
	live(t, func(r *rig) {
		port := func(doc string) string {
			return strings.Replace(doc, "image:", "ports: [{containerPort: 80, hostPort: 80}], image:", 1)
		}
		web, other := port(manifest("web", "img:1")), port(manifest("other", "img:1"))
		r.want(web)
		r.stops("web")
		r.want(web, other) // which takes its port
		r.starts("web")
		r.after(time.Minute)
		release := pin(t, filepath.Join(r.dir, "holds.json"))
		r.want(web)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		release()
		r.after(10 * time.Second)
		if stopped := hold.Recorded(r.dir).Stopped; len(stopped) > 0 {
			t.Errorf("it is recorded that %v are stopped", stopped)
		}
		r.says(1, "still recorded as such")
	})
}

// refusesHolds keeps the disk from taking another record of what is stopped and held. Only root can.
func (r *rig) refusesHolds() (release func()) { return pin(r.T, filepath.Join(r.dir, "holds.json")) }

// isRecordedAsStopped checks whether the record on disk says so of web.
func (r *rig) isRecordedAsStopped(want bool) {
	r.Helper()
	_, is := hold.Recorded(r.dir).Stopped["default/web-n"]
	if is != want {
		r.Errorf("recorded as stopped: %v", is)
	}
}

// A stop that is over stays over, whatever the disk takes: in time the record follows.
func TestAStopThatIsOverDoesNotComeBackForTheDisk(t *testing.T) {
	doc := manifest("web", "img:1")
	// removedAndBack: the removal of the stopped pod is proven, and its manifest is back.
	removedAndBack := func(r *rig) (release func()) {
		r.want(doc, manifest("other", "img:1"))
		r.stops("web")
		r.after(time.Minute)
		release = r.refusesHolds()
		r.want(manifest("other", "img:1"))
		r.after(time.Minute)
		r.want(doc, manifest("other", "img:1"))
		r.after(time.Minute)
		r.expect("default/other-n/c", "default/web-n/c")
		r.isRecordedAsStopped(true)
		return release
	}
	for _, row := range []struct {
		name string
		then func(r *rig, release func())
		runs bool
	}{
		{"time passes", func(r *rig, release func()) { r.after(time.Hour) }, true},
		{"it is offered again", func(r *rig, release func()) { r.want(doc, manifest("other", "img:1")); r.after(time.Hour) }, true},
		{"the owner asks for something else once the disk takes it", func(r *rig, release func()) {
			release()
			r.holds("other", "audit", "")
			r.after(time.Minute)
			r.isRecordedAsStopped(false)
		}, true},
		{"the disk takes it", func(r *rig, release func()) {
			release()
			r.after(time.Minute)
			r.isRecordedAsStopped(false)
			r.kill()
			r.start()
			r.want(doc, manifest("other", "img:1"))
			r.after(time.Minute)
		}, true},
		{"the owner stops it again, which is refused", func(r *rig, release func()) {
			if r.owner.Stop(r.Context(), podKey("web"), nil) == nil {
				r.Error("a stop is recorded on a disk that takes nothing")
			}
			r.after(time.Minute)
		}, true},
		{"the owner stops it again, which is recorded", func(r *rig, release func()) {
			release()
			r.stops("web")
			r.after(time.Minute)
			r.isRecordedAsStopped(true)
		}, false},
		{"another agent starts, which has nothing but the disk to go by", func(r *rig, release func()) {
			r.life.cutOff()
			release()
			r.bury()
			r.start()
			r.want(doc, manifest("other", "img:1"))
			r.after(time.Minute)
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				release := removedAndBack(r)
				row.then(r, release)
				if row.runs {
					r.expect("default/other-n/c", "default/web-n/c")
				} else {
					r.expect("default/other-n/c")
				}
			})
		})
	}
}

// A stop that was asked for while a manifest gave the pod is carried out, also if that went before
// the loop came to it, and the removal is held.
func TestAStopThatCameBeforeAHeldRemovalIsCarriedOut(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.holds("web", "", "")
		r.want()
		r.after(time.Minute)
		r.runsImage("img:1")
		noErr(t, r.sync.holds.Change(func(s *hold.State) { s.Stopped = map[string]hold.Stop{podKey("web").String(): {}} }))
		r.sync.holdsChanged()
		r.after(time.Minute)
		if running := r.Running(); len(running) != 0 {
			r.Errorf("running %v", running)
		}
		r.releases("web")
		r.after(time.Minute)
		if stopped := r.sync.holds.State().Stopped; len(stopped) != 0 {
			r.Errorf("stopped %v", stopped)
		}
	})
}
