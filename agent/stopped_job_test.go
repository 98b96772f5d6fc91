package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/node"
	"monopod/cri/critest"
)

// batch is a Job with so many retries.
func batch(retries int) string {
	return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec: {backoffLimit: %d, template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'img:1'}]}}}\n", retries)
}

// What ends by a stop has not failed: started again it runs, however soon that is, and
// whichever agent does it.
func TestWhatIsStoppedAndStartedHasNotFailed(t *testing.T) {
	pods := map[string]string{"a pod that never restarts": never("web"), "one that restarts on failure": manifest("web", "img:1", "restartPolicy: OnFailure"), "a Job of one attempt": batch(0)}
	nextAgent := func(r *rig, doc string) { r.kill(); r.start(); r.want(doc) }
	ways := map[string]func(*rig, string){
		"at once":                          func(*rig, string) {},
		"within its grace":                 func(r *rig, _ string) { r.after(2 * time.Second) },
		"within its grace, by another one": func(r *rig, doc string) { r.after(2 * time.Second); nextAgent(r, doc) },
		"later":                            func(r *rig, _ string) { r.after(time.Hour) },
		"later, by another one":            func(r *rig, doc string) { r.after(time.Hour); nextAgent(r, doc) },
		"after a reboot": func(r *rig, doc string) {
			r.after(2 * time.Second)
			r.reboot()
			nextAgent(r, doc)
			r.after(time.Minute)
		},
		"after a reboot where the runtime forgets all": func(r *rig, doc string) { r.after(time.Minute); r.kill(); r.forgetful(); r.start(); r.want(doc) },
	}
	for name, doc := range pods {
		for when, wait := range ways {
			t.Run(name+" "+when, func(t *testing.T) {
				live(t, func(r *rig) {
					r.boot.ID = "one"
					r.stop()
					r.start()
					r.Program("c", critest.Runs().OnTerm(5*time.Second, 143))
					r.want(doc)
					r.after(time.Minute)
					r.stops("web")
					wait(r, doc)
					r.starts("web")
					r.after(10 * time.Minute)
					r.expect("default/web-n/c")
				})
			})
		}
	}
}

// So it is when the machine does not go down after all.
func TestAJobOfOneAttemptHasItAgainAfterACancelledShutdown(t *testing.T) {
	for _, wait := range []time.Duration{2 * time.Second, time.Minute} {
		t.Run(wait.String(), func(t *testing.T) {
			goesDown(t, func(r *rig) {
				r.Program("c", critest.Runs().OnTerm(5*time.Second, 143))
				r.want(batch(0))
				r.after(time.Minute)
				r.down(true)
				r.after(wait)
				r.down(false)
				r.after(10 * time.Minute)
				r.expect("default/web-n/c")
			})
		})
	}
}

// An attempt that a stop ended is not one of those that a Job has.
func TestAStopUsesUpNoAttemptOfAJob(t *testing.T) {
	live(t, func(r *rig) {
		r.want(batch(1))
		for _, wait := range []time.Duration{0, time.Minute} {
			r.after(time.Minute)
			r.stops("web")
			r.after(wait)
			r.kill()
			r.start()
			r.want(batch(1))
			r.starts("web")
		}
		r.after(time.Minute)
		r.Exit("c", 1)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.Exit("c", 1)
		r.after(time.Minute)
		r.endedBy("default/web-n", "BackoffLimitExceeded")
	})
}

// Nor is one that a restart request ended, of the container or of the whole pod, however often it is
// asked for.
func TestARestartUsesUpNoAttemptOfAJob(t *testing.T) {
	for _, container := range []string{"", "c"} {
		t.Run("container "+container, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("c", critest.Runs().OnTerm(5*time.Second, 143))
				r.want(batch(1))
				for range 3 {
					r.after(time.Minute)
					r.mustRestart("web-n", container)
					r.mustRestart("web-n", container)
				}
				r.after(time.Minute)
				r.expect("default/web-n/c")
				r.kill()
				r.start()
				r.want(batch(1))
				r.after(time.Minute)
				r.Exit("c", 1)
				r.after(time.Minute)
				r.expect("default/web-n/c")
				r.Exit("c", 1)
				r.after(time.Minute)
				r.endedBy("default/web-n", "BackoffLimitExceeded")
			})
		})
	}
}

