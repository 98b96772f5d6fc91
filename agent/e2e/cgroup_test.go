//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"monopod/agent/e2e/rig"
)

// cgroupMount is where cgroups are, v1 in a folder for each controller.
const cgroupMount = "/sys/fs/cgroup"

// asking is a sleeper that asks for resources.
func asking(resources string) string {
	return sleeper + "    resources: " + resources + "\n"
}

// placesPodsInCgroups checks names and values, that programs are in the cgroups,
// that all goes with the pod, and that other's cgroups stay.
func placesPodsInCgroups(w *world) {
	w.start()
	w.write("all", asking("{requests: {cpu: 500m, memory: 64Mi}, limits: {cpu: 500m, memory: 64Mi}}"))
	w.write("some", asking("{requests: {cpu: 100m}, limits: {cpu: 400m, memory: 96Mi}}"))
	w.write("open", asking("{requests: {cpu: 200m}}"))
	w.write("none", sleeper)
	run := w.running("all", "some", "open", "none")
	for _, row := range []struct {
		pod, level       string
		shares, weight   string
		quota, max       string
		memory1, memory2 string
	}{
		{"all", "", "512", "20", "50000", "50000 100000", "67108864", "67108864"},
		{"some", "burstable", "102", "4", "40000", "40000 100000", "100663296", "100663296"},
		{"open", "burstable", "204", "8", "-1", "max 100000", "9223372036854771712", "max"},
		{"none", "besteffort", "2", "1", "-1", "max 100000", "9223372036854771712", "max"},
	} {
		path := filepath.Join(w.agent.Cgroups, "kubepods", row.level, "pod"+run[row.pod].UID)
		w.cgroup(path, "cpu/cpu.shares", row.shares, "cpu.weight", row.weight)
		w.cgroup(path, "cpu/cpu.cfs_quota_us", row.quota, "cpu.max", row.max)
		w.cgroup(path, "memory/memory.limit_in_bytes", row.memory1, "memory.max", row.memory2)
		pid, err := w.rig.CRI.Pid(w.Context(), run[row.pod].ID)
		check(w.T, err)
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		check(w.T, err)
		if want := path + "/" + w.rig.Runtime.Cgroup(run[row.pod].ID); !strings.Contains(string(b), want) {
			w.Errorf("%s runs in\n%s, want %s", row.pod, b, want)
		}
	}
	burstable := filepath.Join(w.agent.Cgroups, "kubepods/burstable")
	w.cgroup(burstable, "cpu/cpu.shares", "307", "cpu.weight", "12")
	w.cgroup(filepath.Join(w.agent.Cgroups, "kubepods/besteffort"), "cpu/cpu.shares", "2", "cpu.weight", "1")

	w.remove("some")
	w.until("its cgroup is gone", func() error { return w.noCgroups(run["some"].UID) })
	w.cgroup(burstable, "cpu/cpu.shares", "204", "cpu.weight", "8")

	theirs := w.hierarchies("cpu")[0] + w.agent.Cgroups + "/kubepods/besteffort/podffffffffffffffffffffffffffffffff"
	check(w.T, os.Mkdir(theirs, 0o755))
	w.kill()
	w.remove("all")
	w.start()
	w.until("the cgroup of a pod that went while monopod was down is gone", func() error { return w.noCgroups(run["all"].UID) })
	w.cgroup(burstable, "cpu/cpu.shares", "204", "cpu.weight", "8")
	delete(run, "some")
	delete(run, "all")
	w.same(run)
	check(w.T, os.Remove(theirs)) // fails if it is gone
	for pod := range run {
		w.remove(pod)
	}
	w.until("no pod's cgroup is left", func() error { return w.noCgroups("") })
}

