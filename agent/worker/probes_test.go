package worker

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A pod on the machine's network is asked at the address that the machine has, not at the one that it
// had when the container started.
func TestProbesFollowTheAddressOfTheMachine(t *testing.T) {
	bubble(t, func(r *rig) {
		machine := r.pod.shared.Disk.Machine
		machine.Cfg.IPs = []string{"192.0.2.1"}
		probes := 0
		r.pool.Prober.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
			if address != machine.Cfg.IPs[0]+":80" {
				return nil, errors.New("no route to host")
			}
			probes++
			if probes == 3 { // in the goroutine that reads it
				machine.Cfg.IPs = []string{"192.0.2.7"}
			}
			here, _ := net.Pipe()
			return here, nil
		}
		u := Update{Pod: r.podOf("metadata: {name: web}\nspec: {hostNetwork: true, containers: [{name: c, image: 'img:1', " +
			"livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 1, failureThreshold: 1}}]}\n"), Generation: 1}
		r.after(8*time.Second, u)
		synctest.Wait()
		if n := r.Count("StopContainer"); n != 0 || probes < 5 {
			r.Errorf("the container was stopped %d times, and probed %d times", n, probes)
		}
	})
}

// So does a hook.
func TestHooksFollowTheAddressOfTheMachine(t *testing.T) {
	bubble(t, func(r *rig) {
		machine := r.pod.shared.Disk.Machine
		machine.Cfg.IPs = []string{"192.0.2.1"}
		u := Update{Pod: r.web("img:1"), Generation: 1}
		r.passes(u)
		synctest.Wait()
		machine.Cfg.IPs = []string{"192.0.2.7"}
		seen, err := r.observe(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		s := r.facts(u, seen)
		if got := r.hooks.hostOf(&s, s.Instance()); got != "192.0.2.7" {
			r.Errorf("a hook goes to %q", got)
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