// What had ended by itself stays so over a stop and a start.
func TestAPodThatHadEndedIsNotRunAgainByAStart(t *testing.T) {
	live(t, func(r *rig) {
		r.want(never("web"))
		r.after(time.Minute)
		r.Exit("c", 0)
		r.stops("web")
		r.after(time.Minute)
		r.starts("web")
		r.after(time.Minute)
		r.expect()
		if st := r.status("default/web-n"); st.Phase != v1.PodSucceeded {
			r.Errorf("it is %s", st.Phase)
		}
	})
}

// It needs no room for that, and its start waits for none.
func TestAPodThatHadEndedIsStartedWithoutRoom(t *testing.T) {
	for _, isAnother := range []bool{false, true} {
		t.Run(fmt.Sprintf("by another agent %v", isAnother), func(t *testing.T) {
			liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "1", "pods", "110") }, func(r *rig) {
				const cpus = "resources: {requests: {cpu: 1}}"
				job := strings.Replace(never("web"), "image:", cpus+", image:", 1)
				other := strings.Replace(manifest("other", "img:1"), "image:", cpus+", image:", 1)
				r.want(job)
				r.after(time.Minute)
				r.Exit("c", 1)
				r.stops("web")
				r.want(job, other)
				r.after(time.Minute)
				if isAnother {
					r.kill()
					r.start()
					r.want(job, other)
				}
				r.starts("web")
				r.after(time.Minute)
				if now := r.sync.holds.State().Stopped; len(now) > 0 {
					t.Errorf("its start waits: %v", now)
				}
				r.expect("default/other-n/c")
				if st := r.status("default/web-n"); st.Phase != v1.PodFailed {
					t.Errorf("it is %s: %s %s", st.Phase, st.Reason, st.Message)
				}
			})
		})
	}
}

// Another version of it that has no room waits beside it, and says so.
func TestAPodThatHadEndedAndWasEditedSaysForWhatItWaits(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "1", "pods", "110") }, func(r *rig) {
		const cpus = "resources: {requests: {cpu: 1}}"
		job := strings.Replace(never("web"), "image:", cpus+", image:", 1)
		other := strings.Replace(manifest("other", "img:1"), "image:", cpus+", image:", 1)
		r.want(job)
		r.after(time.Minute)
		r.Exit("c", 1)
		r.after(time.Minute)
		r.stops("web")
		r.want(job, other)
		r.after(time.Minute)
		r.want(strings.Replace(job, "img:1", "img:2", 1), other)
		r.starts("web")
		r.after(time.Minute)
		words := r.words("default/web-n")
		if !strings.Contains(words, "Node didn't have enough resource: cpu") {
			t.Errorf("it says %q", words)
		}
	})
}

// A pod whose work is over ends, though its owner stops it while its sidecar is still on its
// way, and others have its room then: it needs none to have ended.
func TestAPodWhoseWorkIsOverEndsThoughItIsStopped(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "1", "pods", "110") }, func(r *rig) {
		const cpus = "resources: {requests: {cpu: 1}}"
		r.Program("work", critest.ExitsAfter(time.Minute, 0))
		r.Program("side", critest.Runs().OnTerm(20*time.Second, 0))
		job := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  restartPolicy: Never\n" +
			"  initContainers: [{name: side, image: 'img:1', restartPolicy: Always}]\n  containers: [{name: work, image: 'img:1', " + cpus + "}]\n"
		other := "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: c, image: 'img:1', " + cpus + "}]}\n"
		r.want(job)
		r.after(time.Minute + 5*time.Second)
		r.want(job, other)
		r.stops("web")
		r.after(time.Minute)
		r.expect("default/other-n/c")
		if st := r.status("default/web-n"); st.Phase != v1.PodSucceeded {
			t.Errorf("stopped, it is %s: %s %s", st.Phase, st.Reason, st.Message)
		}
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/other-n/c")
		if st := r.status("default/web-n"); st.Phase != v1.PodSucceeded {
			t.Errorf("started again, it is %s: %s %s", st.Phase, st.Reason, st.Message)
		}
	})
}
