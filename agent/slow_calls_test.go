package agent

import (
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// However long a runtime takes to answer, pods run in the end, once.
func TestPodsRunWhereTheRuntimeNeedsLongerThanACallWaits(t *testing.T) {
	for call, takes := range map[string]time.Duration{"ListContainers": 12 * time.Second, "ListPodSandbox": 12 * time.Second, "Version": 12 * time.Second, "Status": 12 * time.Second,
		"PodSandboxStatus": 12 * time.Second, "ContainerStatus": 12 * time.Second, "ImageStatus": 12 * time.Second,
		"RunPodSandbox": 7 * time.Minute, "CreateContainer": 5 * time.Minute, "StartContainer": 5 * time.Minute} {
		t.Run(call, func(t *testing.T) {
			live(t, func(r *rig) {
				r.stop()
				slow := r.Fault(critest.On(call).Delay(takes))
				r.start()
				r.want(manifest("web", "img:1"), manifest("other", "img:1"))
				r.after(time.Hour)
				r.expect("default/other-n/c", "default/web-n/c")
				r.Exit("default/web-n/c", 1)
				r.after(time.Hour)
				r.expect("default/other-n/c", "default/web-n/c")
				slow.Release()
			})
		})
	}
}

// A run counts the answers of the runtime to its starts: no answer is none, nor is that it still works on
// an earlier try.
func TestNoAnswerIsNoAnswerOfARun(t *testing.T) {
	for name, f := range map[string]*critest.Fault{
		"no answer":      critest.On("CreateContainer").Times(2).Fail(codes.DeadlineExceeded, "context deadline exceeded"),
		"an earlier try": critest.On("CreateContainer").Times(2).Fail(codes.DeadlineExceeded, `still made: name "c_web" is reserved`),
	} {
		t.Run(name, func(t *testing.T) {
			r := critest.Start(t)
			r.AddImage("img:1")
			r.Program("c", critest.ExitsAfter(0, 0))
			r.Fault(f)
			o := runOnce(t, r, filepath.Join(t.TempDir(), "root"), manifest("job", "img:1", "restartPolicy: Never"))
			o.await("default/job-n", v1.PodSucceeded)
			o.Retire()
			o.awaitGone()
			if err := o.leaves(); err != nil {
				t.Error(err)
			}
			select {
			case told := <-o.failed:
				t.Errorf("it is told that %s", told)
			default:
			}
		})
	}
}
