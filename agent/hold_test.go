package agent

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/client"
	"monopod/agent/config"
	"monopod/agent/status"
	"monopod/cri/critest"
	"monopod/manifests"
)

// holds and releases are what monopod hold and release ask for; "" is the node.
func (r *rig) holds(name, reason, lasts string) {
	r.Helper()
	noErr(r.T, r.owner.Hold(r.Context(), heldKey(name), url.Values{"reason": {reason}, "for": {lasts}}))
	r.settle()
}

func (r *rig) releases(name string) {
	r.Helper()
	noErr(r.T, r.owner.Release(r.Context(), heldKey(name), nil))
	r.settle()
}

func heldKey(name string) (key manifests.Key) {
	if name != "" {
		key = podKey(name)
	}
	return key
}

func TestAHeldPodIsNotUpdatedUntilItIsReleased(t *testing.T) {
	for _, held := range []string{"web", ""} {
		t.Run("held: "+held, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1"))
				r.holds(held, "audit", "")
				r.stopsNothing(func() {
					r.want(manifest("web", "img:2"))
					r.after(10 * time.Hour)
				})
				r.updateWaits("held: audit")
				if waits, on := r.waitEvents(); waits != 1 || on != 0 {
					r.Errorf("%d events say that it waits, %d that it goes on", waits, on)
				}
				r.releases(held)
				r.after(time.Minute)
				r.replaced("img:2")
				if waits, on := r.waitEvents(); waits != 1 || on != 1 {
					r.Errorf("%d events say that it waits, %d that it goes on", waits, on)
				}
			})
		})
	}
}

func TestAnUpdateThatStopsFirstIsHeldToo(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.UpdateStrategy = "StopFirst" } }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "", "")
		r.stopsNothing(func() {
			r.want(manifest("web", "img:2"))
			r.after(time.Hour)
		})
		r.updateWaits("held")
		r.releases("web")
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// Its turn in the start order comes at once, which opens no gate.
func TestAnUpdateThatStopsFirstIsHeldThoughItsTurnHasCome(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.UpdateStrategy = "StopFirst" } }, func(r *rig) {
		r.want(manifest("db", "img:1"), manifest("web", "img:1"))
		r.holds("web", "", "")
		r.stopsNothing(func() {
			r.want(manifest("db", "img:1"), after("web", "db", "img:2"))
			r.after(time.Hour)
		})
		r.releases("web")
		r.after(time.Minute)
		c, _ := r.Container("default/web-n/c")
		if image := c.Config.Image.UserSpecifiedImage; image != "img:2" {
			r.Errorf("released, it runs %s", image)
		}
	})
}

func TestARemovalOfAHeldPodWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "audit", "")
		r.stopsNothing(func() {
			r.want()
			r.after(time.Hour)
			r.kill()
			r.start()
			r.want()
			r.after(time.Hour)
		})
		r.expect("default/web-n/c")
		if words := r.words("default/web-n"); words != "default/web: removal waits: held: audit (`monopod release web` ends it)" {
			r.Errorf("it says %q", words)
		}
		r.want(manifest("web", "img:1")) // it is wanted again
		r.after(time.Minute)
		r.replaced("img:1")
		r.want()
		r.releases("web")
		r.after(time.Minute)
		r.expect()
		if pods := r.store.Pods(); len(pods) > 0 {
			r.Errorf("status of %s is left", pods[0].Name)
		}
	})
}

func TestAContainerOfAHeldPodRestartsAfterACrash(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("", "audit", "")
		r.want(manifest("web", "img:2"))
		r.Exit("c", 1)
		r.after(time.Minute)
		r.updateWaits("the node is held: audit")
	})
}

func TestNewPodsStartUnlessTheWholeNodeIsHeld(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "", "")
		r.want(manifest("web", "img:1"), manifest("new", "img:1"))
		r.after(time.Minute)
		r.expect("default/new-n/c", "default/web-n/c")
		r.holds("", "audit", "2h")
		all := []string{manifest("web", "img:1"), manifest("new", "img:1"), manifest("newer", "img:1")}
		r.want(all...)
		r.after(time.Minute)
		r.expect("default/new-n/c", "default/web-n/c")
		if st := r.status("default/newer-n"); st.Reason != "Held" || !strings.Contains(st.Message, "the node is held: audit until ") {
			r.Errorf("status %q %q", st.Reason, st.Message)
		}
		r.kill()
		r.start()
		r.want(all...)
		r.after(time.Minute)
		r.expect("default/new-n/c", "default/web-n/c")
		r.after(2 * time.Hour)
		r.expect("default/new-n/c", "default/newer-n/c", "default/web-n/c")
	})
}

