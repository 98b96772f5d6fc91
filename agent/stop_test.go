package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/worker"
	"monopod/cri/critest"
)

// stopCalls returns the stops since the calls were forgotten at started, in one
// line: who, after how long, with which grace.
func (r *rig) stopCalls(started time.Time) string {
	var out []string
	names := map[string]string{}
	for _, c := range r.Containers() {
		names[c.ID] = c.Name
	}
	for _, c := range r.Calls() {
		if q, ok := c.Request.(*rt.StopContainerRequest); ok {
			name := r.names[q.ContainerId]
			if name == "" {
				name = names[q.ContainerId]
			}
			out = append(out, fmt.Sprintf("%s after %s with %d", name, c.At.Sub(started).Round(time.Second), q.Timeout))
		}
	}
	return strings.Join(out, ", ")
}

// remove removes all pods and returns when.
func (r *rig) remove() time.Time {
	r.names = map[string]string{}
	for _, c := range r.Containers() {
		r.names[c.ID] = c.Name
	}
	r.ForgetCalls()
	started := time.Now()
	r.want()
	return started
}

// goneWithin checks that nothing is left of any pod after so long, and not
// before the time that it should take.
func (r *rig) goneWithin(started time.Time, d time.Duration) {
	r.Helper()
	r.after(time.Until(started.Add(d - 1500*time.Millisecond)))
	if len(r.Sandboxes()) == 0 {
		r.Errorf("it is gone more than a second before %s", d)
	}
	r.after(time.Until(started.Add(d + time.Second)))
	if left := len(r.Sandboxes()); left != 0 {
		r.Errorf("%d sandboxes are left after %s", left, d)
	}
}

func TestStopsShareTheGrace(t *testing.T) {
	sidecar := func(name string) string {
		return fmt.Sprintf(`- {name: %s, image: "img:1", restartPolicy: Always}`, name)
	}
	grace := func(s int) string { return fmt.Sprintf("terminationGracePeriodSeconds: %d", s) }
	run := critest.Runs
	for _, row := range []struct {
		name     string
		pod      []string
		programs map[string]critest.Program
		stops    string
		within   time.Duration
	}{
		{"a preStop hook takes its whole seconds from the grace", []string{grace(10), "containers:", hookYAML("a", "preStop", "3500ms")},
			map[string]critest.Program{"a": run().OnTerm(2*time.Second, 0)}, "a after 4s with 7", 5500 * time.Millisecond},
		{"a preStop hook that hangs is broken off when the grace is over", []string{grace(10), "containers:", hookYAML("a", "preStop", "hang")},
			map[string]critest.Program{"a": run().IgnoresTerm()}, "a after 10s with 2", 12 * time.Second},
		{"a preStop hook that fails keeps nobody", []string{grace(10), "containers:", hookYAML("a", "preStop", "fail")},
			map[string]critest.Program{"a": run().OnTerm(3*time.Second, 0)}, "a after 0s with 10", 3 * time.Second},
		{"a preStop hook ends with its container", []string{grace(30), "containers:", hookYAML("a", "preStop", "hang")},
			map[string]critest.Program{"a": critest.ExitsAfter(4*time.Second, 0)}, "", 4 * time.Second},
		{"a container that ignores SIGTERM is killed", []string{grace(10), "containers:", plainB},
			map[string]critest.Program{"b": run().IgnoresTerm()}, "b after 0s with 10", 10 * time.Second},
		{"sidecars stop in reverse order, each when those before it have ended", []string{grace(30), "initContainers:", sidecar("s1"), sidecar("s2"), "containers:", plainB},
			map[string]critest.Program{"b": run().OnTerm(4*time.Second, 0), "s2": run().OnTerm(3*time.Second, 0), "s1": run().OnTerm(2*time.Second, 0)},
			"b after 0s with 30, s2 after 4s with 26, s1 after 7s with 23", 9 * time.Second},
		{"what takes the whole grace leaves sidecars two seconds", []string{grace(10), "initContainers:", sidecar("s1"), sidecar("s2"), "containers:", plainB},
			map[string]critest.Program{"b": run().IgnoresTerm(), "s1": run().IgnoresTerm(), "s2": run().IgnoresTerm()},
			"b after 0s with 10, s1 after 10s with 2, s2 after 10s with 2", 12 * time.Second},
		{"a sidecar's hook runs at once, its stop waits", []string{grace(20), "initContainers:",
			`- {name: s, image: "img:1", restartPolicy: Always, lifecycle: {preStop: {sleep: {seconds: 6}}}}`, "containers:", plainB},
			map[string]critest.Program{"b": run().OnTerm(8*time.Second, 0), "s": run().IgnoresTerm()}, "b after 0s with 20, s after 8s with 12", 20 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				var n commands
				n.on(r)
				for name, p := range row.programs {
					r.Program(name, p)
				}
				r.want(podOf("web", row.pod...))
				started := r.remove()
				r.goneWithin(started, row.within)
				if got := sortedStops(r.stopCalls(started)); got != row.stops {
					r.Errorf("stops: %s\n want: %s", got, row.stops)
				}
				if n.running.Load() != 0 {
					r.Errorf("%d hooks are left", n.running.Load())
				}
			})
		})
	}
}

// sortedStops puts stops of the same moment in order.
func sortedStops(s string) string {
	parts := strings.Split(s, ", ")
	for k := 1; k < len(parts); k++ {
		_, a, _ := strings.Cut(parts[k-1], " ")
		_, b, _ := strings.Cut(parts[k], " ")
		if a == b && parts[k] < parts[k-1] {
			parts[k], parts[k-1] = parts[k-1], parts[k]
		}
	}
	return strings.Join(parts, ", ")
}

