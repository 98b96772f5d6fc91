package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/cri/critest"
)

// asked is what the pod's containers answer to probes by command, which are
// called by their kind, and how often they were asked.
type asked struct {
	mu    sync.Mutex
	fails map[string]bool
	count map[string]int
}

// answers makes the runtime answer.
func answers(r *rig, failing ...string) *asked {
	a := &asked{fails: map[string]bool{}, count: map[string]int{}}
	a.fail(failing...)
	r.OnExec(func(_ context.Context, c critest.Container, command []string) (string, int32, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.count[command[0]]++
		if a.fails[command[0]] {
			return "it is broken", 1, nil
		}
		return "", 0, nil
	})
	return a
}

// fail makes these commands fail and all others succeed.
func (a *asked) fail(commands ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.fails)
	for _, c := range commands {
		a.fails[c] = true
	}
}

// times returns how often a command was run.
func (a *asked) times(command string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[command]
}

// byExec is a probe by command, each second; more are further fields.
func byExec(kind string, more ...string) string {
	return fmt.Sprintf("%sProbe: {exec: {command: [%s]}, periodSeconds: 1, failureThreshold: 2%s}", kind, kind, strings.Join(append([]string{""}, more...), ", "))
}

// probedManifest is manifest for a container with probes.
func probedManifest(name, probes string, extra ...string) string {
	return strings.Replace(manifest(name, "img:1", extra...), `image: "img:1"}`, `image: "img:1", `+probes+"}", 1)
}

// isReady checks whether the pod's only container is ready, and the message of
// its condition.
func (r *rig) isReady(want bool, message string) {
	r.Helper()
	st := r.status("default/web-n")
	if st.ContainerStatuses[0].Ready != want {
		r.Errorf("ready is %v", !want)
	}
	for _, c := range st.Conditions {
		if c.Type == v1.PodReady && (c.Message != message || (c.Status == v1.ConditionTrue) != want) {
			r.Errorf("condition %+v, want message %q", c, message)
		}
	}
}

func TestAPodIsReadyWhenItsProbeSaysSo(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "readiness")
		r.want(probedManifest("web", byExec("readiness")))
		r.isReady(false, "containers with unready status: [c]: Readiness probe failed: it is broken")
		a.fail()
		r.after(1100 * time.Millisecond)
		r.isReady(true, "")
		a.fail("readiness")
		r.after(time.Second)
		r.isReady(true, "")
		r.after(time.Second)
		r.isReady(false, "containers with unready status: [c]: Readiness probe failed: it is broken")
		r.after(time.Minute)
		if n := r.Count("StartContainer"); n != 1 {
			r.Errorf("started %d times", n)
		}
		if n := strings.Count(r.log.String(), "probe fails"); n != 2 {
			r.Errorf("that the probe fails was said %d times", n)
		}
	})
}

func TestAContainerWhoseLivenessProbeFailsIsRestarted(t *testing.T) {
	for _, policy := range []string{"Always", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			live(t, func(r *rig) {
				a := answers(r)
				r.want(probedManifest("web", byExec("liveness", "terminationGracePeriodSeconds: 3"), "restartPolicy: "+policy))
				r.after(10 * time.Second)
				first, _ := r.Container("c")
				a.fail("liveness")
				r.after(2500 * time.Millisecond) // its program ends with 0 at SIGTERM
				r.expect("default/web-n/c")
				c := r.status("default/web-n").ContainerStatuses[0]
				last := c.LastTerminationState.Terminated
				if c.RestartCount != 1 || last == nil || last.ExitCode != 0 || last.Message != "Liveness probe failed: it is broken" {
					r.Errorf("status %+v, last %+v", c, last)
				}
				if got := r.log.String(); !strings.Contains(got, `"Container c failed liveness probe, will be restarted"`) {
					r.Errorf("the log does not say why")
				}
				r.after(3 * time.Second) // it fails again, and now waits
				if w := r.status("default/web-n").ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" {
					r.Errorf("state %+v", w)
				}
				a.fail()
				r.after(time.Minute)
				r.expect("default/web-n/c")
				var saved checkpoint.Checkpoint
				data, err := os.ReadFile(filepath.Join(r.dir, "pods", first.UID, "pod.json"))
				noErr(r.T, errors.Join(err, json.Unmarshal(data, &saved)))
				if k := saved.KillDecisions; len(k) == 0 || len(k) > 2 {
					r.Errorf("%d verdicts are remembered", len(k))
				}
			})
		})
	}
}

func TestUnderNeverAContainerWhoseLivenessProbeFailsIsOnlyStopped(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().OnTerm(0, 9))
		answers(r, "liveness")
		r.want(probedManifest("web", byExec("liveness"), "restartPolicy: Never"))
		r.after(time.Minute)
		if st := r.status("default/web-n"); st.Phase != v1.PodFailed || r.Count("StartContainer") != 1 {
			r.Errorf("phase %s, %d starts", st.Phase, r.Count("StartContainer"))
		}
	})
}

