//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
	"monopod/agent/managed"
)

// bare is a machine on which no runtime runs: the one that the rig has stands elsewhere, and only
// its images are used.
type bare struct {
	*testing.T
	rig    *rig.Rig
	binary string
	dir    string // TMPDIR of the runs
	image  string
	before []string // network interfaces
	rules  []string // of iptables, as podRules returns them
}

// TestManaged has monopod start a containerd of its own.
func TestManaged(t *testing.T) {
	for _, endpoint := range []string{"/run/containerd/containerd.sock", "/run/crio/crio.sock"} {
		if _, err := os.Stat(endpoint); err == nil {
			t.Skipf("this machine has a runtime at %s", endpoint)
		}
	}
	if slices.Contains(rig.Tested(), rig.CRIO) {
		t.Skip("NOT run: the runtime that an agent brings along is a containerd")
	}
	binary := monopod(t)
	removesFirewall(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			folder, err := rig.Binaries(version)
			check(t, err)
			t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
			for _, s := range []struct {
				name string
				tell func(b *bare)
			}{
				{"RunsOnceWithoutARuntime", runsOnceWithoutARuntime},
				{"RemovesWhatAKilledRunLeft", removesWhatAKilledRunLeft},
				{"KeepsPodsOfARun", keepsPodsOfARun},
				{"TellsWhatIsMissing", tellsWhatIsMissing},
				{"KeepsARuntimeRunning", keepsARuntimeRunning},
				{"StartsNoRuntimeOnAFullDisk", startsNoRuntimeOnAFullDisk},
			} {
				t.Run(s.name, func(t *testing.T) { s.tell(newBare(t, r, binary)) })
			}
		})
	}
}

// removesFirewall removes the chains that the CNI plugin firewall makes with the first pod, and
// never removes, unless they were there.
func removesFirewall(t *testing.T) {
	if exec.Command("iptables", "-S", "CNI-FORWARD").Run() == nil {
		return
	}
	t.Cleanup(func() {
		_ = exec.Command("sh", "-c", `iptables -D FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
			for c in CNI-FORWARD CNI-ADMIN; do iptables -F $c; done; for c in CNI-FORWARD CNI-ADMIN; do iptables -X $c; done`).Run()
	})
}

func newBare(t *testing.T, r *rig.Rig, binary string) *bare {
	dir, err := os.MkdirTemp(r.Dir, "b") // short, as paths of sockets must be
	check(t, err)
	return &bare{t, r, binary, dir, r.Registry.Addr + "/busybox:1", links(t), podRules()}
}

// podRules returns the rules that the CNI plugins make for pods of managed runtimes.
func podRules() (found []string) {
	rules, _ := exec.Command("sh", "-c", "iptables -S; iptables -t nat -S").Output()
	for line := range strings.Lines(string(rules)) {
		if strings.Contains(line, `\"monopod`) || strings.Contains(line, "-A CNI-FORWARD -s") {
			found = append(found, line)
		}
	}
	return found
}

