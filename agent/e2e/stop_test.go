//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// leaves removes a pod and returns how long it took to go.
func (w *world) leaves(pod string) time.Duration {
	w.Helper()
	started := time.Now()
	w.remove(pod)
	w.until(pod+" is gone", func() error { return none(w.sandboxes(pod)) })
	return time.Since(started)
}

// cutsALongPreStop gives a hook the pod's grace, and the program two seconds.
func cutsALongPreStop(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("long", "  hostNetwork: true\n  terminationGracePeriodSeconds: 3\n  containers:\n"+
		noter("main", untilTerm, "    lifecycle: {preStop: {exec: {command: [sh, -c, 'echo hook >> /notes/said; sleep 3600; echo done >> /notes/said']}}}\n")+notesVolume(dir))
	w.running("long")
	if took := w.leaves("long"); took < 3*time.Second {
		w.Errorf("it was gone after %s, want its whole grace", took)
	}
	w.said(file, "hook", "term")
}

// killsWhatIgnoresSIGTERM removes a pod whose program does not care, and a pod
// without a process tree of its own whose program leaves another one behind.
func killsWhatIgnoresSIGTERM(w *world) {
	w.start()
	const deaf = "trap '' TERM; echo $$$$ > /notes/%s; while :; do sleep 0.1; done"
	dir, file := w.notes()
	w.write("deaf", "  hostNetwork: true\n  hostPID: true\n  terminationGracePeriodSeconds: 2\n  containers:\n"+
		noter("main", fmt.Sprintf(deaf, "main"), "")+notesVolume(dir))
	w.write("leaver", "  hostNetwork: true\n  hostPID: true\n  terminationGracePeriodSeconds: 2\n  containers:\n"+
		noter("main", "setsid sh -c '"+strings.ReplaceAll(fmt.Sprintf(deaf, "left"), "'", `'"'"'`)+"' & "+untilTerm, "")+notesVolume(dir))
	w.running("deaf", "leaver")
	pids := map[string]int{}
	for _, name := range []string{"main", "left"} {
		w.until(name+" runs", func() error {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil {
				pids[name], err = strconv.Atoi(strings.TrimSpace(string(b)))
			}
			return err
		})
		if !runs(pids[name]) {
			w.Fatalf("process %d of %s does not run", pids[name], name)
		}
	}
	if took := w.leaves("deaf"); took < 2*time.Second {
		w.Errorf("it was gone after %s, want its grace", took)
	}
	w.leaves("leaver")
	w.said(file, "term")
	for name, pid := range pids {
		w.until(name+" has ended", func() error {
			if runs(pid) {
				return fmt.Errorf("process %d runs", pid)
			}
			return nil
		})
	}
}

