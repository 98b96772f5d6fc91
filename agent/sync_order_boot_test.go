package agent

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
)

// reboot boots the machine, between two agents.
func (r *rig) reboot() {
	r.Reboot()
	r.boot = checkpoint.Boot{ID: r.boot.ID + "+1", Since: time.Now()}
}

func TestAfterARebootTheOrderHoldsAgain(t *testing.T) {
	live(t, func(r *rig) {
		db, web := manifest("db", "img:1"), after("web", "db", "img:1", limited)
		r.want(db, web)
		began := r.status("default/web-n").StartTime
		r.after(time.Hour)
		r.stop()
		r.reboot()
		slow := r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		for range 2 { // and so it does for the agent that comes after the first
			r.start()
			r.want(db, web)
			r.after(40 * time.Second)
			r.expect()
			r.wantHeld("default/web-n", "waits for default/db to be ready")
			r.stop()
		}
		if n := len(r.Sandboxes()); n != 2 {
			r.Errorf("%d sandboxes: what the pods left is gone before they start", n)
		}
		slow.Release()
		r.ClearFaults()
		r.start()
		r.want(db, web)
		r.after(2 * time.Second)
		r.expect("default/db-n/c", "default/web-n/c")
		if st := r.status("default/web-n"); !st.StartTime.Equal(began) || st.ContainerStatuses[0].RestartCount != 1 {
			r.Errorf("it is another pod: %+v", st)
		}
		r.Program("default/db-n/c", critest.Exits(1))
		r.Exit("default/db-n/c", 1)
		r.stop()
		r.start()
		r.want(db, web)
		r.Exit("default/web-n/c", 1)
		r.after(10 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestAPodRemovedWhileItIsHeldAfterARebootIsRetired(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"))
		r.stop()
		r.reboot()
		r.start()
		r.Fault(critest.On("RunPodSandbox").Of("db-n").Fail(codes.Internal, "no"))
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"))
		r.after(time.Minute)
		r.wantHeld("default/web-n", "waits")
		r.want(manifest("db", "img:1"))
		r.after(time.Minute)
		if _, ok := r.store.Pod("default/web-n"); ok || len(r.Sandboxes()) != 1 {
			r.Errorf("it is left: %v", r.Sandboxes())
		}
	})
}

func TestTheTimeBeforeARebootDoesNotCount(t *testing.T) {
	live(t, func(r *rig) {
		web := after("web", "db", "img:1", limited)
		r.want(web)
		r.after(60 * time.Second)
		r.stop()
		r.after(time.Hour)
		r.reboot()
		r.start()
		r.want(web)
		r.after(89 * time.Second)
		r.expect()
		r.after(time.Second)
		r.expect("default/web-n/c")
	})
}

func TestAJobThatHadEndedBeforeARebootIsReadyAndNotHeld(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("default/job-n/c", critest.Exits(0))
		all := []string{manifest("db", "img:1"), after("job", "db", "img:1", "restartPolicy: Never"), after("web", "job", "img:1")}
		r.want(all...)
		r.expect("default/db-n/c", "default/web-n/c")
		r.stop()
		r.reboot()
		r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		r.start()
		r.want(all...)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if st := r.status("default/job-n"); st.Phase != v1.PodSucceeded {
			r.Errorf("the job is %+v", st)
		}
	})
}
