//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"monopod/agent/e2e/rig"
)

// TestHandover moves pods between monopod and a kubelet: make test-handover.
func TestHandover(t *testing.T) {
	kubelet := os.Getenv("MONOPOD_KUBELET")
	if kubelet == "" {
		t.Skip("MONOPOD_KUBELET names no kubelet: make test-handover")
	}
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			for _, s := range []struct {
				name, ns string
				run      func(h *handover)
			}{
				{"IntoAKubeletAndBack", "into", intoAKubeletAndBack},
				{"FromAKubeletAndBack", "from", fromAKubeletAndBack},
				{"ControlPlaneIntoAKubeletAndBack", "kube-system", controlPlaneIntoAKubeletAndBack},
				{"ControlPlaneFromAKubeletAndBack", "kube-system", controlPlaneFromAKubeletAndBack},
			} {
				t.Run(s.name, func(t *testing.T) { s.run(newHandover(t, r, binary, kubelet, s.ns)) })
			}
		})
	}
}

// handover is a world with a kubelet beside its agent, of which one runs at a time.
type handover struct {
	*world
	binary  string
	kubelet *rig.Kubelet
	turn    int // counts the barriers
}

func newHandover(t *testing.T, r *rig.Rig, binary, kubelet, ns string) *handover {
	h := &handover{binary: kubelet}
	t.Cleanup(func() {
		if err := syscall.Unmount(h.agent.Root, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the root dir: %v", err)
		}
	})
	h.world = newWorld(t, r, binary, ns)
	h.agent.Driver = "cgroupfs"
	check(t, os.MkdirAll(h.agent.Root, 0o750)) // on a shared mount, as under systemd
	check(t, syscall.Mount(h.agent.Root, h.agent.Root, "", syscall.MS_BIND, ""))
	check(t, syscall.Mount("", h.agent.Root, "", syscall.MS_SHARED, ""))
	t.Cleanup(func() {
		if h.kubelet != nil {
			h.kubelet.Stop()
			if t.Failed() {
				t.Logf("end of the kubelet's log:\n%s", rig.Tail(h.kubelet.Log, 60))
			}
		}
	})
	return h
}

// plain are the pods that both run without a change; etcd is made like those of kubeadm.
var plain = map[string]string{
	"web": `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "echo kept > /e/f; echo kept > /m/f; mkdir -p /w && exec httpd -f -p 8080 -h /e"]
    ports: [{containerPort: 8080, name: http}]
    readinessProbe: {httpGet: {path: /f, port: http}, periodSeconds: 1}
    livenessProbe: {exec: {command: [cat, /e/f]}, periodSeconds: 1}
    startupProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 60}
    lifecycle: {postStart: {exec: {command: ["true"]}}, preStop: {exec: {command: ["true"]}}}
    resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 64Mi}}
    volumeMounts: [{name: e, mountPath: /e}, {name: h, mountPath: /h}, {name: m, mountPath: /m}, {name: d, mountPath: /d}, {name: e, mountPath: /s, subPath: sub}]
  volumes:
  - {name: e, emptyDir: {}}
  - {name: h, hostPath: {path: /tmp}}
  - {name: m, emptyDir: {medium: Memory}}
  - {name: d, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}`,
	"etcd": `
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 1
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sleep, "3600"]
    resources: {requests: {cpu: 10m, memory: 8Mi}}
    livenessProbe: {exec: {command: ["true"]}, failureThreshold: 8, periodSeconds: 1}
    startupProbe: {exec: {command: ["true"]}, failureThreshold: 24, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /var/lib/etcd}, {name: certs, mountPath: /etc/ssl/certs, readOnly: true}]
  volumes:
  - {name: data, hostPath: {path: ETCD, type: DirectoryOrCreate}}
  - {name: certs, hostPath: {path: /etc/ssl/certs, type: DirectoryOrCreate}}`,
	"ended": `
  restartPolicy: Never
  containers: [{name: main, image: registry.test/busybox:1, command: ["true"]}]`,
	"sidecar": `
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: init, image: registry.test/busybox:1, command: ["true"]}
  - {name: side, image: registry.test/busybox:1, command: [sleep, "3600"], restartPolicy: Always}
  containers: [{name: main, image: registry.test/busybox:1, command: [sleep, "3600"]}]`,
	"crasher": `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "echo x >> /e/n; [ $(wc -l < /e/n) -gt 3 ] && exec sleep 3600; exit 1"]
    volumeMounts: [{name: e, mountPath: /e}]
  volumes: [{name: e, emptyDir: {}}]`,
}