func links(t *testing.T) (names []string) {
	all, err := net.Interfaces()
	check(t, err)
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// job is a pod of one container whose script runs once.
func (b *bare) job(name, script string, host bool) string {
	path := filepath.Join(b.dir, name+".yaml")
	text := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  hostNetwork: %v
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: %s
    command: [sh, -c, %q]
    volumeMounts: [{name: o, mountPath: /o}]
  volumes: [{name: o, hostPath: {path: %s}}]
`, name, host, b.image, script, b.dir)
	check(b.T, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// command is monopod once, maybe below another program.
func (b *bare) command(wrapper []string, args ...string) (*exec.Cmd, *screen) {
	out := &screen{}
	argv := slices.Concat(wrapper, []string{b.binary, "once"}, args)
	cmd := exec.Command(argv[0], argv[1:]...)
	check(b.T, os.MkdirAll(b.tmp(), 0o755))
	cmd.Env = append(os.Environ(), "TMPDIR="+b.tmp())
	cmd.Stdout, cmd.Stderr = out, out
	b.Cleanup(func() { // of a test that has failed
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
		}
		b.killAll()
	})
	return cmd, out
}

func (b *bare) tmp() string { return filepath.Join(b.dir, "t") }

// once runs pods to their end, and returns what is printed.
func (b *bare) once(code int, wrapper []string, args ...string) string {
	b.Helper()
	cmd, out := b.command(wrapper, args...)
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.Fatalf("exit code %d, want %d:\n%s", got, code, out)
	}
	return out.String()
}

// says checks what was printed.
func (b *bare) says(text string, words ...string) {
	b.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.Errorf("does not say %q:\n%s", w, text)
		}
	}
}

// awaitFile waits for a file that a container makes in /o.
func (b *bare) awaitFile(name string, out *screen) {
	b.Helper()
	if err := rig.Until(b.Context(), limit, func() error { _, err := os.Stat(filepath.Join(b.dir, name)); return err }); err != nil {
		b.Fatalf("%v:\n%s", err, out)
	}
}

// isClean checks that no process, mount, network interface, cgroup or file of a run is left.
func (b *bare) isClean() {
	b.Helper()
	var left []string
	files, _ := filepath.Glob(b.tmp() + "/*")
	left = append(left, files...)
	left = append(left, b.processes()...)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, b.tmp()+"/") {
			left = append(left, line)
		}
	}
	for _, name := range links(b.T) {
		if !slices.Contains(b.before, name) {
			left = append(left, "interface "+name)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/monopod-once-*", "/sys/fs/cgroup/*/monopod-once-*"} {
		cgroups, _ := filepath.Glob(pattern)
		left = append(left, cgroups...)
	}
	for _, rule := range podRules() {
		if !slices.Contains(b.rules, rule) {
			left = append(left, rule)
		}
	}
	if len(left) > 0 {
		b.Errorf("left:\n%s", strings.Join(left, "\n"))
	}
}

// processes are those of the runs: by their arguments, or because they run in a network
// namespace of their own.
func (b *bare) processes() (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		text, _ := os.ReadFile(file)
		if strings.Contains(string(text), b.tmp()+"/") {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// killAll kills what a failed test has left of containerds, whose pods the rig removes.
func (b *bare) killAll() {
	all, _ := filepath.Glob(b.tmp() + "/*/" + managed.Folder + "/process.json")
	for _, file := range all {
		r, err := managed.New(managed.Settings{Root: filepath.Dir(filepath.Dir(file)), Log: slog.New(slog.DiscardHandler)})
		check(b.T, err)
		check(b.T, r.Remove(context.Background()))
	}
}

// A pod with a network of its own serves a port, which its other container reaches on localhost
// and the machine by a host port.
func runsOnceWithoutARuntime(b *bare) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(b.T, err)
	port := free.Addr().(*net.TCPAddr).Port
	check(b.T, free.Close())
	path := filepath.Join(b.dir, "web.yaml")
	check(b.T, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[1]s
    command: [sh, -c, "mkdir /www; echo served >/www/index.html; httpd -p 8080 -h /www; until [ -e /o/end ]; do sleep 0.1; done"]
    ports: [{containerPort: 8080, hostPort: %[2]d}]
    volumeMounts: [{name: o, mountPath: /o}]
  - name: main
    image: %[1]s
    command: [sh, -c, "until wget -q -O- http://127.0.0.1:8080/; do sleep 0.1; done; touch /o/reached; until [ -e /o/end ]; do sleep 0.1; done; ps; exit 0"]
    volumeMounts: [{name: o, mountPath: /o}]
  volumes: [{name: o, hostPath: {path: %[3]s}}]
`, b.image, port, b.dir), 0o644))
	cmd, out := b.command(nil, path)
	check(b.T, cmd.Start())
	b.awaitFile("reached", out)
	if b.rig.Network.Ports {
		check(b.T, rig.Until(b.Context(), limit, func() error {
			answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err == nil && string(text) != "served\n" {
				err = fmt.Errorf("the host port answers %q", text)
			}
			return err
		}))
	}
	check(b.T, os.WriteFile(filepath.Join(b.dir, "end"), nil, 0o644))
	if err := cmd.Wait(); err != nil {
		b.Errorf("%v:\n%s", err, out)
	}
	b.says(out.String(), "web/main   | served", "/pause", "runtime: a containerd of its own, started for this run: there is no /run/containerd/containerd.sock")
	b.isClean()
}

// A run that is killed, alone or with its runtime, leaves much; the next run removes it.
func removesWhatAKilledRunLeft(b *bare) {
	for _, both := range []bool{false, true} {
		_ = os.Remove(filepath.Join(b.dir, "runs"))
		cmd, out := b.command(nil, b.job("long", "touch /o/runs; sleep 3600", false))
		check(b.T, cmd.Start())
		b.awaitFile("runs", out)
		check(b.T, cmd.Process.Kill())
		_ = cmd.Wait()
		roots, _ := filepath.Glob(b.tmp() + "/monopod-once-*")
		if len(roots) != 1 {
			b.Fatalf("folders %v, want one", roots)
		}
		if both {
			check(b.T, syscall.Kill(runtimePID(b.T, roots[0]), syscall.SIGKILL))
		}
		text := b.once(0, nil, b.job("short", "echo done", true))
		b.says(text, "a previous run in "+roots[0]+" was killed", "short/main | done")
		b.isClean()
	}
}