// Whenever the agent dies after the verdict, the container is stopped and
// started again, though its probe succeeds meanwhile and it ended with 0.
func TestAnAgentThatDiesWhileItRestartsAContainerIsMadeUpFor(t *testing.T) {
	for _, moment := range []string{"before the stop", "after the stop", "before the start", "after the start"} {
		t.Run(moment, func(t *testing.T) {
			live(t, func(r *rig) {
				a := answers(r)
				m := probedManifest("web", byExec("liveness"), "restartPolicy: OnFailure")
				r.want(m)
				died := make(chan struct{})
				var once sync.Once
				die := func() { once.Do(func() { close(died) }) }
				when, call, _ := strings.Cut(moment, " the ")
				f := critest.On(map[string]string{"stop": "StopContainer", "start": "StartContainer"}[call]).Nth(1)
				if when == "before" {
					f.Before(die).Hang()
				} else {
					f.After(die).HangAnswer()
				}
				r.Fault(f)
				a.fail("liveness")
				r.after(2500 * time.Millisecond)
				<-died
				r.stop()
				a.fail()
				f.Release()
				r.start()
				r.want(m)
				r.after(time.Minute)
				r.expect("default/web-n/c")
				if c := r.status("default/web-n").ContainerStatuses[0]; c.RestartCount != 1 || !c.Ready {
					r.Errorf("status %+v", c)
				}
			})
		})
	}
}

func TestAVerdictThatCannotBeWrittenIsCarriedOut(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		r.want(probedManifest("web", byExec("liveness"), "restartPolicy: OnFailure"))
		c, _ := r.Container("c")
		file := filepath.Join(r.dir, "pods", c.UID, "pod.json")
		pin(t, file)
		a.fail("liveness")
		r.after(2 * time.Second)
		a.fail()
		r.after(10 * time.Second)
		r.expect("default/web-n/c")
		if st := r.status("default/web-n"); st.ContainerStatuses[0].RestartCount != 1 || !strings.Contains(r.log.String(), "a restarted agent does not know why a container is killed") {
			r.Errorf("status %+v", st.ContainerStatuses)
		}
	})
}

func TestStartedAndReadySurviveTheAgent(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		m := probedManifest("web", byExec("startup")+", "+byExec("liveness")+", "+byExec("readiness"))
		r.want(m)
		r.after(5 * time.Second)
		r.isReady(true, "")
		r.stop()
		a.fail("startup")
		before := a.times("startup")
		r.after(time.Hour)
		r.start()
		r.want(m)
		r.isReady(true, "")
		r.after(10 * time.Second)
		r.isReady(true, "")
		if n := a.times("startup"); n != before || r.Count("StartContainer") != 1 {
			r.Errorf("the startup probe ran %d times more, %d starts", n-before, r.Count("StartContainer"))
		}
	})
}

func TestAStartupProbeGoesOnUnderTheNextAgent(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "startup")
		m := probedManifest("web", strings.Replace(byExec("startup"), "Threshold: 2", "Threshold: 60", 1))
		r.want(m)
		r.after(5 * time.Second)
		r.stop()
		r.start()
		r.want(m)
		r.after(1100 * time.Millisecond)
		r.isReady(false, "containers with unready status: [c]: Startup probe failed: it is broken")
		a.fail()
		r.after(2 * time.Second)
		r.isReady(true, "")
	})
}

func TestASidecarsStartupProbeHoldsTheOthers(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "startup")
		r.want(manifest("web", "img:1", `initContainers: [{name: s, image: "img:1", restartPolicy: Always, `+
			strings.Replace(byExec("startup"), "Threshold: 2", "Threshold: 9", 1)+"}]"))
		r.after(5 * time.Second)
		r.expect("default/web-n/s")
		a.fail()
		r.after(time.Second)
		r.expect("default/web-n/s", "default/web-n/c")
	})
}

func TestAPodThatGoesIsNotKilledForItsProbes(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		a := answers(r)
		r.want(probedManifest("web", byExec("liveness")+", "+byExec("readiness")))
		r.after(5 * time.Second)
		r.want()
		a.fail("liveness")
		liveness, readiness := a.times("liveness"), a.times("readiness")
		r.after(20 * time.Second)
		if a.times("liveness") != liveness || a.times("readiness") < readiness+15 {
			r.Errorf("liveness was asked %d times more, readiness %d", a.times("liveness")-liveness, a.times("readiness")-readiness)
		}
		r.after(time.Minute)
		if n := r.Count("StopContainer"); n != 1 || len(r.Sandboxes()) != 0 {
			r.Errorf("%d stops, %d sandboxes", n, len(r.Sandboxes()))
		}
	})
}

