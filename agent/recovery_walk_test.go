package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// scenario is something that happens to one pod, and how it must come out
// whatever goes wrong meanwhile.
type scenario struct {
	name   string
	before string            // the manifest that runs at first; "": none
	happen func(*rig)        // nil: only the manifest changes
	after  string            // the manifest then
	runs   []string          // containers at the end
	phase  v1.PodPhase       // at the end; "": no pod
	counts map[string]uint32 // their attempts, whatever went wrong
	shares int64             // of the cpu of container c at the end; 0: any
	says   string            // what the log has of it
}

// walked is a pod with everything that takes steps: an init container, a
// sidecar, a pulled image, a grace.
func walked(name, image string, extra ...string) string {
	return manifest(name, image, append([]string{"terminationGracePeriodSeconds: 5",
		"initContainers: [{name: i, image: \"img:1\"}, {name: s, image: \"img:1\", restartPolicy: Always}]"}, extra...)...)
}

// withCPUs is such a pod whose container c asks for that many cpus.
func withCPUs(doc string, cpus int) string {
	return strings.Replace(doc, "{name: c,", fmt.Sprintf("{name: c, resources: {requests: {cpu: %d}},", cpus), 1)
}

// sameUID is such a pod with a uid that it keeps under another name.
func sameUID(name string) string {
	return strings.Replace(walked(name, "img:1"), "{name: "+name, "{name: "+name+", uid: u-1", 1)
}

var scenarios = []scenario{
	{name: "start", after: walked("web", "img:8"), runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 0, "s": 0}, says: `"sandbox created" pod=default/web-n attempt=0 reason="the pod is new"`},
	{name: "removal", before: walked("web", "img:1"), says: `"pod removed" pod=default/web-n reason="its manifest is gone"`},
	{name: "restart in place", before: walked("web", "img:1"), after: walked("web", "img:8"), runs: []string{"c", "s"}, phase: v1.PodRunning,
		counts: map[string]uint32{"c": 1, "s": 0}, says: `container=c attempt=1 reason="Container c definition changed, will be restarted"`},
	{name: "resize", before: withCPUs(walked("web", "img:1"), 1), after: withCPUs(walked("web", "img:1"), 2), runs: []string{"c", "s"}, phase: v1.PodRunning,
		counts: map[string]uint32{"c": 0, "s": 0}, shares: 2048, says: `"container resized" pod=default/web-n container=c`},
	{name: "replacement", before: walked("web", "img:1"), after: walked("web", "img:8", "hostname: other"), runs: []string{"c", "s"}, phase: v1.PodRunning,
		counts: map[string]uint32{"c": 0, "s": 0}, says: `"pod removed" pod=default/web-n reason="its manifest has changed"`},
	{name: "rename", before: sameUID("old"), after: sameUID("web"), runs: []string{"c", "s"}, phase: v1.PodRunning,
		counts: map[string]uint32{"c": 0, "s": 0}, says: `reason=UIDInUse`},
	{name: "crash", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.Exit("c", 3) },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 0}, says: `container=c attempt=1 reason="it exited with 3 (Error)"`},
	{name: "end of a job", before: walked("web", "img:1", "restartPolicy: Never"), after: walked("web", "img:1", "restartPolicy: Never"),
		happen: func(r *rig) { r.Exit("c", 0) }, phase: v1.PodSucceeded, says: `"pod ended" pod=default/web-n reason="all containers have succeeded"`},
	{name: "sandbox killed by others", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.KillSandbox("web-n") },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 1}, says: `"sandbox created" pod=default/web-n attempt=1 reason="its sandbox is dead"`},
	{name: "sandbox removed by others", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.RemoveSandboxBehindBack("web-n") },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 1}, says: `"sandbox created" pod=default/web-n attempt=0 reason="the pod is new"`},
	{name: "container removed by others", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.RemoveContainerBehindBack("c") },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 0}, says: `"container started" pod=default/web-n container=c attempt=1 reason="it has not been started yet"`},
	{name: "reboot", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.kill(); r.Reboot(); r.start() },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 1}, says: `"sandbox created" pod=default/web-n attempt=1 reason="its sandbox is dead"`},
	{name: "new machine, old root dir", before: walked("web", "img:1"), after: walked("web", "img:1"), happen: func(r *rig) { r.kill(); r.RemoveSandboxBehindBack("web-n"); r.start() },
		runs: []string{"c", "s"}, phase: v1.PodRunning, counts: map[string]uint32{"c": 1, "s": 1}, says: `"sandbox created" pod=default/web-n attempt=0 reason="the pod is new"`},
}

// troubles are what may happen at any one call; "" is none.
var troubles = []string{"fails", "hangs", "loses its answer", "finds the runtime restarting", "kills the agent before", "kills the agent after"}

func (r *rig) order(trouble string, nth int) *critest.Fault {
	f := critest.On(critest.Any).Nth(nth)
	switch trouble {
	case "fails":
		f.Fail(codes.Unknown, "the disk is full")
	case "hangs":
		f.Hang()
	case "loses its answer":
		f.LoseAnswer()
	case "finds the runtime restarting":
		f.Before(r.Restart)
	case "kills the agent before":
		f.Before(func() { r.life.cutOff() })
	case "kills the agent after":
		f.After(func() { r.life.cutOff() })
	}
	return r.Fault(f)
}