func TestAHoldEndsByItself(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.holds("web", "audit", "2h")
		r.want(manifest("web", "img:2"))
		r.after(time.Hour)
		r.kill()
		r.start()
		r.want(manifest("web", "img:2"))
		r.after(59 * time.Minute)
		r.updateWaits("held: audit until ")
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

func TestAHoldLastsOverAReboot(t *testing.T) {
	live(t, func(r *rig) {
		r.boot = checkpoint.Boot{ID: "one", Since: time.Now()}
		r.want(manifest("web", "img:1"))
		r.holds("web", "audit", "")
		r.want(manifest("web", "img:2"))
		r.kill()
		r.reboot()
		r.start()
		r.want(manifest("web", "img:2"))
		r.after(time.Hour)
		r.updateWaits("held: audit")
	})
}

func TestUpdatesAndRemovalsWaitForTheWindow(t *testing.T) {
	liveWith(t, func(r *rig) {
		clockIsSet(r) // to Saturday 2026-01-03 at 00:00 UTC
		r.configure = func(c *config.Config) { c.UpdateWindow = "Sun 02:00-04:00" }
	}, func(r *rig) {
		_, offset := time.Now().Zone()
		r.after(time.Duration(24*3600-offset) * time.Second / 2)
		r.want(manifest("web", "img:1"), manifest("old", "img:1")) // first starts do not wait
		r.after(time.Minute)
		r.expect("default/old-n/c", "default/web-n/c")
		r.stopsNothing(func() {
			r.want(manifest("web", "img:2"))
			r.after(time.Hour)
		})
		if words := r.words("default/web-n"); !strings.Contains(words, "update waits: outside of the update window, which opens Sun 2026-01-04 02:00:00") {
			r.Errorf("it says %q", words)
		}
		if words := r.words("default/old-n"); !strings.Contains(words, "removal waits: outside of the update window, which opens Sun 2026-01-04 02:00:00") {
			r.Errorf("it says %q", words)
		}
		open := time.Date(2026, 1, 4, 2, 0, 0, 0, time.Local)
		r.after(time.Until(open) - time.Minute)
		r.expect("default/old-n/c", "default/web-n/c")
		r.after(3 * time.Minute)
		r.replaced("img:2")
	})
}

func TestAnotherWindowCountsAtOnce(t *testing.T) {
	liveWith(t, func(r *rig) {
		clockIsSet(r)
		r.configure = func(c *config.Config) { c.UpdateWindow = time.Now().AddDate(0, 0, 3).Format("Mon") + " 02:00-04:00" }
	}, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.updateWaits("outside of the update window")
		r.change(func(c *config.Config) { c.UpdateWindow = "" })
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// lockable is a pod whose workload may lock it.
func lockable(image string) string {
	return strings.Replace(strings.Replace(manifest("web", image, "volumes: [{name: v, emptyDir: {}}]"),
		"image:", "volumeMounts: [{name: v, mountPath: /data}], image:", 1),
		"{name: web}", "{name: web, annotations: {monopod.update-lock: /data/run/lock}}", 1)
}

// lock returns the folder of the lock on this machine.
func (r *rig) lockDir() string {
	r.Helper()
	c, ok := r.Container("c")
	if !ok {
		r.Fatal("nothing runs")
	}
	dir := filepath.Join(r.dir, "pods", c.UID, "volumes/kubernetes.io~empty-dir/v/run")
	noErr(r.T, os.MkdirAll(dir, 0o755))
	return dir
}

func TestAnUpdateWaitsWhileItsWorkloadLocksIt(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		lock := filepath.Join(r.lockDir(), "lock")
		noErr(t, os.WriteFile(lock, nil, 0o600))
		r.stopsNothing(func() {
			r.want(lockable("img:2"))
			r.after(50 * time.Minute)
		})
		r.updateWaits("locked by its workload: /data/run/lock, at most until ")
		noErr(t, os.Remove(lock))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

func TestALockKeepsAnUpdateOnlySoLong(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		noErr(t, os.WriteFile(filepath.Join(r.lockDir(), "lock"), nil, 0o600))
		r.want(lockable("img:2"))
		r.after(59 * time.Minute)
		r.updateWaits("locked by its workload")
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

func TestALockKeepsNoRemoval(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		noErr(t, os.WriteFile(filepath.Join(r.lockDir(), "lock"), nil, 0o600))
		r.want()
		r.after(time.Minute)
		r.expect()
	})
}

// What a workload makes a link to is none of its own.
func TestALockThroughALinkDoesNotCount(t *testing.T) {
	live(t, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		dir, other := r.lockDir(), t.TempDir()
		noErr(t, os.WriteFile(filepath.Join(other, "lock"), nil, 0o600))
		noErr(t, os.Remove(dir))
		noErr(t, os.Symlink(other, dir))
		r.want(lockable("img:2"))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// A lock that comes while the update waits for something else counts.
func TestALockThatComesLateCounts(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.want(lockable("img:9"))
		r.after(time.Hour)
		noErr(t, os.WriteFile(filepath.Join(r.lockDir(), "lock"), nil, 0o600))
		r.after(5 * time.Second)
		r.online("img:9")
		r.after(10 * time.Minute)
		r.updateWaits("locked by its workload")
	})
}

func TestAPodThatNeverRanIsNotHeld(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		r.holds("web", "", "")
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.runsImage("img:1")
	})
}

func TestAHoldThatMeansNothingIsRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		for _, lasts := range []string{"0s", "-1h", "x", "2"} {
			if err := r.owner.Hold(r.Context(), podKey("web"), url.Values{"for": {lasts}}); err == nil {
				t.Errorf("%s is taken", lasts)
			}
		}
		if err := r.owner.Hold(r.Context(), podKey("none"), nil); err == nil {
			t.Error("a pod that is not there is held")
		}
	})
}

func TestAServedPodSaysThatItIsHeld(t *testing.T) {
	folder := t.TempDir()
	noErr(t, os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(manifest("a", "img")), 0o600))
	r := critest.Start(t)
	r.AddImage("img")
	w := read(t, r, t.TempDir(), folder)
	w.run("default/a-n/c")
	owner := w.Agent.sync.requests(w.Agent.cfg.NodeName)
	says := func(want string) {
		t.Helper()
		var list v1.PodList
		noErr(t, client.GetJSON(t.Context(), w.cfg.Socket, "/pods", &list))
		if got := list.Items[0].Annotations[status.AnnHeld]; got != want {
			t.Errorf("the pod says %q, want %q", got, want)
		}
	}
	noErr(t, owner.Hold(t.Context(), podKey("a"), url.Values{"reason": {"audit"}}))
	says("held: audit")
	noErr(t, owner.Release(t.Context(), podKey("a"), nil))
	says("")
}
