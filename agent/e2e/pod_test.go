//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// sleeper is a pod that waits for SIGTERM.
const sleeper = `
  hostNetwork: true
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; echo hello; sleep 3600 & wait"]
`

func startsAPod(w *world) {
	w.start()
	w.write("one", sleeper)
	c := w.running("one")["one"]
	if c.Attempt != 0 || c.Name != "main" {
		w.Errorf("container %+v, want main, attempt 0", c)
	}

	s := w.status("one", "is ready", func(s v1.PodStatus) bool {
		return s.Phase == v1.PodRunning && len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].Ready
	})
	if id := s.ContainerStatuses[0].ContainerID; id != w.rig.Runtime.ContainerID(c.ID) {
		w.Errorf("container id in the status is %q, want %q", id, w.rig.Runtime.ContainerID(c.ID))
	}
	w.ps("one", "Running")
	w.until("its log holds what it printed", func() error {
		log := filepath.Join(w.agent.PodLogs, w.ns+"_"+name("one")+"_"+c.UID, "main", "0.log")
		b, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(b), " stdout F hello\n") {
			err = fmt.Errorf("%s holds %q", log, b)
		}
		return err
	})
	w.until("its status file says so too", func() error {
		b, err := os.ReadFile(filepath.Join(w.agent.Root, "status", "pods", w.ns+"_"+name("one")+".json"))
		if err != nil {
			return err
		}
		var p v1.Pod
		if err := json.Unmarshal(b, &p); err != nil {
			return rig.Final(err)
		}
		if p.Status.Phase != v1.PodRunning {
			return fmt.Errorf("phase %q", p.Status.Phase)
		}
		return nil
	})
}

func startsTwelveAtOnce(w *world) {
	w.start()
	var pods []string
	for i := range 12 {
		pods = append(pods, fmt.Sprintf("p%d", i))
		w.write(pods[i], sleeper)
	}
	w.same(w.running(pods...))
}

func runsInitContainersInOrder(w *world) {
	w.write("init", `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: first, image: "registry.test/busybox:1", command: [sleep, "0.3"]}
  - {name: second, image: "registry.test/busybox:1", command: ["true"]}
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sleep, "3600"]}
`)
	w.start()
	w.running("init")
	type span struct{ from, to int64 }
	at := map[string]span{}
	for _, c := range w.containers("init") {
		s, err := w.rig.CRI.Status(w.Context(), c.ID)
		check(w.T, err)
		at[c.Name] = span{s.StartedAt, s.FinishedAt}
	}
	first, second, main := at["first"], at["second"], at["main"]
	if first.to == 0 || first.to > second.from || second.to == 0 || second.to > main.from {
		w.Errorf("containers overlap or are missing: %+v", at)
	}
	w.phase("init", v1.PodRunning)
}

func stopsAtAFailedInitContainer(w *world) {
	w.start()
	w.write("init", `
  hostNetwork: true
  restartPolicy: Never
  initContainers:
  - {name: first, image: "registry.test/busybox:1", command: ["false"]}
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sleep, "3600"]}
`)
	w.phase("init", v1.PodFailed)
	if cs := w.containers("init"); len(cs) != 1 || cs[0].Name != "first" {
		w.Errorf("containers %+v, want only the init container", cs)
	}
}

func recoversAFailedInitContainer(w *world) {
	w.start()
	w.write("init", `
  hostNetwork: true
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  volumes: [{name: state, emptyDir: {}}]
  initContainers:
  - name: first
    image: "registry.test/busybox:1"
    command: [sh, -c, "test -e /state/tried || { touch /state/tried; exit 3; }"]
    volumeMounts: [{name: state, mountPath: /state}]
  - {name: second, image: "registry.test/busybox:1", command: ["true"]}
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sleep, "3600"]}
`)
	w.status("init", "is initialized at the second try", func(s v1.PodStatus) bool {
		if s.Phase != v1.PodRunning || len(s.InitContainerStatuses) != 2 {
			return false
		}
		first, second := s.InitContainerStatuses[0], s.InitContainerStatuses[1]
		last := first.LastTerminationState.Terminated
		return first.RestartCount == 1 && first.Ready && last != nil && last.ExitCode == 3 && second.RestartCount == 0 && second.Ready
	})
}

// The limits leave room for the OCI runtime, which is part of the container until that runs its program.
func tellsOfAnOOMKill(w *world) {
	w.start()
	w.write("hungry", `
  hostNetwork: true
  restartPolicy: Never
  containers:
  - name: main
    image: "registry.test/busybox:1"
    command: [tail, /dev/zero] # keeps a line that never ends
    resources: {limits: {memory: 64Mi}}
`)
	w.status("hungry", "is killed for its memory", wasKilledForMemory)
	w.ps("hungry: container main: OOMKilled: exit code 137, out of memory: the kernel killed its process tail: the pod used 6", "of its memory limit of 64 MiB")
	nested := w.tellsOfANestedOOMKill()
	w.toldOfKill("hungry") // which an agent that is killed may not have on disk yet
	if unified() {         // all processes of the container are killed with that one
		w.write("family", parent)
		w.status("family", "is killed with its child", wasKilledForMemory)
		w.toldOfKill("family")
	}
	w.kill()
	w.agent.Settings += "singleProcessOOMKill: true\n" // as with cgroup v1
	w.start()                                          // it has not read what the kernel said
	w.barrier("later")
	if nested != "" {
		w.ps(nested)
	}
	w.write("parent", parent)
	w.toldOfKill("parent")
	w.status("parent", "runs on", func(s v1.PodStatus) bool {
		return s.Phase == v1.PodRunning && s.ContainerStatuses[0].State.Running != nil && s.ContainerStatuses[0].RestartCount == 0
	})
}

