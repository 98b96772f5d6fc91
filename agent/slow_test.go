package agent

import (
	"testing"
	"time"

	"monopod/cri/critest"
)

// The start of a container that the runtime breaks off, as the agent ends or has waited for too
// long, is none of the pod's failures: the container starts again, whatever the restart policy.
func TestAStartThatIsBrokenOffIsNoFailureOfThePod(t *testing.T) {
	pods := map[string]string{"a pod that never restarts": never("web"), "one that restarts": manifest("web", "img:1"),
		"one that restarts on failure": manifest("web", "img:1", "restartPolicy: OnFailure"), "a Job of one attempt": batch(0)}
	begins := func(r *rig, doc string) { // a start, of which half is over
		r.Takes("StartContainer", 20*time.Second)
		r.want(doc)
		r.after(10 * time.Second)
	}
	again := func(r *rig, doc string) {
		r.start()
		r.want(doc)
	}
	ways := map[string]func(*rig, string){
		"by a kill of the agent": func(r *rig, doc string) { begins(r, doc); r.kill(); again(r, doc) },
		"by an end of the agent": func(r *rig, doc string) { begins(r, doc); r.stop(); again(r, doc) },
		"by a stop of the pod":   func(r *rig, doc string) { begins(r, doc); r.stops("web"); r.starts("web") },
		"by a power cut":         func(r *rig, doc string) { begins(r, doc); r.kill(); r.reboot(); again(r, doc) },
		"by a power cut before the runtime began with it": func(r *rig, doc string) {
			r.Fault(critest.On("StartContainer").Hang())
			r.want(doc)
			r.after(5 * time.Second)
			r.kill()
			r.ClearFaults()
			r.reboot()
			again(r, doc)
		},
		"by an agent that a power cut follows": func(r *rig, doc string) {
			begins(r, doc)
			r.kill()
			again(r, doc)
			r.after(5 * time.Second)
			r.kill()
			r.reboot()
			again(r, doc)
		},
		"as it takes long": func(r *rig, doc string) {
			r.Takes("StartContainer", 10*time.Minute)
			r.want(doc)
			r.after(90 * time.Second)
			r.Takes("StartContainer", 20*time.Second)
			r.after(30 * time.Second)
		},
	}
	for name, doc := range pods {
		for when, breakOff := range ways {
			t.Run(name+" "+when, func(t *testing.T) {
				live(t, func(r *rig) {
					r.boot.ID = "one"
					r.stop()
					r.start()
					breakOff(r, doc)
					r.after(45 * time.Second)
					r.expect("default/web-n/c")
					r.Takes("StartContainer", 0)
				})
			})
		}
	}
}

// Nor does it use up an attempt of a Job.
func TestAStartThatIsBrokenOffUsesUpNoAttemptOfAJob(t *testing.T) {
	live(t, func(r *rig) {
		for range 3 {
			r.Takes("StartContainer", 20*time.Second)
			r.want(batch(1))
			r.after(5 * time.Second)
			r.kill()
			r.start()
		}
		r.Takes("StartContainer", 0)
		r.want(batch(1))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.Program("c", critest.Runs())
		for range 2 {
			r.expect("default/web-n/c")
			r.Exit("c", 1)
			r.after(time.Minute)
		}
		r.endedBy("default/web-n", "BackoffLimitExceeded")
	})
}
