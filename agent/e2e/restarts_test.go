//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// TestRestarts takes minutes, so it is run only where MONOPOD_E2E_RESTARTS says how often pods are to
// restart: make restarts.
func TestRestarts(t *testing.T) {
	asked := os.Getenv("MONOPOD_E2E_RESTARTS")
	if asked == "" {
		t.Skip("NOT run: pods that restart a hundred times take minutes: make restarts")
	}
	times, err := strconv.Atoi(asked)
	check(t, err)
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, open(t, version), binary, "restarts")
			w.ctx = t.Context() // each wait has its limit, and all together none
			survivesRestarts(w, times)
		})
	}
}

// pair is a pod of two containers in a network of its own. The values are a line of its own and its
// name, which their programs have in their command lines.
const pair = `
  %[1]s
  terminationGracePeriodSeconds: 1
  dnsPolicy: Default
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh, -c, "trap 'exit 0' TERM; while : %[2]s.main; do sleep 0.2; done"]}
  - {name: side, image: "registry.test/busybox:1", command: [sh, -c, "trap 'exit 0' TERM; while : %[2]s.side; do sleep 0.2; done"]}
`

var pairProgram = regexp.MustCompile(`^sh\x00-c\x00.*while : ([a-z]+\.[a-z]+);`)

// restarts are the pods of a world that restart in one way each, by name.
type restarts struct {
	*world
	counts map[string]int32  // by pod and container, as in crashed.main: how often it has restarted
	uids   map[string]string // by pod; "": not known yet
	former string            // the uid of the pod that was replaced last
	failed int               // removals so far
}

// restartOf are the ways in which pods restart; k is unique.
var restartOf = []struct {
	pod string
	do  func(r *restarts, k int)
}{
	{"crashed", func(r *restarts, _ int) {
		r.crash(r.running("crashed")["crashed"])
		r.counts["crashed.main"]++
	}},
	{"asked", func(r *restarts, _ int) {
		r.restart("asked")
		r.counts["asked.main"]++
		r.counts["asked.side"]++
	}},
	{"part", func(r *restarts, _ int) {
		r.restart("part/side")
		r.counts["part.side"]++
	}},
	{"replaced", func(r *restarts, k int) {
		r.write("replaced", fmt.Sprintf(pair, fmt.Sprintf("hostname: v%d", k), "replaced"))
		r.former, r.uids["replaced"] = r.uids["replaced"], ""
	}},
}

// restart asks for a restart and waits for it. That the runtime has been away may be told besides.
func (r *restarts) restart(what string) {
	r.Helper()
	out, err := r.agent.CLI(r.Context(), "restart", what, "--timeout", "60s")
	if err != nil || !strings.HasSuffix(out, "is restarted\n") {
		r.Errorf("restart %s: %v, %q", what, err, out)
	}
}

// survivesRestarts has pods restart and be replaced, and now and then the runtime or the agent, which
// end in order or are killed. After each time all is as it is to be: nothing runs twice or is left,
// restarts are counted, and no removal has failed but while the runtime was away.
func survivesRestarts(w *world, times int) {
	w.agent.Settings += "crashLoopBackOff: {firstContainerRestartPeriod: 100ms, maxContainerRestartPeriod: 1s}\n"
	r := &restarts{world: w, counts: map[string]int32{}, uids: map[string]string{"untouched": ""}}
	w.write("untouched", fmt.Sprintf(pair, "hostname: v", "untouched"))
	for _, way := range restartOf {
		r.uids[way.pod] = ""
		w.write(way.pod, fmt.Sprintf(pair, "hostname: v", way.pod))
	}
	w.start()
	r.settle()
	started := time.Now()
	for k := range times {
		way := restartOf[k%len(restartOf)]
		way.do(r, k)
		was := r.interrupt(k)
		r.settle()
		if failed := r.failedRemovals(); failed > r.failed {
			if was == "" {
				w.Errorf("restart %d, of %s: %d removals failed:\n%s", k, way.pod, failed-r.failed, r.removals())
			} else {
				w.Logf("restart %d, of %s: %d removals failed while %s", k, way.pod, failed-r.failed, was)
			}
			r.failed = failed
		}
	}
	w.Logf("%d restarts in %v: %d removals failed; counted: %v", times, time.Since(started).Round(time.Second), r.failed, r.counts)
	check(w.T, w.agent.Clear())
	w.until("the pods are gone", func() error { return w.empty(w.Context()) })
	boxes, err := w.rig.CRI.Sandboxes(w.Context(), "")
	check(w.T, err)
	containers, err := w.rig.CRI.Containers(w.Context(), "")
	check(w.T, err)
	if len(boxes)+len(containers) > 0 {
		w.Errorf("the runtime keeps %+v and %+v", boxes, containers)
	}
}

