//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
)

// survivesKillsWhileStarting kills the agent again and again in the middle of
// starting ten pods, each time a little further: whenever some more of the steps,
// sandboxes and containers, are there.
//
// containerd breaks off the call that a client was making when it died, and marks a
// container whose start it broke off StartError, even if the program had come to
// run for a moment before containerd ended it. Such a container needs a successor;
// no other does, and no program may run twice at the same time.
func survivesKillsWhileStarting(w *world) {
	host := filepath.Join(w.agent.Dir, "host")
	check(w.T, os.Mkdir(host, 0o755))
	var pods []string
	for i := range 10 {
		pods = append(pods, fmt.Sprintf("p%d", i))
		w.write(pods[i], fmt.Sprintf(counted, pods[i], host))
	}
	for _, steps := range []int{1, 4, 8, 12, 16, 19} {
		check(w.T, w.agent.Launch())
		w.until(fmt.Sprintf("%d steps are done", steps), func() error {
			ss, err := w.rig.CRI.Sandboxes(w.Context(), w.ns)
			check(w.T, err)
			cs, err := w.rig.CRI.Containers(w.Context(), w.ns)
			check(w.T, err)
			if len(ss)+len(cs) < steps {
				return fmt.Errorf("%d are", len(ss)+len(cs))
			}
			return nil
		})
		w.kill()
	}
	w.start()
	w.running(pods...)
	w.barrier("after")
	for _, pod := range pods {
		w.runsOnce(pod, filepath.Join(host, pod))
	}
	// containerd may hold on to the task of a start that was broken off, and refuse
	// to remove the container until it has looked again.
	check(w.T, w.rig.Runtime.Restart(w.Context()))
	w.until("/healthz recovers", func() error { return w.agent.Healthy(w.Context()) })
}

// counted is a sleeper that adds a line to a file of the host when it starts.
const counted = `
  hostNetwork: true
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; echo started >> /host/%s; sleep 3600 & wait"]
    volumeMounts: [{name: host, mountPath: /host}]
  volumes:
  - {name: host, hostPath: {path: %s}}
`

// runsOnce fails unless the pod has one sandbox that is ready and its program runs
// once, and was started more often only where containerd broke a start off.
func (w *world) runsOnce(pod, file string) {
	w.Helper()
	w.until("one sandbox of "+pod, func() error {
		if ss := w.sandboxes(pod); len(ss) != 1 || !ss[0].Ready {
			return fmt.Errorf("sandboxes are %+v", ss)
		}
		return nil
	})
	running, attempt := 0, 0
	for _, c := range w.containers(pod) {
		s, err := w.rig.CRI.Status(w.Context(), c.ID)
		check(w.T, err)
		switch {
		case c.State == "Running":
			running, attempt = running+1, int(c.Attempt)
		case s.Reason == "StartError":
			w.Logf("%s, attempt %d was broken off: %s", pod, c.Attempt, s.Message)
		default:
			w.Errorf("%s: container %+v ended: %s", pod, c, s)
		}
	}
	b, err := os.ReadFile(file)
	check(w.T, err)
	if starts := strings.Count(string(b), "\n"); starts < 1 || starts > attempt+1 {
		w.Errorf("%s: started %d times in %d attempts", pod, starts, attempt+1)
	}
	if n := processes(file); running != 1 || n != 1 {
		w.Errorf("%s: %d containers and %d processes run, want one", pod, running, n)
	}
}

// processes counts those of counted pods that write to a file of that name.
func processes(file string) int {
	n := 0
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		b, _ := os.ReadFile(path)
		if strings.HasPrefix(string(b), "sh\x00-c\x00") && strings.Contains(string(b), ">> /host/"+filepath.Base(file)+";") {
			n++
		}
	}
	return n
}

func removesWhatWentWhileDown(w *world) {
	w.start()
	spec, finished := w.tidyPod()
	w.write("went", spec)
	w.write("stays", sleeper)
	stays := w.running("stays")
	w.running("went")
	w.kill()
	w.remove("went")
	w.start()
	w.until("its sandbox is gone", func() error { return none(w.sandboxes("went")) })
	if b, err := os.ReadFile(finished); err != nil || string(b) != "1\n" {
		w.Errorf("it was not stopped gracefully: %q, %v", b, err)
	}
	w.same(stays)
}

