package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/hold"
	"monopod/agent/rollout"
)

// shut is an update window that opens in three days.
func shut(r *rig) {
	r.configure = func(c *config.Config) { c.UpdateWindow = time.Now().AddDate(0, 0, 3).Format("Mon") + " 02:00-04:00" }
}

// locked makes the workload of the pod that runs lock it.
func (r *rig) locked() (lock string) {
	r.Helper()
	lock = filepath.Join(r.lockDir(), "lock")
	noErr(r.T, os.WriteFile(lock, nil, 0o600))
	return lock
}

// configured is a lockable pod that restarts when its ConfigMap changes.
var configured = strings.Replace(strings.Replace(lockable("img:1"), "annotations: {", "annotations: {monopod.restart-on-config-change: 'true', ", 1),
	"image:", "envFrom: [{configMapRef: {name: app}}], image:", 1)

// appIs is the ConfigMap of it.
func appIs(value string) string { return object("ConfigMap", "app", "a: "+value) }

// usesApp checks with which value of the ConfigMap the container runs.
func (r *rig) usesApp(value string) {
	r.Helper()
	r.expect("default/web-n/c")
	c, _ := r.Container("c")
	for _, e := range c.Config.Envs {
		if e.Key == "a" && string(e.Value) != value {
			r.Errorf("it runs with %s, want %s", e.Value, value)
		}
	}
}

// Each of the gate's three keeps a pod from being restarted for its config, and says so, also to
// the next agent; it restarts when the gate opens.
func TestAPodIsRestartedForItsConfigOnceTheGateIsOpen(t *testing.T) {
	for name, row := range map[string]struct {
		shut func(*rig)
		open func(*rig)
		says string
	}{
		"a hold":             {func(r *rig) { r.holds("web", "audit", "") }, func(r *rig) { r.releases("web") }, "held: audit"},
		"a hold of the node": {func(r *rig) { r.holds("", "audit", "") }, func(r *rig) { r.releases("") }, "the node is held: audit"},
		"a window": {func(r *rig) {
			shut(r)
			r.change(r.configure)
		}, func(r *rig) {
			r.configure = nil
			r.change(func(c *config.Config) { c.UpdateWindow = "" })
		}, "outside of the update window"},
		"the workload": {func(r *rig) { r.locked() }, func(r *rig) { noErr(r.T, os.Remove(filepath.Join(r.lockDir(), "lock"))) },
			"locked by its workload: /data/run/lock, at most until "},
	} {
		t.Run(name, func(t *testing.T) {
			liveWith(t, clockIsSet, func(r *rig) {
				r.want(configured, appIs("one"))
				r.after(time.Second)
				row.shut(r)
				r.stopsNothing(func() {
					r.want(configured, appIs("two"))
					r.after(10 * time.Minute)
				})
				want := `restart with the changed ConfigMap "app" waits: ` + row.says
				if words := r.words("default/web-n"); !strings.Contains(words, want) {
					t.Errorf("it says %q", words)
				}
				if got := strings.Join(r.happened("web-n"), "\n"); strings.Count(got, "RestartWaits") != 1 {
					t.Errorf("it happened: %s", got)
				}
				r.stopsNothing(func() {
					r.kill()
					r.start()
					r.want(configured, appIs("two"))
					r.after(10 * time.Minute)
				})
				if words := r.words("default/web-n"); !strings.Contains(words, want) {
					t.Errorf("under the next agent it says %q", words)
				}
				row.open(r)
				r.after(2 * time.Minute)
				r.usesApp("two")
				if words := r.words("default/web-n"); words != "" {
					t.Errorf("it says %q", words)
				}
			})
		})
	}
}

func TestACrashedContainerOfAHeldPodRestartsWithTheNewConfig(t *testing.T) {
	live(t, func(r *rig) {
		r.want(configured, appIs("one"))
		r.holds("web", "", "")
		r.want(configured, appIs("two"))
		r.after(time.Minute)
		r.usesApp("one")
		r.Exit("c", 1)
		r.after(time.Minute)
		r.usesApp("two")
		if words := r.words("default/web-n"); strings.Contains(words, "waits") {
			t.Errorf("it says %q", words)
		}
	})
}

// What may restart for one change may not for the next, if it is held meanwhile.
func TestAHoldKeepsTheNextRestartAway(t *testing.T) {
	live(t, func(r *rig) {
		r.want(configured, appIs("one"))
		r.want(configured, appIs("two"))
		r.after(time.Minute)
		r.usesApp("two")
		r.holds("web", "", "")
		r.stopsNothing(func() {
			r.want(configured, appIs("three"))
			r.after(time.Minute)
		})
	})
}

// A version that comes back waits for none of the gate's three.
func TestARollbackPassesTheGate(t *testing.T) {
	for name, shut := range map[string]func(*rig){
		"a hold":             func(r *rig) { r.holds("web", "audit", "") },
		"a hold of the node": func(r *rig) { r.holds("", "audit", "") },
		"a window":           func(r *rig) { shut(r); r.change(r.configure) },
		"the workload":       func(r *rig) { r.locked() },
	} {
		t.Run(name, func(t *testing.T) {
			liveWith(t, clockIsSet, func(r *rig) {
				answers(r, "readiness")
				bad := strings.Replace(healthy("30s", probedManifest("web", byExec("readiness"), "volumes: [{name: v, emptyDir: {}}]")), "annotations: {", "annotations: {monopod.update-lock: /data/run/lock, ", 1)
				bad = strings.Replace(strings.Replace(bad, "img:1", "img:2", 1), "image:", "volumeMounts: [{name: v, mountPath: /data}], image:", 1)
				r.want(manifest("web", "img:1"))
				former := r.imageID()
				r.want(bad)
				r.after(time.Second)
				shut(r)
				r.after(10 * time.Minute)
				r.runsID(former)
			})
		})
	}
}

