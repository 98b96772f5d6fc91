package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"monopod/cri/critest"
)

const probedDoc = "metadata: {name: web}\nspec: {hostNetwork: true, containers: [{name: c, image: 'img:1', " +
	"livenessProbe: {exec: {command: [live]}, periodSeconds: 1, failureThreshold: 1}}]}\n"

// A runtime that answers nothing does not say how the command of a probe ended: nothing is killed for
// that. Its answers count again once it gives some.
func TestARuntimeThatAnswersNothingFailsNoProbe(t *testing.T) {
	bubble(t, func(r *rig) {
		var code atomic.Int32
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) { return "", code.Load(), nil })
		u := Update{Pod: r.podOf(probedDoc), Generation: 1}
		r.after(5*time.Second, u)
		r.Fault(critest.On(critest.Any).Hang())
		time.Sleep(15 * time.Minute)
		r.ClearFaults()
		r.after(5*time.Second, u)
		if n := r.Count("StopContainer"); n != 0 {
			r.Errorf("the container was stopped %d times", n)
		}
		code.Store(1)
		r.after(5*time.Second, u)
		if r.Count("StopContainer") == 0 {
			r.Error("its failures do not count any more")
		}
	})
}

// A command that does not end, of a runtime that answers all else, is the container's failure, also
// where the runtime waits with its answer for what the command has left behind.
func TestACommandThatHangsFailsItsProbe(t *testing.T) {
	bubble(t, func(r *rig) {
		u := Update{Pod: r.podOf(probedDoc), Generation: 1}
		r.after(5*time.Second, u)
		r.Fault(critest.On("ExecSync").Hang())
		r.after(3*time.Minute, u)
		if n := r.Count("StopContainer"); n != 1 {
			r.Errorf("the container was stopped %d times", n)
		}
	})
}