// Whatever call fails, hangs, loses its answer, sees the runtime restart or the
// agent die, each scenario comes out as if nothing had, and leaves no trace.
func TestEveryCallMayGoWrong(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calls := s.walk(t, "", 0)
			if len(calls) < 4 {
				t.Fatalf("only calls %v", calls)
			}
			for k, method := range calls {
				of := troubles
				if !changes(method) {
					of = []string{"fails", "hangs", "kills the agent after"} // others come to the same
				}
				for _, trouble := range of {
					if t.Failed() {
						return
					}
					s.walk(t, trouble, k+1)
				}
			}
		})
	}
}

// changes reports whether a call changes something in the runtime.
func changes(method string) bool {
	return slices.ContainsFunc([]string{"Run", "Create", "Start", "Stop", "Remove", "Pull"}, func(p string) bool { return strings.HasPrefix(method, p) })
}

// walk plays the scenario with trouble at the nth call from when it happens,
// and returns the methods of the calls that it took.
func (s *scenario) walk(t *testing.T, trouble string, nth int) (calls []string) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}
		r.AddImage("img:1")
		r.OnPull("img:8", time.Second, nil)
		r.Program("i", critest.ExitsAfter(time.Second, 0))
		r.Program("s", critest.Runs().OnTerm(2*time.Second, 0))
		r.start()
		defer func() { r.stop() }()
		r.wantThat(s.before)
		r.after(3 * time.Second)
		r.ForgetCalls()
		if trouble != "" {
			r.order(trouble, nth)
		}
		if s.happen != nil {
			s.happen(r)
		}
		r.wantThat(s.after)
		s.outlast(r, trouble)
		for _, c := range r.Calls() {
			calls = append(calls, c.Method)
		}
		s.check(r, trouble)
		r.ClearFaults()
		r.wantThat("")
		r.after(10 * time.Second)
		r.leavesNothing()
		if t.Failed() {
			t.Logf("%s: call %d %s; the agent's log:\n%s", s.name, nth, trouble, r.log)
		}
	})
	return calls
}

func (r *rig) wantThat(doc string) {
	if doc == "" {
		r.want()
	} else {
		r.want(doc)
	}
}

// outlast lets time pass until all is right for a while, and starts another
// agent where one was killed. The deadline of a call that hangs may be half an
// hour away.
func (s *scenario) outlast(r *rig, trouble string) {
	wait := time.Second
	for right, waited := 0, time.Duration(0); right < 2 && waited < 40*time.Minute; waited += wait {
		if r.after(wait); r.life.over.Load() {
			r.bury()
			r.start()
			r.wantThat(s.after)
		}
		if right++; !s.isRight(r) {
			right = 0
		}
		if trouble == "hangs" {
			wait = min(2*wait, time.Minute)
		}
		if trouble != "hangs" && waited > time.Minute {
			return
		}
	}
}

// isRight reports whether all runs that shall, and no more, and is reported so.
func (s *scenario) isRight(r *rig) bool {
	var want []string
	for _, c := range s.runs {
		want = append(want, "default/web-n/"+c)
	}
	for name, n := range s.counts {
		if c, _ := r.Container("web-n/" + name); c.Attempt < n {
			return false
		}
	}
	if c, _ := r.Container("web-n/c"); s.shares > 0 && c.Resources.GetCpuShares() != s.shares {
		return false
	}
	p, reported := r.store.Pod("default/web-n")
	return slices.Equal(r.Running(), want) && reported == (s.phase != "") && (!reported || p.Status.Phase == s.phase)
}

func (s *scenario) check(r *rig, trouble string) {
	r.Helper()
	if !s.isRight(r) {
		p, _ := r.store.Pod("default/web-n")
		r.Errorf("running %v, want %v; status %+v, want %s", r.Running(), s.runs, p, s.phase)
	}
	if twice := r.DoubleRunning(); len(twice) > 0 {
		r.Errorf("ran twice at a time: %v", twice)
	}
	for name, n := range s.counts {
		if c, _ := r.Container("web-n/" + name); c.Attempt != n {
			r.Errorf("%s has attempt %d, want %d", name, c.Attempt, n)
		}
	}
	if log := r.log.String(); trouble == "" && !strings.Contains(log, s.says) {
		r.Errorf("the log does not say %s", s.says)
	}
}

func (r *rig) leavesNothing() {
	r.Helper()
	if left := len(r.Sandboxes()) + len(r.Containers()); left != 0 {
		r.Errorf("%d things are left:\n%s", left, r.Runtime)
	}
	for _, of := range []string{"pods", "logs", "status/pods"} {
		if left, _ := filepath.Glob(filepath.Join(r.dir, of, "*")); len(left) > 0 {
			r.Errorf("left on disk: %v", left)
		}
	}
	if pods := r.store.Pods(); len(pods) > 0 {
		r.Errorf("status of %s is left", fmt.Sprint(pods[0].Name))
	}
}
