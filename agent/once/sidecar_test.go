package once

import (
	"io"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A sidecar is stopped when its job has ended. Whether it hears the signal says nothing of it.
func TestASidecarThatIsStoppedHasNotFailed(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.Unix(1_700_000_000+int64(seconds), 0) }
	ended := func(code int32, from, to int) v1.ContainerState {
		s := exited("x", code)
		s.Terminated.StartedAt, s.Terminated.FinishedAt = at(from), at(to)
		return s
	}
	for _, row := range []struct {
		name     string
		end      v1.ContainerState
		before   v1.ContainerState
		restarts int32
		element  string
	}{
		{"by SIGKILL", ended(137, 1, 52), v1.ContainerState{}, 0, ""},
		{"by SIGTERM, in the second in which the job ends", ended(143, 1, 50), v1.ContainerState{}, 0, ""},
		{"and ends with 0", ended(0, 1, 52), v1.ContainerState{}, 0, ""},
		{"and had ended before", ended(3, 1, 40), v1.ContainerState{}, 0, "failure"},
		{"and crashes again and again", ended(143, 49, 52), ended(3, 40, 41), 5, "failure"},
		{"and crashed once, long ago", ended(143, 10, 52), ended(3, 1, 2), 1, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			job := made("job", "Never", "c")
			job.Spec.InitContainers = []v1.Container{{Name: "side", Image: "img:2", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}}
			v := now(job, v1.PodSucceeded, states{"c": ended(0, 2, 50), "side": row.end})
			is := &v.status.InitContainerStatuses[0]
			is.RestartCount, is.LastTerminationState = row.restarts, row.before
			s := &session{began: at(0).Time, finished: at(60).Time, outcome: &outcome{End: endSucceeded}, final: []view{v}}
			s.config.Pods = []*v1.Pod{job}
			s.logs = &follower{streams: newPrinter(io.Discard).streams(s.config.Pods, names{}, false)}
			sum := summaryOf(s)
			if element, message := resultOf(sum, &sum.Pods[0], &sum.Pods[0].Containers[0]); element != row.element {
				t.Errorf("it is %q %s, want %q", element, message, row.element)
			}
		})
	}
}