func leavesPodsOnSIGTERM(w *world) {
	w.agent.Listen = freeAddr(w)
	w.start()
	w.write("one", sleeper)
	before := w.running("one")
	w.ps("one", "Running")
	resp, err := http.Get("http://" + w.agent.Listen + "/pods")
	check(w.T, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.Errorf("/pods over TCP: %s", resp.Status)
	}
	if err := w.agent.Stop(); err != nil {
		w.Errorf("SIGTERM: %v, want exit code 0", err)
	}
	w.same(before)
	w.start()
	w.ps("one", "Running")
	w.barrier("after")
	w.same(before)
}

func recoversFromARuntimeCrash(w *world) {
	w.start()
	w.write("one", sleeper)
	w.write("two", sleeper)
	before := w.running("one", "two")
	said := logLines(w, w.rig.Runtime.Dir)

	w.rig.Runtime.Kill()
	w.until("/healthz fails", func() error {
		code, body, err := w.agent.Get(w.Context(), "/healthz")
		if err == nil && code != http.StatusInternalServerError {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	w.ps("runtime")
	w.write("meanwhile", sleeper)
	for range 3 { // the agent has tried again by then, many times
		w.manifests("has taken the new manifest", func(r report) bool { return len(r.Files) == 3 })
		time.Sleep(time.Second)
	}
	if n := logLines(w, w.rig.Runtime.Dir) - said; n != 1 {
		w.Errorf("the log speaks of the runtime %d times while it is down, want once", n)
	}

	check(w.T, w.rig.Runtime.Start(w.Context()))
	w.until("/healthz recovers", func() error { return w.agent.Healthy(w.Context()) })
	w.running("meanwhile")
	w.same(before)

	check(w.T, w.rig.Runtime.Restart(w.Context())) // as an upgrade does
	w.until("/healthz recovers", func() error { return w.agent.Healthy(w.Context()) })
	w.crash(before["one"])
	w.successor("one", 1)
	delete(before, "one")
	w.same(before)
}

// logLines counts the lines of the agent's log that hold text.
func logLines(w *world, text string) int {
	b, err := os.ReadFile(w.agent.Log)
	check(w.T, err)
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func refusesToStart(w *world) {
	w.start()
	file := filepath.Join(w.agent.Dir, "file")
	check(w.T, os.WriteFile(file, nil, 0o644))
	rows := []struct {
		name   string
		change func(a *rig.Agent)
		says   string
	}{
		{"a root that another monopod has", func(a *rig.Agent) { a.Root = w.agent.Root }, w.agent.Root},
		{"a root that is a file", func(a *rig.Agent) { a.Root = file }, file},
		{"a root that cannot be made", func(a *rig.Agent) { a.Root = filepath.Join(file, "root") }, file},
		{"a socket in a folder that cannot be made", func(a *rig.Agent) { a.Socket = "/proc/monopod/sock" }, "/proc/monopod/sock"},
		{"a socket that another monopod has", func(a *rig.Agent) { a.Socket = w.agent.Socket }, w.agent.Socket},
		{"an address that is none", func(a *rig.Agent) { a.Listen = "127.0.0.1:70000" }, "127.0.0.1:70000"},
		{"a cgroup that is not there", func(a *rig.Agent) { a.Cgroups = "/monopod-nowhere" }, "--cgroup-driver none"},
		{"a cgroup driver that nobody knows", func(a *rig.Agent) { a.Driver = "v3" }, "v3"},
		{"no folder of manifests", func(a *rig.Agent) { a.Manifests = "" }, "--manifests"},
	}
	for _, row := range rows {
		a, err := w.rig.NewAgent(w.agent.Binary)
		check(w.T, err)
		row.change(a)
		check(w.T, a.Launch())
		err = a.Wait(limit)
		a.Kill()
		said := strings.TrimSpace(rig.Tail(a.Log, 100))
		if err == nil || !strings.Contains(said, row.says) || strings.Contains(said, "\n") {
			w.Errorf("%s: ended with %v and said %q, want an error and one sentence about %q", row.name, err, said, row.says)
		}
	}
	check(w.T, w.agent.Healthy(w.Context()))
}

// freeAddr returns a loopback address that nobody listens on.
func freeAddr(w *world) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(w.T, err)
	defer l.Close()
	return l.Addr().String()
}
