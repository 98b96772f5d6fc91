package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/cri/critest"
)

// What a probe's command writes is the container's to choose: it must not be a way
// out of being killed.
func TestAProbeThatWritesTooMuchFails(t *testing.T) {
	live(t, func(r *rig) {
		answers(r)
		r.want(probedManifest("web", byExec("liveness")))
		r.after(10 * time.Second)
		r.Fault(critest.On("ExecSync").Fail(codes.ResourceExhausted, "grpc: trying to send message larger than max (17825800 vs. 16777216)"))
		r.after(5 * time.Second)
		if c := r.containerStatus("default/web-n", "c"); c.RestartCount != 1 || c.LastTerminationState.Terminated == nil ||
			!strings.HasPrefix(c.LastTerminationState.Terminated.Message, "Liveness probe failed: the command wrote more than the 16 MiB") {
			r.Errorf("container %+v", c)
		}
	})
}

func TestAHookThatWritesTooMuchFails(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.Fault(critest.On("ExecSync").Fail(codes.ResourceExhausted, "grpc: received message larger than max (17825800 vs. 16777216)"))
		r.want(podOf("job", "restartPolicy: OnFailure", "containers:", hookYAML("a", "postStart", "speak")))
		r.after(5 * time.Second)
		r.waits("default/job-n", "a", "CrashLoopBackOff")
		if t := r.containerStatus("default/job-n", "a").LastTerminationState.Terminated; t == nil ||
			!strings.Contains(t.Message, "the command wrote more than the 16 MiB that the runtime can tell of, and how it ended is not known") {
			r.Errorf("it ended with %+v", t)
		}
	})
}

// The end of what a command writes says why it failed, however much it wrote.
func TestTheLogHasTheEndOfWhatALoudHookWrites(t *testing.T) {
	live(t, func(r *rig) {
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			return strings.Repeat("x", 1<<20) + "no space left", 3, nil
		})
		r.want(podOf("job", "restartPolicy: OnFailure", "containers:", hookYAML("a", "postStart", "speak")))
		r.after(time.Second)
		if text := r.log.String(); !strings.Contains(text, "xxno space left") || len(text) > 64<<10 {
			r.Errorf("the log has %d bytes", len(text))
		}
	})
}