// referring is a pod that no kubelet takes as it is, and referred what it refers to.
const referring = `
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "echo kept > /data/f; exec sleep 3600"]
    env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]`

const referred = `apiVersion: v1
kind: ConfigMap
metadata: {name: m, namespace: %[1]s}
data: {a: 'costs $(A) $$1'}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %[1]s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// put writes the plain manifests into a folder, as an editor does.
func (h *handover) put(dir string) {
	h.Helper()
	check(h.T, os.MkdirAll(dir, 0o755))
	for name, spec := range plain {
		check(h.T, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(h.manifest(name, strings.ReplaceAll(spec, "ETCD", h.agent.Dir+"/etcd"))), 0o644))
	}
}

// settled waits until all pods have come as far as they do, and returns their containers.
func (h *handover) settled(pods int) map[string]rig.Container {
	h.Helper()
	h.until("all pods have come as far as they do", func() error {
		if err := h.trouble(); err != nil {
			return rig.Final(err)
		}
		run := h.all("Running")
		if len(run) != pods {
			return fmt.Errorf("%d containers run of %d: %+v", len(run), pods, run)
		}
		if c := h.newest("crasher"); c.Attempt < 3 || c.State != "Running" {
			return fmt.Errorf("the crasher is %+v", c)
		}
		if c := h.newest("ended"); c.State != "Exited" {
			return fmt.Errorf("the job is %+v", c)
		}
		return nil
	})
	return h.all("")
}

func (h *handover) trouble() error {
	if h.kubelet != nil {
		return h.kubelet.Ended()
	}
	return nil
}

// all returns the newest containers of each name by pod and name, but for the barriers; state ""
// is any.
func (h *handover) all(state string) map[string]rig.Container {
	h.Helper()
	all, err := h.rig.CRI.Containers(h.Context(), h.ns)
	check(h.T, err)
	out := map[string]rig.Container{}
	for _, c := range all {
		if (state == "" || c.State == state) && !strings.HasPrefix(c.Pod, "barrier") {
			out[c.Pod+"/"+c.Name] = c
		}
	}
	return out
}

func (h *handover) newest(pod string) (c rig.Container) {
	h.Helper()
	if all := h.containers(pod); len(all) > 0 {
		c = all[len(all)-1]
	}
	return c
}

// keeps fails unless the newest containers are those of before, in the same state, and no pod has
// two sandboxes.
func (h *handover) keeps(who string, before map[string]rig.Container) {
	h.Helper()
	now := h.all("")
	for name, c := range before {
		if now[name] != c {
			h.Errorf("%s: container %s is %+v, and was %+v", who, name, now[name], c)
		}
	}
	if len(now) != len(before) {
		h.Errorf("%s: there are containers of %d names, and were of %d", who, len(now), len(before))
	}
	for _, c := range before {
		if n := len(h.sandboxes(strings.TrimSuffix(c.Pod, "-"+rig.Node))); n != 1 {
			h.Errorf("%s: pod %s has %d sandboxes", who, c.Pod, n)
		}
	}
}

// passed waits until a pod that is written to a folder has run and gone again: who runs has looked
// at all pods since, and has removed what it does not know.
func (h *handover) passed(dir string) {
	h.Helper()
	h.turn++
	pod := fmt.Sprintf("barrier%d", h.turn)
	file := filepath.Join(dir, pod+".yaml")
	check(h.T, os.WriteFile(file, []byte(h.manifest(pod, sleeper)), 0o644))
	h.until(pod+" runs", func() error {
		if err := h.trouble(); err != nil {
			return rig.Final(err)
		}
		if c := h.newest(pod); c.State != "Running" {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	check(h.T, os.Remove(file))
	h.until(pod+" is gone", func() error {
		logs, err := filepath.Glob(filepath.Join(h.agent.PodLogs, h.ns+"_"+name(pod)+"_*")) // which a kubelet removes last
		if n := len(h.sandboxes(pod)); n+len(logs) > 0 {
			return fmt.Errorf("it has %d sandboxes and the logs %q", n, logs)
		}
		return err
	})
}

// crash kills the main process of a pod's container, and waits for its next attempt.
func (h *handover) crash(pod string) {
	h.Helper()
	before := h.newest(pod)
	pid, err := h.rig.CRI.Pid(h.Context(), before.ID)
	check(h.T, err)
	p, err := os.FindProcess(pid)
	check(h.T, err)
	check(h.T, p.Kill())
	h.until(pod+" runs again", func() error {
		if c := h.newest(pod); c.Attempt != before.Attempt+1 || c.State != "Running" {
			return fmt.Errorf("it is %+v, want the attempt after %+v", c, before)
		}
		return nil
	})
}

func (h *handover) startKubelet(dir string, flags ...string) {
	h.Helper()
	var err error
	h.kubelet, err = h.agent.NewKubelet(h.binary, dir, flags...)
	check(h.T, err)
	check(h.T, h.kubelet.Start())
}

func (h *handover) stopKubelet() {
	h.kubelet.Stop()
	h.kubelet = nil
}

// command runs a command with the flags of the agent, and returns what it says.
func (h *handover) command(name string, args ...string) (said string, err error) {
	h.Helper()
	flags := append([]string{name}, h.agent.Args()[2:]...)
	out, err := h.agent.Command(h.Context(), append(flags, args...)...).CombinedOutput()
	return string(out), err
}

// adopt takes over what the kubelet left.
func (h *handover) adopt() {
	h.Helper()
	check(h.T, h.agent.WriteSettings())
	for _, yes := range [][]string{nil, {"--yes"}} {
		out, err := h.command("adopt", yes...)
		h.Logf("monopod adopt %v:\n%s", yes, out)
		check(h.T, err)
	}
}

// kept fails unless the pods' volumes have what they wrote there.
func (h *handover) kept(who string) {
	h.Helper()
	for file, want := range map[string]string{
		"web/volumes/kubernetes.io~empty-dir/e/f": "kept\n",
		"web/volumes/kubernetes.io~empty-dir/m/f": "kept\n",
	} {
		pod, rest, _ := strings.Cut(file, "/")
		text, err := os.ReadFile(filepath.Join(h.agent.Root, "pods", h.newest(pod).UID, rest))
		if err != nil || string(text) != want {
			h.Errorf("%s: %s has %q (%v)", who, file, text, err)
		}
	}
}

// withdraw has the URL give no pod, and waits until those that it gave are gone: the server ends with
// the story.
func (h *handover) withdraw(served *page, pods ...string) {
	h.Helper()
	served.give(200, "apiVersion: v1\nkind: PodList\nitems: []\n")
	h.until("the pods of the URL are gone", func() error {
		for _, pod := range pods {
			if n := len(h.sandboxes(pod)); n > 0 {
				return fmt.Errorf("%s has %d sandboxes", pod, n)
			}
		}
		return nil
	})
}

// running is how many containers run of the plain pods.
const runningOfPlain = 5

func intoAKubeletAndBack(h *handover) {
	h.agent.Settings = "crashLoopBackOff: {maxContainerRestartPeriod: 1s}\nhttpCheckFrequency: 1s\n"
	h.put(h.agent.Manifests)
	h.write("referring", referring)
	h.writeFile("objects.yaml", fmt.Sprintf(referred, h.ns))
	byURL := h.manifest("byurl", sleeper) + "---\n" + h.manifest("byurltoo", sleeper)
	served := &page{code: 200, body: byURL}
	h.agent.Flags = append(h.agent.Flags, "--manifest-url", h.serve(served), "--manifest-url-header", "X-Key=open")
	h.start()
	before := h.settled(runningOfPlain + 3)

	dir := filepath.Join(h.agent.Dir, "export")
	out, err := h.command("export", dir)
	if err == nil || !strings.Contains(out, "claim") || !strings.Contains(out, "ConfigMap") {
		h.Errorf("what a kubelet refuses is not said (%v):\n%s", err, out)
	}
	dir = filepath.Join(h.agent.Dir, "inline")
	out, err = h.command("export", "--inline", "--for-kubelet", h.agent.Root, dir)
	h.Logf("monopod export:\n%s", out)
	check(h.T, err)

	check(h.T, h.agent.Stop())
	h.startKubelet(dir)
	h.passed(dir)
	h.keeps("the kubelet", before)
	h.kept("the kubelet")
	out, err = h.command("adopt", "--yes")
	if err == nil || !strings.Contains(out, "a kubelet runs") {
		h.Errorf("pods are adopted while a kubelet runs (%v):\n%s", err, out)
	}
	for _, pod := range []string{"crasher", "byurl"} {
		h.crash(pod)
		before[name(pod)+"/main"] = h.newest(pod)
	}
	h.passed(dir)
	h.stopKubelet()

	check(h.T, h.agent.Launch())
	err = h.agent.Wait(limit)
	if log := rig.Tail(h.agent.Log, 20); err == nil || !strings.Contains(log, "monopod adopt --yes") {
		h.Errorf("an agent starts with a container that a kubelet made (%v):\n%s", err, log)
	}
	h.keeps("an agent that refuses", before)
	served.give(500, "")
	out, err = h.command("adopt", "--yes")
	if err == nil || !strings.Contains(out, "answers 500") {
		h.Errorf("pods are adopted without what the URL gives (%v):\n%s", err, out)
	}
	served.give(200, byURL)
	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod", before)
	h.kept("monopod")
	h.crash("crasher")
	h.withdraw(served, "byurl", "byurltoo")
}

func fromAKubeletAndBack(h *handover) {
	h.agent.Settings = "crashLoopBackOff: {maxContainerRestartPeriod: 1s}\nhttpCheckFrequency: 1s\n"
	h.put(h.agent.Manifests)
	served := &page{code: 200, body: h.manifest("byurl", sleeper)}
	url := h.serve(served)
	h.agent.Flags = append(h.agent.Flags, "--manifest-url", url, "--manifest-url-header", "X-Key=open")
	urlFlags := []string{"--manifest-url", url, "--manifest-url-header", "X-Key:open"} // of a kubelet
	h.startKubelet(h.agent.Manifests, urlFlags...)
	before := h.settled(runningOfPlain + 1)
	h.stopKubelet()

	check(h.T, h.agent.WriteSettings())
	for _, row := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--node-name", "other"}, "--node-name " + rig.Node},
		{[]string{"--cgroup-driver", "systemd"}, "cgroupfs"},
		{[]string{"--root", filepath.Join(h.agent.Dir, "elsewhere")}, "--root"},
		{[]string{"--pod-logs", filepath.Join(h.agent.Dir, "elsewhere")}, "--pod-logs"},
	} {
		out, err := h.command("adopt", append(row.flags, "--yes")...)
		if err == nil || !strings.Contains(out, row.says) {
			h.Errorf("adopt %q (%v):\n%s", row.flags, err, out)
		}
	}

	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod", before)
	h.kept("monopod")
	h.crash("crasher")
	before[name("crasher")+"/main"] = h.newest("crasher")
	h.kill()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("the next agent", before)

	check(h.T, h.agent.Stop())
	h.startKubelet(h.agent.Manifests, urlFlags...)
	h.passed(h.agent.Manifests)
	h.keeps("the kubelet", before)
	h.kept("the kubelet")
	h.stopKubelet()
	h.adopt()
	h.start()
	h.passed(h.agent.Manifests)
	h.keeps("monopod again", before)
	h.withdraw(served, "byurl")
}