// interrupt restarts the runtime or the agent in some of the rounds, in the middle of what that
// does, and returns what it did; "": nothing, or nothing that fails a removal.
func (r *restarts) interrupt(k int) string {
	switch k % 20 {
	case 3:
		check(r.T, r.rig.Runtime.Restart(r.Context()))
		return "the runtime was restarted"
	case 8:
		check(r.T, r.agent.Stop())
		r.start()
	case 13:
		r.rig.Runtime.Kill()
		check(r.T, r.rig.Runtime.Start(r.Context()))
		return "the runtime was killed"
	case 18:
		r.kill()
		r.start()
	}
	return ""
}

// settle waits until all is as it is to be.
func (r *restarts) settle() {
	r.Helper()
	r.until("all is as it is to be", func() error {
		if out, err := r.agent.Says(r.Context(), "ps"); err != nil || strings.Contains(out, "FailedSync") {
			return fmt.Errorf("monopod ps: %w\n%s", err, out)
		}
		if err := r.wrongPrograms(); err != nil {
			return err
		}
		pods, err := r.agent.Pods(r.Context())
		if err != nil {
			return err
		}
		if len(pods) != len(r.uids) {
			return fmt.Errorf("%d pods are reported, want %d", len(pods), len(r.uids))
		}
		for _, p := range pods {
			if err := r.wrongPod(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// wrongPod compares what is reported of a pod, and what the runtime has of it, with what is to be.
func (r *restarts) wrongPod(p v1.Pod) error {
	pod := strings.TrimSuffix(p.Name, name(""))
	if !isReady(p.Status) || len(p.Status.ContainerStatuses) != 2 {
		return fmt.Errorf("%s is not ready: %+v", pod, p.Status)
	}
	boxes := r.sandboxes(pod)
	former := slices.DeleteFunc(slices.Clone(boxes), func(s rig.Sandbox) bool { return s.Ready })
	foreign := func(s rig.Sandbox) bool { return s.UID != string(p.UID) }
	if len(boxes) != len(former)+1 || len(former) > 1 || slices.ContainsFunc(boxes, foreign) { // the former has the last dead containers
		return fmt.Errorf("sandboxes of %s are %+v", pod, boxes)
	}
	run := map[string]int{}
	for _, c := range r.containers(pod) {
		run[c.Name+" "+c.State]++
		if run[c.Name+" Running"] > 1 || run[c.Name+" Exited"] > 1 {
			return fmt.Errorf("containers of %s are %+v", pod, r.containers(pod))
		}
	}
	if was := r.uids[pod]; string(p.UID) == r.former || was != "" && was != string(p.UID) {
		return fmt.Errorf("the uid of %s is %s, was %s; %s was replaced", pod, p.UID, was, r.former)
	}
	r.uids[pod] = string(p.UID)
	for _, c := range p.Status.ContainerStatuses {
		if want := r.counts[pod+"."+c.Name]; c.RestartCount != want || run[c.Name+" Running"] != 1 {
			return fmt.Errorf("%s of %s restarted %d times, want %d; of it run %d", c.Name, pod, c.RestartCount, want, run[c.Name+" Running"])
		}
	}
	return nil
}

// wrongPrograms compares what runs on this machine with what is to.
func (r *restarts) wrongPrograms() error {
	var got, want []string
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		b, _ := os.ReadFile(path)
		if is := pairProgram.FindStringSubmatch(string(b)); is != nil {
			got = append(got, is[1])
		}
	}
	for pod := range r.uids {
		want = append(want, pod+".main", pod+".side")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the programs %q run, want %q", got, want)
	}
	return nil
}

// failedRemovals counts what the agents have logged.
func (r *restarts) failedRemovals() int { return strings.Count(r.removals(), "\n") }

// removals are the lines of the agents' log about removals that failed.
func (r *restarts) removals() string {
	b, err := os.ReadFile(r.agent.Log)
	check(r.T, err)
	var lines strings.Builder
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "removal failed") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