func TestARemovalGoesOnWithTheGraceThatIsLeft(t *testing.T) {
	for _, row := range []struct {
		name  string
		away  time.Duration
		stops string
		hooks int32
		in    time.Duration
	}{
		// The hook runs again, and takes the first second of what is left.
		{"a new agent at once", 0, "a after 16s with 14", 2, 30 * time.Second},
		{"a new agent when it is over", time.Hour, "a after 1h0m15s with 2", 1, time.Hour + 17*time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				var n commands
				n.on(r)
				r.Program("a", critest.Runs().IgnoresTerm())
				m := podOf("web", "terminationGracePeriodSeconds: 30", "containers:", hookYAML("a", "preStop", "1s"))
				r.want(m)
				started := r.remove()
				r.after(10 * time.Second)
				r.ForgetCalls()
				r.stop() // which takes until leaveIn has passed
				time.Sleep(row.away)
				r.start()
				r.want()
				r.goneWithin(started, row.in)
				if got := r.stopCalls(started); got != row.stops || n.started.Load() != row.hooks {
					r.Errorf("stops %s and %d hooks, want %s and %d", got, n.started.Load(), row.stops, row.hooks)
				}
			})
		})
	}
}

// A container whose hook failed is stopped for long when the pod is removed;
// meanwhile another one crashes.
func TestTheStopOfOneContainerKeepsNobody(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "terminationGracePeriodSeconds: 100", "containers:", plainB,
			`- {name: a, image: "img:1", lifecycle: {postStart: {exec: {command: [fail]}}, preStop: {exec: {command: [hang]}}}}`))
		r.after(50 * time.Second)
		r.waits("default/web-n", "a", "PostStartHookError")
		r.Exit("b", 1)
		r.settle()
		r.expect("default/web-n/a", "default/web-n/b")
		started := r.remove()
		r.goneWithin(started, 100*time.Second)
		if got := r.stopCalls(started); got != "b after 0s with 100, a after 1m40s with 2" {
			r.Errorf("stops: %s", got)
		}
		if n.started.Load() != 3 || n.running.Load() != 0 {
			r.Errorf("%d hooks, %d run, want three of which none is left", n.started.Load(), n.running.Load())
		}
	})
}

func TestAContainerThatCannotBeStoppedGoesWithItsSandbox(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "terminationGracePeriodSeconds: 20", "containers:", hookYAML("b", "preStop", "1s")))
		r.Fault(critest.On("StopContainer").Fail(codes.Unknown, "the shim is dead"))
		started := r.remove()
		r.after(19 * time.Second)
		r.expect("default/web-n/b")
		r.after(time.Until(started.Add(31 * time.Second)))
		if left := len(r.Sandboxes()); left != 0 {
			r.Errorf("%d sandboxes are left", left)
		}
		if !strings.Contains(r.log.String(), "the shim is dead") || n.started.Load() != 1 {
			r.Errorf("the log does not say why, or the hook was run %d times", n.started.Load())
		}
	})
}

func TestAHangingPreStopDoesNotKeepTheAgent(t *testing.T) {
	live(t, func(r *rig) {
		var n commands
		n.on(r)
		r.want(podOf("web", "terminationGracePeriodSeconds: 3000", "containers:", hookYAML("a", "preStop", "hang")))
		r.want()
		r.after(time.Minute)
		started := time.Now()
		r.stop()
		if took := time.Since(started); took > worker.LeaveIn+time.Second {
			r.Errorf("the agent took %s to end", took)
		}
		r.start()
	})
}

// What a power cut leaves of CNI's note on a sandbox keeps neither its stop nor its removal.
func TestHalfANoteOfCNIKeepsNoPod(t *testing.T) {
	for _, call := range []string{"StopPodSandbox", "RemovePodSandbox"} {
		t.Run(call, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(manifest("web", "img:1", "terminationGracePeriodSeconds: 1"))
				r.expect("default/web-n/c")
				note := filepath.Join(r.dir, "cni", "pods-"+r.Sandboxes()[0].ID+"-eth0")
				noErr(t, os.MkdirAll(filepath.Dir(note), 0o700))
				noErr(t, os.WriteFile(note, []byte(`{"kind":"cni`), 0o600))
				r.Fault(critest.On(call).Times(1).Fail(codes.Unknown, "failed to destroy network: unexpected end of JSON input"))
				r.remove()
				if left := len(r.Sandboxes()); left > 0 {
					t.Errorf("%d sandboxes are left", left)
				}
				if _, err := os.Stat(note); !os.IsNotExist(err) {
					t.Errorf("the note: %v", err)
				}
				if n := r.Count(call); n != 2 {
					t.Errorf("%d calls of %s, want 2", n, call)
				}
			})
		})
	}
}

// A grace that means forever is no short one: what does not end is not killed.
func TestAGraceThatMeansForeverKillsNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().OnTerm(time.Hour, 0))
		r.want(manifest("web", "img:1", "terminationGracePeriodSeconds: 9223372036854775807"))
		r.after(time.Minute)
		r.goneWithin(r.remove(), time.Hour)
		if calls := r.stopCalls(time.Now()); !strings.Contains(calls, " with 3153600000") {
			t.Errorf("stops %s", calls)
		}
	})
}