// tellsOfANestedOOMKill has a process killed in a cgroup that a container made, and returns what is
// told of that; "": no container can make one here.
func (w *world) tellsOfANestedOOMKill() string {
	w.Helper()
	if !w.rig.Runtime.RunsPrivileged() {
		w.Log("NOT seen: a kill in a cgroup of the container's own: this machine lacks capabilities that CRI-O gives every privileged container")
		return ""
	}
	// With cgroup v1 a runtime learns of no kill in a cgroup below the container's: it reports an error.
	w.write("nested", fmt.Sprintf(`
  hostNetwork: true
  restartPolicy: Never
  containers:
  - name: main
    image: "registry.test/busybox:1"
    securityContext: {privileged: true}
    command:
    - sh
    - -c
    - |
      %s
      sh -c 'echo $$$$ > own/cgroup.procs; exec tail /dev/zero'
      exit $?
    resources: {limits: {memory: 64Mi}}
`, ownCgroup()))
	w.status("nested", "is killed for the memory of its child", wasKilledForMemory)
	const told = "nested: container main: OOMKilled: exit code 137, out of memory: the kernel killed its process tail: a cgroup in the container used 8"
	w.ps(told)
	return told
}

// parent is a pod whose program starts another one, which has no memory.
const parent = `
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: "registry.test/busybox:1"
    command: [sh, -c, "tail /dev/zero; sleep 3600"]
    resources: {limits: {memory: 64Mi}}
`

func wasKilledForMemory(s v1.PodStatus) bool {
	if s.Phase != v1.PodFailed || len(s.ContainerStatuses) != 1 {
		return false
	}
	t := s.ContainerStatuses[0].State.Terminated
	return t != nil && t.Reason == "OOMKilled" && t.ExitCode == 137
}

// toldOfKill waits for the event that the kernel killed tail in a pod.
func (w *world) toldOfKill(pod string) {
	w.Helper()
	w.until("the kernel's kill in "+pod+" is an event", func() error {
		out, err := w.agent.CLI(w.Context(), "events", "--for", w.ns+"/"+pod)
		if err == nil && !strings.Contains(out, "The kernel killed the process tail: it has reached its memory limit") {
			err = errors.New("there is no such event: " + out)
		}
		return err
	})
}

// ownCgroup is a script of a privileged container: it makes the cgroup own in the container's, for 8 MiB
// of memory, and goes to the folder in which that is.
func ownCgroup() string {
	if !unified() {
		return "cd /sys/fs/cgroup/memory && mkdir own && echo 8M > own/memory.limit_in_bytes"
	}
	return "cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup) && mkdir main own" + // a cgroup with others below it has no processes of its own
		" && for p in $(cat cgroup.procs); do echo $p > main/cgroup.procs; done; echo +memory > cgroup.subtree_control && echo 8M > own/memory.max"
}

func waitsForAnImage(w *world) {
	w.start()
	image := "registry.test/" + w.ns + "-" + w.rig.Runtime.Version + ":1"
	w.write("late", strings.Replace(sleeper, rig.Busybox, image, 1))
	w.status("late", "says that the image is missing", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil &&
			strings.Contains("ErrImagePull ImagePullBackOff", s.ContainerStatuses[0].State.Waiting.Reason)
	})
	check(w.T, w.rig.Registry.Copy(rig.Busybox, image))
	w.running("late")
}

// server is a web server that tells its host's name.
const server = `
  %s
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "mkdir /www; hostname > /www/index.html; exec httpd -f -p %d -h /www"]
    ports: [{containerPort: %d%s}]
`

func connectsPods(w *world) {
	w.start()
	w.write("own", fmt.Sprintf(server, "dnsPolicy: Default", 8080, 8080, ", hostPort: 28080"))
	w.write("host", fmt.Sprintf(server, "hostNetwork: true", 28081, 28081, ""))
	run := w.running("own", "host")
	own := w.status("own", "has an address", func(s v1.PodStatus) bool { return s.PodIP != "" }).PodIP
	ip, err := w.rig.CRI.IP(w.Context(), run["own"].Sandbox)
	check(w.T, err)
	if own != ip {
		w.Errorf("pod IP %s, want the sandbox's %s", own, ip)
	}

	w.answers("http://"+own+":8080/", name("own"))
	host, err := os.Hostname()
	check(w.T, err)
	w.answers("http://127.0.0.1:28081/", host)
	if w.rig.Network.Ports {
		w.answers("http://"+w.rig.Network.Gateway()+":28080/", name("own"))
	}
	for pod, shared := range map[string]bool{"own": false, "host": true} {
		pid, err := w.rig.CRI.Pid(w.Context(), run[pod].ID)
		check(w.T, err)
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		check(w.T, err)
		ours, err := os.Readlink("/proc/self/ns/net")
		check(w.T, err)
		if (theirs == ours) != shared {
			w.Errorf("%s: network namespace %s, the host's is %s", pod, theirs, ours)
		}
	}
}

// answers waits until a web server answers with a page.
func (w *world) answers(url, want string) {
	w.Helper()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	w.until(url+" answers", func() error {
		resp, err := client.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if got := strings.TrimSpace(string(b)); err == nil && got != want {
			err = rig.Final(errors.New("it is " + got + ", want " + want))
		}
		return err
	})
}
