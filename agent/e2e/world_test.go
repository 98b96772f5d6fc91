//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// limit is how long anything may take before it counts as not happening. It is
// generous, for machines with other work to do; nothing waits for it to pass.
const limit = 2 * time.Minute

// longest is how long a scenario may take, whatever it waits for.
const longest = 10 * time.Minute

// world is what one scenario acts on and looks at.
type world struct {
	*testing.T
	rig   *rig.Rig
	agent *rig.Agent
	ns    string // of all pods
	ctx   context.Context
}

// Context ends with the scenario, or when that takes too long.
func (w *world) Context() context.Context { return w.ctx }

func newWorld(t *testing.T, r *rig.Rig, binary, ns string) *world {
	t.Helper()
	a, err := r.NewAgent(binary)
	check(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), longest*rig.Slow(), fmt.Errorf("the scenario takes longer than %v", longest*rig.Slow()))
	t.Cleanup(cancel)
	w := &world{t, r, a, ns, ctx}
	t.Cleanup(w.leave)
	return w
}

// leave removes the pods as a user does and looks for what they left on disk. If
// the scenario failed, it shows what the agent saw instead, and clears all away.
func (w *world) leave() {
	ctx := context.Background()
	if w.Failed() {
		w.explain(ctx)
	}
	if w.agent.Running() && !w.Failed() {
		if err := os.MkdirAll(w.agent.Manifests, 0o755); err != nil {
			w.Error(err)
		}
		if err := w.agent.Clear(); err != nil {
			w.Error(err)
		}
		if err := rig.Until(ctx, limit, func() error { return w.empty(ctx) }); err != nil {
			w.Errorf("after all manifests were removed: %v", err)
			w.explain(ctx)
		}
	}
	if err := w.agent.Close(); err != nil {
		w.Errorf("stop agent: %v", err)
	}
	if w.Failed() {
		w.sweep(ctx)
	} else if w.rig.Runtime.Running() {
		if err := rig.Until(ctx, limit, func() error { return w.rig.CRI.RemoveAll(ctx, w.ns) }); err != nil {
			w.Errorf("remove what is left: %v", err)
		}
	}
}

// sweep clears away what a scenario that failed left anywhere, and has the runtime
// run: the next one is judged for itself.
func (w *world) sweep(ctx context.Context) {
	if !w.rig.Runtime.Running() {
		if err := w.rig.Runtime.Start(ctx); err != nil {
			w.Errorf("start the runtime again: %v", err)
		}
	}
	if err := rig.Until(ctx, limit, func() error { return w.rig.CRI.RemoveAll(ctx, "") }); err != nil {
		w.Errorf("remove all pods: %v", err)
	}
	if err := w.agent.Sweep(); err != nil {
		w.Error(err)
	}
}

// explain logs what is needed to understand a failure.
func (w *world) explain(ctx context.Context) {
	ps, err := w.agent.Says(ctx, "ps")
	cs, _ := w.rig.CRI.Containers(ctx, w.ns)
	ss, _ := w.rig.CRI.Sandboxes(ctx, w.ns)
	w.Logf("monopod ps: %v\n%s\ncontainers %+v\nsandboxes %+v\nend of the agent's log:\n%s\nend of the runtime's log:\n%s",
		err, ps, cs, ss, rig.Tail(w.agent.Log, 60), rig.Tail(w.rig.Runtime.Log, 15))
}

// empty returns nil when nothing of the scenario's pods is left anywhere.
func (w *world) empty(ctx context.Context) error {
	ss, err := w.rig.CRI.Sandboxes(ctx, w.ns)
	if err != nil {
		return err
	}
	var left []string
	for _, s := range ss {
		left = append(left, "sandbox of "+s.Pod)
	}
	for _, pattern := range []string{w.agent.Root + "/pods/*", w.agent.Root + "/status/pods/*", w.agent.PodLogs + "/" + w.ns + "_*"} {
		files, _ := filepath.Glob(pattern)
		left = append(left, files...)
	}
	if len(left) > 0 {
		return fmt.Errorf("still there: %s", strings.Join(left, ", "))
	}
	return nil
}

// start starts the agent and waits until it is healthy.
func (w *world) start() {
	w.Helper()
	check(w.T, w.agent.Start(w.Context()))
}

// kill ends the agent with SIGKILL.
func (w *world) kill() { w.agent.Kill() }

// write puts the manifest of a pod in place as name.yaml; spec is the YAML under
// its key, indented by two.
func (w *world) write(name, spec string) {
	w.Helper()
	w.writeFile(name+".yaml", w.manifest(name, spec))
}

func (w *world) manifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n%s\n", name, w.ns, strings.Trim(spec, "\n"))
}

func (w *world) writeFile(file, text string) {
	w.Helper()
	check(w.T, w.agent.Write(file, text))
}

// remove deletes name.yaml.
func (w *world) remove(name string) {
	w.Helper()
	check(w.T, w.agent.Remove(name+".yaml"))
}