func TestAHeldPodIsStartedAsItWasStopped(t *testing.T) {
	for _, held := range []string{"web", ""} {
		t.Run("held: "+held, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				r.holds(held, "audit", "")
				r.stops("web")
				r.after(time.Minute)
				r.want(manifest("web", "img:2"))
				r.kill()
				r.start()
				r.want(manifest("web", "img:2"))
				r.after(time.Minute)
				r.isStopped("web")
				r.starts("web")
				r.after(time.Minute)
				r.updateWaits("held: audit")
				r.releases(held)
				r.after(time.Minute)
				r.replaced("img:2")
			})
		})
	}
}

func TestAStoppedPodThatIsNotHeldIsStartedAsItsManifestSays(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "", "")
		r.stops("web")
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.releases("web")
		r.starts("web")
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// The limit of a lock counts over agents and reboots.
func TestALockIsLimitedHoweverOftenTheAgentRestarts(t *testing.T) {
	for _, row := range []struct {
		name  string
		next  func(*rig)
		lasts time.Duration
	}{
		{"agents", func(*rig) {}, 20 * time.Minute},
		{"reboots, while the clock is not set", func(r *rig) { r.reboot(); r.booted = time.Now() }, time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.boot = checkpoint.Boot{ID: "one", Since: time.Now()}
				r.stop()
				r.start()
				r.want(lockable("img:1"))
				r.after(time.Second)
				r.locked()
				r.want(lockable("img:2"))
				r.after(40 * time.Minute)
				r.updateWaits("locked by its workload")
				r.kill()
				row.next(r)
				r.start()
				r.want(lockable("img:2"))
				r.after(row.lasts - time.Minute)
				r.updateWaits("locked by its workload")
				r.after(2 * time.Minute)
				r.replaced("img:2")
				if left := r.sync.holds.State().Locks; len(left) > 0 {
					t.Errorf("of the lock is left %v", left)
				}
			})
		})
	}
}

// An update that is taken back counts for nothing when the next one comes.
func TestALockCountsForEachUpdate(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locked()
		r.want(lockable("img:2"))
		r.after(50 * time.Minute)
		r.want(lockable("img:1"))
		r.after(time.Minute)
		r.want(lockable("img:2"))
		r.after(50 * time.Minute)
		r.updateWaits("locked by its workload")
	})
}

// An older agent wrote no locks, and drops them when it writes.
func TestTheLimitOfALockIsCountedAfterADowngradeToo(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locked()
		r.want(lockable("img:2"))
		r.after(50 * time.Minute)
		noErr(t, r.sync.holds.Change(func(s *hold.State) { s.Locks = nil }))
		r.kill()
		r.start()
		r.want(lockable("img:2"))
		r.after(50 * time.Minute)
		r.updateWaits("locked by its workload")
		r.after(11 * time.Minute)
		r.replaced("img:2")
	})
}

// A disk that gives no answer, or an error, may hide a lock; that holds up no other pod, and no
// longer than a lock may.
func TestALockOfWhichTheDiskSaysNothingCounts(t *testing.T) {
	for _, isSilent := range []bool{true, false} {
		t.Run(fmt.Sprintf("silent: %v", isSilent), func(t *testing.T) {
			live(t, func(r *rig) {
				ends := make(chan struct{})
				defer close(ends)
				r.sync.apply.locks.ask = func(lockFile) rollout.Locked {
					if isSilent {
						<-ends
					}
					return rollout.Unknown
				}
				r.want(lockable("img:1"), manifest("other", "img:1"))
				r.after(time.Second)
				r.want(lockable("img:2"), manifest("other", "img:2"))
				r.after(50 * time.Minute)
				if words := r.words("default/web-n"); !strings.Contains(words, "its disk does not say whether its workload locks it: /data/run/lock, at most until ") {
					t.Errorf("it says %q", words)
				}
				if c, _ := r.Container("default/other-n/c"); c.Config.Image.UserSpecifiedImage != "img:2" {
					t.Errorf("the other pod runs %s", c.Config.Image.UserSpecifiedImage)
				}
				r.after(11 * time.Minute)
				if c, _ := r.Container("default/web-n/c"); c.Config.Image.UserSpecifiedImage != "img:2" {
					t.Errorf("it runs %s", c.Config.Image.UserSpecifiedImage)
				}
			})
		})
	}
}

func TestALockThatTheDiskDoesNotTakeIsSavedLater(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locked()
		junk := fill(r.T, disk)
		r.want(lockable("img:2"))
		r.after(time.Minute)
		r.updateWaits("locked by its workload")
		noErr(r.T, os.Remove(junk))
		r.after(10 * time.Second)
		if saved := hold.Recorded(r.dir).Locks; len(saved) != 1 {
			r.Errorf("%v is saved", saved)
		}
		if n := strings.Count(r.log.String(), "since when workloads lock their updates is not on disk"); n != 1 {
			r.Errorf("it is said %d times that it is not saved", n)
		}
	})
}