// runtimePID is the pid of the containerd in a root dir.
func runtimePID(t *testing.T, root string) int {
	t.Helper()
	var p struct{ PID int }
	text, err := os.ReadFile(filepath.Join(root, managed.Folder, "process.json"))
	check(t, err)
	check(t, json.Unmarshal(text, &p))
	return p.PID
}

// --keep leaves the pods and the runtime, which the next run leaves alone and --remove removes.
func keepsPodsOfARun(b *bare) {
	text := b.once(0, nil, "--until", "ready", "--keep", b.job("kept", "touch /o/kept; sleep 3600", false))
	b.says(text, "the pods keep running")
	roots, _ := filepath.Glob(b.tmp() + "/monopod-once-*")
	if len(roots) != 1 {
		b.Fatalf("folders %v, want one:\n%s", roots, text)
	}
	pid := runtimePID(b.T, roots[0])
	b.says(b.once(0, nil, b.job("other", "echo beside", true)), "other/main | beside", "--remove "+roots[0])
	if now := runtimePID(b.T, roots[0]); now != pid || syscall.Kill(pid, 0) != nil {
		b.Errorf("the runtime of the kept pods is gone")
	}
	b.once(0, nil, "--remove", roots[0])
	b.isClean()
}

// tellsWhatIsMissing tries machines that lack something.
func tellsWhatIsMissing(b *bare) {
	hidden := filepath.Join(b.dir, "empty")
	check(b.T, os.Mkdir(hidden, 0o755))
	without := func(dirs ...string) []string {
		script := ""
		for _, d := range dirs {
			script += fmt.Sprintf("[ ! -d %[1]s ] || mount --bind %[2]s %[1]s && ", d, hidden)
		}
		return []string{"unshare", "--mount", "sh", "-c", script + `exec "$@"`, "sh"}
	}
	bareNet := without("/usr/lib/cni", "/opt/cni/bin")
	b.says(b.once(0, bareNet, b.job("host", "echo on the host", true)), "host/main | on the host")
	b.isClean()
	b.says(b.once(124, bareNet, "--timeout", "10s", b.job("net", "echo never", false)), "apt-get install containernetworking-plugins")
	b.isClean()

	hostJob := b.job("job", "echo never", true)
	b.says(b.once(125, []string{"setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"}, hostJob), "CAP_SYS_ADMIN", "docker run --privileged")
	readOnly := []string{"unshare", "--mount", "sh", "-c", `for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $m || exit 9; done; exec "$@"`, "sh"}
	b.says(b.once(125, readOnly, hostJob), "mounted read-only", "docker run --privileged")
	b.says(b.once(125, nil, "--runtime-endpoint", "/run/none.sock", hostJob), "no runtime answers on /run/none.sock")
	b.says(b.once(2, nil, "--managed-runtime", "--runtime-endpoint", "/run/none.sock", hostJob), "--managed-runtime and --runtime-endpoint exclude each other")
	b.isClean()
}

// On a disk on which nothing can be written any more the next agent takes the runtime over. One that dies there is
// started again once there is room, and finds its container: before, the pod would have got another one beside it.
func startsNoRuntimeOnAFullDisk(b *bare) {
	root := filepath.Join(b.dir, "r")
	check(b.T, os.Mkdir(root, 0o755))
	check(b.T, syscall.Mount("tmpfs", root, "tmpfs", 0, "size=64m"))
	b.Cleanup(func() { check(b.T, syscall.Unmount(root, 0)) })
	w := b.managedAgent()
	id, pid := b.containerID(w), runtimePID(b.T, root)
	full := filepath.Join(root, "full")
	file, err := os.Create(full)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	check(b.T, file.Close())
	if !errors.Is(err, syscall.ENOSPC) {
		b.Fatal(err)
	}
	w.kill()
	w.start()
	if now := b.containerID(w); now != id || runtimePID(b.T, root) != pid {
		b.Errorf("container %s, not %s; runtime %d, not %d", now, id, runtimePID(b.T, root), pid)
	}
	check(b.T, syscall.Kill(pid, syscall.SIGKILL))
	check(b.T, rig.Until(b.Context(), limit, func() error {
		if log := rig.Tail(w.agent.Log, 1000); !strings.Contains(log, "managed runtime does not start") || !strings.Contains(log, "KiB are left on the disk of") {
			return errors.New("the log does not say that there is no room")
		}
		return nil
	}))
	check(b.T, os.Remove(full))
	b.isRestarted(w, pid)
	if now := b.containerID(w); now != id {
		b.Errorf("the container is another one: %s, not %s", now, id)
	}
	b.endsPods(w)
}