// until waits for cond to return nil.
func (w *world) until(what string, cond func() error) {
	w.Helper()
	if err := rig.Until(w.Context(), limit, cond); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// patience is how long all may take before it is looked whether containerd is what is in the way.
const patience = 20 * time.Second

// untilFreed is until for a world in which agents are killed: a containerd that is in the way is
// restarted.
func (w *world) untilFreed(what string, cond func() error) {
	w.Helper()
	start := time.Now()
	w.until(what, func() error {
		if time.Since(start) > patience {
			w.freeTask()
			start = time.Now()
		}
		return cond()
	})
}

// freeTask restarts a containerd that holds on to the task of a start that was broken off, and so
// refuses to remove its container until then: see survivesKillsWhileStarting.
func (w *world) freeTask() {
	out, _ := w.agent.Says(w.Context(), "ps", "-n", w.ns)
	if !strings.Contains(out, "cannot delete running task") {
		return
	}
	w.Logf("containerd holds on to the task of a start that was broken off: it is restarted\n%s", out)
	check(w.T, w.rig.Runtime.Restart(w.Context()))
}

// name is what a pod is called towards the runtime.
func name(pod string) string { return pod + "-" + rig.Node }

// containers returns all containers of a pod, oldest first.
func (w *world) containers(pod string) []rig.Container {
	w.Helper()
	all, err := w.rig.CRI.Containers(w.Context(), w.ns)
	check(w.T, err)
	return slices.DeleteFunc(all, func(c rig.Container) bool { return c.Pod != name(pod) })
}

// sandboxes returns all sandboxes of a pod, oldest first.
func (w *world) sandboxes(pod string) []rig.Sandbox {
	w.Helper()
	all, err := w.rig.CRI.Sandboxes(w.Context(), w.ns)
	check(w.T, err)
	return slices.DeleteFunc(all, func(s rig.Sandbox) bool { return s.Pod != name(pod) })
}

// running waits until exactly one container main of each pod runs, and returns those.
func (w *world) running(pods ...string) map[string]rig.Container {
	w.Helper()
	run := map[string]rig.Container{}
	for _, pod := range pods {
		w.until(pod+" runs", func() error {
			now := slices.DeleteFunc(w.containers(pod), func(c rig.Container) bool { return c.State != "Running" || c.Name != "main" })
			if len(now) != 1 {
				return fmt.Errorf("%d containers run", len(now))
			}
			run[pod] = now[0]
			return nil
		})
	}
	return run
}

// same fails unless the pods still have exactly the containers they had, running.
func (w *world) same(before map[string]rig.Container) {
	w.Helper()
	for pod, old := range before {
		now := w.containers(pod)
		if len(now) == 1 {
			old.Created = now[0].Created // CRI-O's moves by a part of a millisecond when it restarts
		}
		if len(now) != 1 || now[0] != old {
			w.Errorf("%s was touched: containers %+v, want only %+v", pod, now, old)
		}
	}
}

// barrier starts one more pod and waits until it runs, which shows that the agent
// has looked at every manifest since and had time to act on it.
func (w *world) barrier(pod string) {
	w.Helper()
	w.write(pod, sleeper)
	w.running(pod)
}

// status waits until the agent reports the pod and cond accepts its status.
func (w *world) status(pod, what string, cond func(s v1.PodStatus) bool) v1.PodStatus {
	w.Helper()
	var last v1.PodStatus
	w.until(pod+": "+what, func() error {
		pods, err := w.agent.Pods(w.Context())
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Name == name(pod) && p.Namespace == w.ns {
				if last = p.Status; cond(last) {
					return nil
				}
				b, _ := json.Marshal(last)
				return fmt.Errorf("its status is %s", b)
			}
		}
		return fmt.Errorf("the agent does not report it")
	})
	return last
}

// phase waits for a phase.
func (w *world) phase(pod string, want v1.PodPhase) v1.PodStatus {
	w.Helper()
	return w.status(pod, "becomes "+string(want), func(s v1.PodStatus) bool { return s.Phase == want })
}

// ps waits until `monopod ps` shows all the words in one line.
func (w *world) ps(words ...string) {
	w.Helper()
	w.until(fmt.Sprintf("monopod ps shows %q in a line", words), func() error {
		out, err := w.agent.Says(w.Context(), "ps")
		for line := range strings.Lines(out) {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				return nil
			}
		}
		return fmt.Errorf("it shows (%v)\n%s", err, out)
	})
}

// report is status/manifests.json.
type report struct {
	Files []struct {
		Path     string    `json:"path"`
		Pods     []string  `json:"pods"`
		Held     bool      `json:"held"`
		Problems []problem `json:"problems"`
	} `json:"files"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// manifests waits until cond accepts status/manifests.json.
func (w *world) manifests(what string, cond func(r report) bool) {
	w.Helper()
	w.until("status/manifests.json: "+what, func() error {
		b, err := os.ReadFile(filepath.Join(w.agent.Root, "status", "manifests.json"))
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal(b, &r); err != nil {
			return rig.Final(err)
		}
		if !cond(r) {
			return fmt.Errorf("it says %s", b)
		}
		return nil
	})
}

// file returns what a report says about a file; zero if nothing.
func (r report) file(name string) (pods []string, held bool, problems []problem) {
	for _, f := range r.Files {
		if filepath.Base(f.Path) == name {
			return f.Pods, f.Held, f.Problems
		}
	}
	return nil, false, nil
}
