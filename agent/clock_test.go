package agent

import (
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
)

// off is how far the runtime's times are from the agent's clock.
func off(by time.Duration) func(args, reply any) {
	return func(_, reply any) {
		if r, ok := reply.(*rt.ContainerStatusResponse); ok && r.Status != nil {
			for _, t := range []*int64{&r.Status.CreatedAt, &r.Status.StartedAt, &r.Status.FinishedAt} {
				if *t != 0 {
					*t += int64(by)
				}
			}
		}
	}
}

// The machine's clock may be set back or on while a container crashes: its
// back-offs stay what they are.
func TestACrashLoopIgnoresTheClock(t *testing.T) {
	for name, by := range map[string]time.Duration{"set back": 365 * 24 * time.Hour, "set on": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.stop()
				r.mangle = off(by)
				r.start()
				r.Program("c", critest.Exits(1))
				r.want(manifest("web", "img:1"))
				r.after(time.Hour)
				// 10 s, 20 s, ... up to 5 min, and then every 5 min.
				if n := r.Count("StartContainer"); n < 15 || n > 18 {
					t.Errorf("%d starts in an hour", n)
				}
			})
		})
	}
}

// before1970 rewrites the times in the pod's checkpoint and status as a machine
// without a clock of its own would have written them.
func (r *rig) before1970() {
	year, sum := regexp.MustCompile(`"(accepted|startTime)":( ?)"2000-`), regexp.MustCompile(`^{"sum":"[^"]*",`)
	for _, pattern := range []string{"pods/*/pod.json", "status/pods/*.json"} {
		path := r.one(pattern)
		b, err := os.ReadFile(path)
		noErr(r.T, err)
		if !year.Match(b) {
			r.Fatalf("%s has no time to change: %s", path, b)
		}
		noErr(r.T, os.WriteFile(path, sum.ReplaceAll(year.ReplaceAll(b, []byte(`"$1":$2"1970-`)), []byte("{")), 0o600))
	}
}

// An agent that starts after the clock was set from 1970 grants the whole deadline.
func TestADeadlineIgnoresTheClock(t *testing.T) {
	live(t, func(r *rig) {
		doc := manifest("job", "img:1", "restartPolicy: Never", "activeDeadlineSeconds: 3600")
		r.want(doc)
		r.after(30 * time.Minute)
		r.kill()
		r.before1970()
		r.start()
		r.want(doc)
		r.after(29 * time.Minute)
		r.expect("default/job-n/c")
		r.after(2 * time.Minute)
		r.expect()
		r.endedBy("default/job-n", "DeadlineExceeded")
	})
}

// The time for which the machine is off does not count.
func TestADeadlineStandsStillWhileTheMachineIsOff(t *testing.T) {
	live(t, func(r *rig) {
		doc := manifest("job", "img:1", "restartPolicy: OnFailure", "activeDeadlineSeconds: 3600")
		r.want(doc)
		r.after(30 * time.Minute)
		r.stop()
		r.reboot()
		r.after(24 * time.Hour)
		r.start()
		r.want(doc)
		r.after(28 * time.Minute)
		r.expect("default/job-n/c")
		r.after(10 * time.Minute) // with what was not saved before the end
		r.expect()
		r.endedBy("default/job-n", "DeadlineExceeded")
	})
}

const deadlineOfHours = "activeDeadlineSeconds: 10800"

// A deadline that comes later counts as if it had been there: not by the clock, and no time in
// which the machine was off or the pod stopped.
func TestADeadlineThatIsAddedInPlaceCountsTheActiveTime(t *testing.T) {
	const limit, off = 3 * time.Hour, 240 * time.Hour
	doc := manifest("web", "img:1")
	next := func(do func(*rig)) func(*rig) {
		return func(r *rig) { r.kill(); do(r); r.start(); r.want(doc); r.after(time.Minute) }
	}
	for _, row := range []struct {
		name   string
		before func(*rig)
		left   time.Duration // of the limit, when it is added, less some minutes
	}{
		{"it has run for a while", func(r *rig) { r.after(time.Hour) }, limit - time.Hour},
		{"under two agents", func(r *rig) { r.after(30 * time.Minute); next(func(*rig) {})(r); r.after(30 * time.Minute) }, limit - time.Hour},
		{"since 1970, by the clock", next((*rig).before1970), limit},
		{"the machine was off", next(func(r *rig) { r.reboot(); r.after(off) }), limit},
		{"and ran for a while then, under two agents", func(r *rig) {
			next(func(r *rig) { r.reboot(); r.after(off) })(r)
			r.after(30 * time.Minute)
			next(func(*rig) {})(r)
			r.after(30 * time.Minute)
		}, limit - time.Hour},
		{"it ran before a shutdown, too", func(r *rig) {
			r.after(30 * time.Minute)
			r.down(true)
			r.after(time.Minute)
			next(func(r *rig) { r.reboot(); r.after(off) })(r)
			r.after(30 * time.Minute)
		}, limit - time.Hour},
		{"it was stopped for long", func(r *rig) {
			r.after(30 * time.Minute)
			r.stops("web")
			r.after(limit)
			r.starts("web")
			r.after(30 * time.Minute)
		}, limit - time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			goesDown(t, func(r *rig) {
				r.stop()
				r.boot.ID = "one"
				r.start()
				r.want(doc)
				r.after(time.Minute)
				row.before(r)
				r.expect("default/web-n/c")
				r.stopsNothing(func() { r.want(manifest("web", "img:1", deadlineOfHours)); r.after(time.Minute) })
				r.after(row.left - 20*time.Minute)
				r.expect("default/web-n/c")
				r.after(40 * time.Minute)
				r.expect()
				r.endedBy("default/web-n", "DeadlineExceeded")
			})
		})
	}
}

// A stop takes nothing of a deadline that was there before.
func TestADeadlineStandsStillWhileThePodIsStopped(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", deadlineOfHours))
		r.after(time.Hour)
		r.stops("web")
		r.after(3 * time.Hour)
		r.starts("web")
		r.after(110 * time.Minute)
		r.expect("default/web-n/c")
		r.after(20 * time.Minute)
		r.endedBy("default/web-n", "DeadlineExceeded")
	})
}

// A deadline passes also where the kernel does not say which boot it is, and nothing is asked or
// written without a pause until then, whichever agent runs.
func TestADeadlineCountsWhereTheBootIsNotKnown(t *testing.T) {
	var asked atomic.Int32
	liveWith(t, func(r *rig) {
		r.boot = checkpoint.Boot{Since: time.Now()}
		r.mangle = func(any, any) {
			if asked.Add(1) > 5000 { // else a loop without a pause would never end
				time.Sleep(time.Minute)
			}
		}
	}, func(r *rig) {
		doc := manifest("job", "img:1", "activeDeadlineSeconds: 3600")
		r.want(doc)
		r.after(30 * time.Minute)
		r.kill()
		r.after(time.Minute)
		r.start()
		r.want(doc)
		r.after(25 * time.Minute)
		r.expect("default/job-n/c")
		if n := asked.Load(); n > 5000 {
			t.Error("the runtime is asked without a pause")
		}
		asked.Store(0)
		r.after(10 * time.Minute)
		r.expect()
		r.endedBy("default/job-n", "DeadlineExceeded")
	})
}