// runs reports whether a process of that id is there, not only as a zombie.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// endsStraysWithTheCgroup puts a process that no runtime knows of into a pod's
// cgroup: it ends with the pod.
func endsStraysWithTheCgroup(w *world) {
	w.start()
	w.write("host", sleeper)
	uid := w.running("host")["host"].UID
	pod := filepath.Join(w.hierarchies("cpu")[0], w.agent.Cgroups, "kubepods", "besteffort", "pod"+uid)
	stray := filepath.Join(pod, "stray")
	check(w.T, os.Mkdir(stray, 0o755))
	cmd := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	check(w.T, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w.Cleanup(func() { cmd.Process.Kill() })
	check(w.T, os.WriteFile(filepath.Join(stray, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644))
	w.leaves("host")
	select {
	case <-ended:
		if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			w.Errorf("it ended with %s", cmd.ProcessState)
		}
	case <-time.After(limit):
		w.Error("it runs on")
	}
}

// endsASidecarWithItsJob ends the sidecar after the job, and the pod with the job's outcome.
func endsASidecarWithItsJob(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("job", "  hostNetwork: true\n  restartPolicy: Never\n  terminationGracePeriodSeconds: 5\n  initContainers:\n"+
		noter("sidecar", strings.Replace(untilTerm, "exit 0", "exit 3", 1), "    restartPolicy: Always\n")+"  containers:\n"+
		noter("main", "sleep 1; echo work >> /notes/said", "")+notesVolume(dir))
	s := w.phase("job", v1.PodSucceeded)
	w.said(file, "work", "term")
	if t := s.InitContainerStatuses[0].State.Terminated; t == nil || t.ExitCode != 3 {
		w.Errorf("the sidecar is %+v", s.InitContainerStatuses[0].State)
	}
}

// stopsSidecarsLast removes a pod whose sidecar must outlive the program.
func stopsSidecarsLast(w *world) {
	w.start()
	dir, file := w.notes()
	// Of a grace that no test waits for, so that none of them is killed at its end.
	w.write("order", "  hostNetwork: true\n  terminationGracePeriodSeconds: 600\n  initContainers:\n"+
		noter("one", "trap 'echo one >> /notes/said; exit 0' TERM; sleep 3600 & wait", "    restartPolicy: Always\n")+
		noter("two", "trap 'echo two >> /notes/said; exit 0' TERM; sleep 3600 & wait", "    restartPolicy: Always\n")+"  containers:\n"+
		noter("main", "trap 'sleep 1; echo main >> /notes/said; exit 0' TERM; sleep 3600 & wait", "")+notesVolume(dir))
	w.running("order")
	w.leaves("order")
	w.said(file, "main", "two", "one")
}

// goesOnWithARemoval kills the agent in the middle of a pod's grace: the next one
// grants the rest of it, and not all of it again.
func goesOnWithARemoval(w *world) {
	w.start()
	dir, file := w.notes()
	const grace, down = 15 * time.Second, 10 * time.Second
	w.write("slow", "  hostNetwork: true\n  terminationGracePeriodSeconds: 15\n  containers:\n"+
		noter("main", "trap 'echo term >> /notes/said' TERM; while :; do sleep 0.1; done", "")+notesVolume(dir))
	w.running("slow")
	started := time.Now()
	w.remove("slow")
	w.until("it was told to end", func() error { _, err := os.Stat(file); return err })
	w.kill()
	time.Sleep(down)
	again := time.Now()
	w.start()
	w.until("slow is gone", func() error { return none(w.sandboxes("slow")) })
	if took, rest := time.Since(started), time.Since(again); took < grace || rest >= grace {
		w.Errorf("it took %s, %s of it under the next agent, want its grace of %s", took, rest, grace)
	}
}

// endsAtADeadline ends a pod at its deadline although the agent dies before it.
func endsAtADeadline(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("dead", "  hostNetwork: true\n  activeDeadlineSeconds: 4\n  terminationGracePeriodSeconds: 5\n  containers:\n"+
		noter("main", untilTerm, "")+notesVolume(dir))
	w.running("dead")
	w.kill()
	w.start()
	ended := func(s v1.PodStatus) bool {
		return s.Phase == v1.PodFailed && s.Reason == "DeadlineExceeded" && strings.Contains(s.Message, "longer than the specified deadline")
	}
	w.status("dead", "ends", ended)
	w.said(file, "term")
	before := w.containers("dead")
	check(w.T, w.agent.Stop())
	w.start()
	w.barrier("after")
	w.status("dead", "has ended", ended)
	if now := w.containers("dead"); len(now) != 1 || now[0] != before[0] {
		w.Errorf("containers %+v, want %+v", now, before)
	}
}

// restartsAllContainers follows a rule that restarts the whole pod in its sandbox.
func restartsAllContainers(w *world) {
	w.start()
	dir, file := w.notes()
	w.write("all", "  hostNetwork: true\n  terminationGracePeriodSeconds: 5\n  initContainers:\n"+
		noter("init", "echo init >> /notes/said", "")+"  containers:\n"+
		noter("main", untilTerm, "")+
		noter("asks", "while [ ! -e /notes/may ]; do sleep 0.1; done; rm /notes/may; exit 42",
			"    restartPolicy: Never\n    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]\n")+notesVolume(dir))
	first := w.running("all")["all"]
	check(w.T, os.WriteFile(filepath.Join(dir, "may"), nil, 0o644))
	second := w.successor("all", 1)
	w.said(file, "init", "term", "init")
	if second.Sandbox != first.Sandbox {
		w.Errorf("it is in sandbox %s, was in %s", second.Sandbox, first.Sandbox)
	}
	w.status("all", "runs again", ready)
}
