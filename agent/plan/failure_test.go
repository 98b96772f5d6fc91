package plan_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"monopod/agent/image"
	"monopod/agent/panics"
	"monopod/agent/plan"
)

func TestFailuresInWords(t *testing.T) {
	no := errors.New("no")
	broken := panics.Contain(func() { panic("x") })
	const report = "monopod itself went wrong, please report it: panic: x"
	for _, row := range []struct {
		name string
		do   plan.Action
		err  error
		want string
	}{
		{"a sandbox is not made", plan.Action{Do: plan.DoCreateSandbox}, no, "FailedCreatePodSandBox: Failed to create pod sandbox: no"},
		{"a pod is not accepted", plan.Action{Do: plan.DoAccept}, no, "FailedCreatePodSandBox: Failed to create pod sandbox: no"},
		{"a pod is not set up", plan.Action{Do: plan.DoSetUp}, no, "FailedCreatePodSandBox: Failed to create pod sandbox: no"},
		{"a container is not started, with a reason", plan.Action{Do: plan.DoStartContainer}, fmt.Errorf("start: %w", plan.Because("RunContainerError", no)), "RunContainerError: no"},
		{"an image is not there", plan.Action{Do: plan.DoStartContainer}, &image.Error{Reason: image.ErrImagePull, Err: no}, "ErrImagePull: no"},
		{"an update fails with a reason", plan.Action{Do: plan.DoUpdate}, plan.Because("CreateContainerConfigError", no), "CreateContainerConfigError: no"},
		{"an update fails without one", plan.Action{Do: plan.DoUpdate}, no, "FailedSync: update: no"},
		{"an update panics", plan.Action{Do: plan.DoUpdate}, broken, "FailedSync: " + report},
		{"a sandbox is not stopped", plan.Action{Do: plan.DoStopSandbox}, no, "FailedKillPod: error killing pod: no"},
	} {
		w := plan.ExplainAction(row.do, row.err)
		if got := w.Reason + ": " + w.Message.String(); got != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
	if err := plan.Because("RunContainerError", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// From the second failure in a row on, the status shows the back-off.
func TestAnImageThatCannotBeHadIsInBackOff(t *testing.T) {
	retry := time.Unix(9, 0)
	for _, row := range []struct {
		count  int
		reason string
		want   string
	}{
		{1, image.ErrImagePull, "ErrImagePull: no"},
		{2, image.ErrImagePull, `ImagePullBackOff: Back-off pulling image "img:1": ErrImagePull: no`},
		{2, image.ImagePullBackOff, "ImagePullBackOff: no"},
	} {
		w, until := plan.ImageFailure(&image.Error{Reason: row.reason, Image: "img:1", Err: errors.New("no"), Retry: retry, Count: row.count})
		if got := w.Reason + ": " + w.Message.String(); got != row.want || until != retry {
			t.Errorf("%s, failure %d: %s until %s", row.reason, row.count, got, until)
		}
	}
}

func TestARefusalThatLastsIsAFailure(t *testing.T) {
	r := plan.Refusals{}
	for ago, want := range map[time.Duration]bool{0: false, 30*time.Second - 1: false, 30 * time.Second: true, time.Hour: true} {
		r["x"] = noon
		if got := r.Lasts("x", noon.Add(ago)); got != want {
			t.Errorf("after %s: %v", ago, got)
		}
	}
	if r.Lasts("y", noon) || r["y"] != noon {
		t.Errorf("the first one of another: %v", r)
	}
	r = plan.Refusals{"old": noon.Add(-time.Hour - 1), "new": noon.Add(-time.Hour)}
	r.Forget(noon)
	if len(r) != 1 || r["new"].IsZero() {
		t.Errorf("kept %v", r)
	}
}