// holdsOthersToWhatIsReserved: the processes of a cgroup that others made are held to what the settings
// reserve for them, and one that takes more is killed. Without that cgroup the agent says so and ends.
func holdsOthersToWhatIsReserved(w *world) {
	others := filepath.Join(w.agent.Cgroups, "others")
	w.agent.Settings += "systemReserved: {cpu: 500m, memory: 64Mi, pid: '100'}\nsystemReservedCgroup: " + others + "\nenforceNodeAllocatable: [pods, system-reserved]\n"
	check(w.T, w.agent.Launch())
	err := w.agent.Wait(limit)
	says := "systemReservedCgroup " + others + ": there is no such cgroup"
	if said := rig.Tail(w.agent.Log, 1); err == nil || !strings.Contains(said, says) || !strings.Contains(said, "create it before monopod starts") {
		w.Fatalf("without the cgroup it ended with %v and said %s", err, said)
	}
	for _, mount := range w.hierarchies("") {
		check(w.T, os.Mkdir(mount+others, 0o755))
		w.Cleanup(func() { check(w.T, os.Remove(mount+others)) })
	}
	w.start()
	held := func() {
		w.Helper()
		w.cgroup(others, "cpu/cpu.shares", "512", "cpu.weight", "20")
		w.cgroup(others, "memory/memory.limit_in_bytes", "67108864", "memory.max", "67108864")
		w.cgroup(others, "pids/pids.max", "100", "pids.max", "100")
	}
	held()
	greedy := exec.CommandContext(w.Context(), "sh", "-c", "echo $$ >"+w.hierarchies("memory")[0]+others+"/cgroup.procs; exec tail /dev/zero")
	err = greedy.Run()
	if status, isEnd := greedy.ProcessState.Sys().(syscall.WaitStatus); !isEnd || status.Signal() != syscall.SIGKILL {
		w.Errorf("a process that takes more ended with %v", err)
	}
	w.barrier("after")
	held()
	if out, err := w.agent.CLI(w.Context(), "events"); err != nil || strings.Contains(out, "SystemOOM") || strings.Contains(out, "OOMKilling") {
		w.Errorf("its end, which is no pod's nor the node's, is told, %v:\n%s", err, out)
	}
}

// hierarchies returns the mount points of cgroups: all, or that of a controller.
func (w *world) hierarchies(controller string) []string {
	if unified() {
		return []string{cgroupMount}
	}
	pattern := cgroupMount + "/*"
	if controller != "" {
		pattern = cgroupMount + "/" + controller
	}
	found, err := filepath.Glob(pattern)
	check(w.T, err)
	return found
}

func unified() bool {
	_, err := os.Stat(cgroupMount + "/cgroup.controllers")
	return err == nil
}

// cgroup waits until a file of a cgroup holds a value.
func (w *world) cgroup(path, v1, want1, v2, want2 string) {
	w.Helper()
	controller, name := filepath.Split(v1)
	file, want := filepath.Join(cgroupMount, controller, path, name), want1
	if unified() {
		file, want = filepath.Join(cgroupMount, path, v2), want2
	}
	w.until(file, func() error {
		b, err := os.ReadFile(file)
		if got := strings.TrimSpace(string(b)); err == nil && got != want {
			err = fmt.Errorf("it is %q, want %q", got, want)
		}
		return err
	})
}

// noCgroups returns nil if a pod has no cgroup left, or with "" none of all.
func (w *world) noCgroups(uid string) error {
	for _, mount := range w.hierarchies("") {
		for _, level := range []string{"", "burstable/", "besteffort/"} {
			left, _ := filepath.Glob(mount + w.agent.Cgroups + "/kubepods/" + level + "pod" + uid + "*")
			if len(left) > 0 {
				return fmt.Errorf("still there: %v", left)
			}
		}
	}
	return nil
}

// runsPodsWithoutCgroups: containers go where the runtime puts them.
func runsPodsWithoutCgroups(w *world) {
	w.agent.Driver = "none"
	w.start()
	w.write("one", sleeper)
	run := w.running("one")["one"]
	if err := w.noCgroups(run.UID); err != nil {
		w.Error(err)
	}
	pid, err := w.rig.CRI.Pid(w.Context(), run.ID)
	check(w.T, err)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	check(w.T, err)
	if strings.Contains(string(b), "kubepods") || !strings.Contains(string(b), run.ID) {
		w.Errorf("it runs in\n%s", b)
	}
}