// managedAgent starts an agent with a runtime of its own and a pod, web.
func (b *bare) managedAgent() *world {
	a, err := b.rig.NewAgent(b.binary)
	check(b.T, err)
	w := &world{b.T, b.rig, a, "managed", b.Context()}
	a.Root, a.Endpoint, a.Flags = filepath.Join(b.dir, "r"), "", []string{"--managed-runtime"}
	b.Cleanup(func() {
		check(b.T, a.Close())
		r, err := managed.New(managed.Settings{Root: a.Root, Log: slog.New(slog.DiscardHandler)})
		check(b.T, err)
		check(b.T, r.Remove(context.Background()))
		b.isClean()
	})
	w.write("web", "  terminationGracePeriodSeconds: 1\n  containers:\n  - {name: main, image: "+b.image+", command: [sleep, '3600']}")
	w.start()
	return w
}

// isRestarted waits until the runtime is another process than this, which was killed, and answers.
func (b *bare) isRestarted(w *world, pid int) {
	b.Helper()
	err := rig.Until(b.Context(), limit, func() error {
		if now := runtimePID(b.T, w.agent.Root); now == pid || syscall.Kill(now, 0) != nil {
			return errors.New("the runtime is not started again")
		}
		_, text, err := w.agent.Get(b.Context(), "/metrics")
		if err == nil && (!strings.Contains(text, "monopod_managed_runtime_restarts_total 1\n") || !strings.Contains(text, "monopod_runtime_up 1\n")) {
			err = errors.New("the metrics do not count it")
		}
		return err
	})
	if err != nil {
		b.Fatalf("%v:\n%s", err, rig.Tail(w.agent.Log, 20))
	}
}

// endsPods removes the pods of the agent, and waits until they are gone.
func (b *bare) endsPods(w *world) {
	b.Helper()
	check(b.T, w.agent.Clear())
	check(b.T, rig.Until(b.Context(), limit, func() error {
		pods, err := w.agent.Pods(b.Context())
		if err == nil && len(pods) > 0 {
			err = errors.New("the pod does not go")
		}
		return err
	}))
}

// The runtime of an agent that keeps pods running is started again when it dies, and survives the
// agent; containers survive both.
func keepsARuntimeRunning(b *bare) {
	w := b.managedAgent()
	a := w.agent
	id := b.containerID(w)
	pid := runtimePID(b.T, a.Root)
	if log := rig.Tail(a.Log, 1000); strings.Contains(log, "level=ERROR") || !strings.Contains(log, "runtime answers") {
		b.Errorf("a start without a fault says:\n%s", log)
	}

	check(b.T, syscall.Kill(pid, syscall.SIGKILL))
	b.isRestarted(w, pid)
	if now := b.containerID(w); now != id {
		b.Errorf("the container is another one: %s, not %s", now, id)
	}

	pid = runtimePID(b.T, a.Root)
	w.kill()
	check(b.T, syscall.Kill(pid, 0))
	w.start()
	if now := b.containerID(w); now != id || runtimePID(b.T, a.Root) != pid {
		b.Errorf("container %s, not %s; runtime %d, not %d", now, id, runtimePID(b.T, a.Root), pid)
	}
	check(b.T, rig.Until(b.Context(), limit, func() error {
		if !strings.Contains(rig.Tail(a.Log, 1000), "managed runtime is taken over") {
			return errors.New("the log does not say that the runtime is taken over")
		}
		return nil
	}))
	b.endsPods(w)
}

// containerID waits until the only pod is ready, and returns the id of its container.
func (b *bare) containerID(w *world) (id string) {
	b.Helper()
	err := rig.Until(b.Context(), limit, func() error {
		pods, err := w.agent.Pods(b.Context())
		if err != nil {
			return err
		}
		if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 || !pods[0].Status.ContainerStatuses[0].Ready {
			return errors.New("the pod is not ready")
		}
		id = pods[0].Status.ContainerStatuses[0].ContainerID
		return nil
	})
	if err != nil {
		b.Fatalf("%v\n%s", err, rig.Tail(w.agent.Log, 50))
	}
	return id
}