func TestAProbeOverTheNetworkGoesToThePod(t *testing.T) {
	var mu sync.Mutex
	var to []string
	liveWith(t, func(r *rig) {
		r.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			to = append(to, address)
			return serveOnce(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), nil
		}
	}, func(r *rig) {
		r.want(probedManifest("web", "ports: [{name: http, containerPort: 8080}], readinessProbe: {httpGet: {port: http}}"))
		r.isReady(true, "")
		mu.Lock()
		defer mu.Unlock()
		if ip := r.status("default/web-n").PodIP; len(to) != 1 || to[0] != ip+":8080" {
			r.Errorf("it went to %v, the pod is %s", to, ip)
		}
	})
}

// While the runtime does not say what address a pod has, probes over the network say nothing about
// it: they do not go to the machine itself. Once it says so, they go to the pod.
func TestProbesOfAPodWhoseNetworkIsUnknown(t *testing.T) {
	var mu sync.Mutex
	to := map[string]int{}
	liveWith(t, func(r *rig) {
		r.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			to[address]++
			if strings.HasPrefix(address, ":") {
				return nil, errors.New("connection refused")
			}
			return serveOnce(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), nil
		}
	}, func(r *rig) {
		a := answers(r)
		text := probedManifest("web", "livenessProbe: {httpGet: {port: 8080}, periodSeconds: 1}, "+byExec("readiness"))
		times := func(address string) int {
			mu.Lock()
			defer mu.Unlock()
			return to[address]
		}
		r.want(text)
		r.after(3 * time.Second)
		address := r.status("default/web-n").PodIP + ":8080"
		r.stop()
		var says atomic.Bool
		unsaid := unsaidNetwork(nil)
		r.mangle = func(args, reply any) {
			if !says.Load() {
				unsaid(args, reply)
			}
		}
		r.start()
		byExec, byHTTP := a.times("readiness"), times(address)
		r.want(text)
		r.after(time.Minute)
		if n := r.Count("StartContainer"); n != 1 || times(":8080") > 0 {
			r.Errorf("started %d times, and %d probes went to the machine", n, times(":8080"))
		}
		if a.times("readiness") < byExec+30 {
			r.Error("its command was not run")
		}
		r.isReady(true, "")
		said := strings.Join(r.happened("web-n"), "\n")
		if want := "Liveness probe errored and resulted in unknown state: the pod's address is not known"; !strings.Contains(said, want) {
			r.Errorf("events\n%s\nwant %s", said, want)
		}
		says.Store(true)
		r.after(time.Minute)
		if times(address) < byHTTP+30 {
			r.Errorf("the pod was probed %d times, before %d times", times(address), byHTTP)
		}
	})
}

// Nothing of a pod's probes is left when it is gone, restarted or replaced.
func TestProbesLeaveNoGoroutinesBehind(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		round := func() int {
			r.want(probedManifest("web", byExec("liveness")+", "+byExec("readiness")), probedManifest("job", byExec("startup")+", "+byExec("readiness")))
			r.after(5 * time.Second)
			a.fail("liveness") // which restarts it
			r.after(3 * time.Second)
			a.fail()
			r.want(probedManifest("web", byExec("readiness")))
			r.after(time.Minute)
			r.want()
			r.after(time.Minute)
			return runtime.NumGoroutine()
		}
		const rounds = 10
		first := round()
		for range rounds - 1 {
			round()
		}
		// What leaks does so each round; a goroutine of the process more or less, outside of this test, is nobody's.
		if last := round(); last >= first+rounds {
			r.Errorf("%d goroutines after the first round, %d after the last", first, last)
		}
	})
}

func TestWhatProbesByCommandAreExpanded(t *testing.T) {
	env := []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "F", ValueFrom: &v1.EnvVarSource{}}}
	command := []string{"plain", "$(A)$(B)", "$(F)$(NONE)$$(A)"}
	got, err := podspec.ExpandStatic(command, env)
	if want := []string{"plain", "1$(A)", "$(F)$(NONE)$(A)"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if command[1] != "$(A)$(B)" {
		t.Error("the manifest was changed")
	}
}

func TestProbesBeginWhenThePostStartHookIsDone(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		r.want(probedManifest("web", byExec("startup")+", "+byExec("liveness")+", lifecycle: {postStart: {sleep: {seconds: 5}}}"))
		r.after(4 * time.Second)
		if n := a.times("startup") + a.times("liveness"); n != 0 {
			r.Errorf("%d probes during the hook", n)
		}
		r.after(2 * time.Second)
		r.isReady(true, "")
	})
}
