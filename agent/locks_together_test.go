package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
)

// briefly is a node on which a lock counts for five minutes.
func briefly(t *testing.T, change func(*config.Config), test func(*rig)) {
	liveWith(t, func(r *rig) {
		clockIsSet(r)
		r.configure = func(c *config.Config) { c.UpdateLockMax = 5 * time.Minute; change(c) }
	}, test)
}

// A workload locked itself for a minute as its update waited for the window. In the window its lock counts.
func TestALockCountsInTheWindowThoughItWasSeenBeforeIt(t *testing.T) {
	opens := func(c *config.Config) {
		c.UpdateWindow = time.Now().Add(20*time.Minute).Format("15:04") + "-" + time.Now().Add(2*time.Hour).Format("15:04")
	}
	briefly(t, opens, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locksTwice("img:2", func() { r.want(lockable("img:2")) }, func() { r.after(18 * time.Minute) })
	})
}

func TestALockCountsAfterAHoldThoughItWasSeenBefore(t *testing.T) {
	briefly(t, func(*config.Config) {}, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locksTwice("img:2", func() { r.holds("web", "", "20m"); r.want(lockable("img:2")) }, func() { r.after(18 * time.Minute) })
	})
}

func TestALockCountsOnceTheImageIsThereThoughItWasSeenBefore(t *testing.T) {
	briefly(t, func(*config.Config) {}, func(r *rig) {
		r.offline("img:9")
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.locksTwice("img:9", func() { r.want(lockable("img:9")) }, func() {
			r.after(18 * time.Minute)
			time.AfterFunc(time.Minute, func() { r.online("img:9") })
		})
	})
}

// One that stays keeps the update away for its time after the hold, and no longer.
func TestALockThatStaysHasItsTimeAfterAHold(t *testing.T) {
	briefly(t, func(*config.Config) {}, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		r.holds("web", "", "20m")
		noErr(t, os.WriteFile(filepath.Join(r.lockDir(), "lock"), nil, 0o600))
		r.want(lockable("img:2"))
		r.after(10 * time.Minute)
		r.updateWaits("locked by its workload: /data/run/lock, at most for 5m0s")
		r.after(14 * time.Minute)
		r.updateWaits("locked by its workload: /data/run/lock, at most until ")
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

// So does one that kept it away before the hold: the time of the hold is none of its own, over a restart either.
func TestALockHasTheRestOfItsTimeAfterAHold(t *testing.T) {
	briefly(t, func(*config.Config) {}, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Second)
		noErr(t, os.WriteFile(filepath.Join(r.lockDir(), "lock"), nil, 0o600))
		r.want(lockable("img:2"))
		r.after(2 * time.Minute)
		r.holds("web", "", "20m")
		r.after(10 * time.Minute)
		r.kill()
		r.start()
		r.want(lockable("img:2"))
		r.after(12 * time.Minute)
		r.updateWaits("locked by its workload: /data/run/lock, at most until ")
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

// locksTwice locks the pod for a minute after an update was offered that something else keeps away,
// and again shortly before that ends.
func (r *rig) locksTwice(next string, update, near func()) {
	r.Helper()
	lock := filepath.Join(r.lockDir(), "lock")
	update()
	r.after(10 * time.Second)
	noErr(r.T, os.WriteFile(lock, nil, 0o600))
	r.after(time.Minute)
	noErr(r.T, os.Remove(lock))
	near()
	noErr(r.T, os.WriteFile(lock, nil, 0o600))
	for tries := 0; tries < 60 && !strings.Contains(r.words("default/web-n"), "at most until "); tries++ {
		r.after(10 * time.Second) // an image is tried again after up to five minutes
	}
	r.updateWaits("locked by its workload: /data/run/lock, at most until ")
	noErr(r.T, os.Remove(lock))
	r.after(time.Minute)
	r.replaced(next)
}
