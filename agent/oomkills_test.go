package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/oom"
	"monopod/agent/pleg"
	"monopod/agent/status"
)

func TestKillsForWantOfMemoryAreEvents(t *testing.T) {
	const uid, id = "63816e76-ac39-dee5-92e6-755d55eed460", "f51188035c50d79dc4eeb3e155ffbfe58ed5890277e0bbd72ab2126d01786eb0"
	const former = "00a188035c50d79dc4eeb3e155ffbfe58ed5890277e0bbd72ab2126d01786eb0"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	noErr(t, err)
	pod := somePod(func(p *v1.Pod) {
		p.Name, p.Namespace, p.UID = "web-n", "default", uid
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://" + id,
			LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "containerd://" + former}}}, {Name: "waits"}}
	})
	store.SetPod("default/web-n", pod)
	for _, row := range []struct {
		name string
		kill oom.Kill
		want string
	}{
		{"its own limit", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id, Limit: "/kubepods/pod" + uid + "/" + id},
			"OOMKilling c: The kernel killed the process tail: it has reached its memory limit"},
		{"its pod's limit, with systemd", oom.Kill{Process: "tail", Limit: "/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice",
			Cgroup: "/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + id + ".scope"},
			"OOMKilling c: The kernel killed the process tail: it has reached its memory limit"},
		{"a cgroup that the container made", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id + "/own", Limit: "/kubepods/pod" + uid + "/" + id + "/own"},
			"OOMKilling c: The kernel killed the process tail: it has reached its memory limit"},
		{"its own limit, where pods have no cgroups", oom.Kill{Process: "tail", Cgroup: "/k8s.io/" + id, Limit: "/k8s.io/" + id},
			"OOMKilling c: The kernel killed the process tail: it has reached its memory limit"},
		{"the limit of all pods", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id, Limit: "/kubepods"},
			"OOMKilling c: The kernel killed the process tail: the memory that all pods may use together is used up"},
		{"the machine", oom.Kill{Process: "tail", PID: 7, Cgroup: "/kubepods/pod" + uid + "/" + id},
			"SystemOOM : System OOM encountered, victim process: tail, pid: 7|OOMKilling c: The kernel killed the process tail: the node has no memory left"},
		{"the machine, and a process that is no pod's", oom.Kill{Process: "cron", PID: 7, Cgroup: "/system.slice/cron.service"},
			"SystemOOM : System OOM encountered, victim process: cron, pid: 7"},
		{"an attempt that has a successor", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + former, Limit: "/kubepods/pod" + uid + "/" + former},
			"OOMKilling c: The kernel killed the process tail: it has reached its memory limit"},
		{"a former one", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id, Limit: "", Former: true}, ""},
		{"a limit that is no pod's", oom.Kill{Process: "cron", PID: 7, Cgroup: "/system.slice/cron.service", Limit: "/system.slice/cron.service"}, ""},
	} {
		a := &Agent{store: store, log: log, events: events.Open(events.Config{Path: filepath.Join(t.TempDir(), "events.jsonl"), Node: "n", Log: log})}
		a.cfg.NodeName = "n"
		a.watch = &pleg.Watch{}
		a.recordVictim(row.kill)
		if is := a.claimKill(row.kill); is != (row.kill.In(id) || row.kill.In(former)) {
			t.Errorf("%s: it is of a pod: %v", row.name, is)
		}
		var got []string
		a.events.List("").Each(func(e *v1.Event) bool {
			got = append(got, e.Reason+" "+strings.TrimSuffix(strings.TrimPrefix(e.InvolvedObject.FieldPath, "spec.containers{"), "}")+": "+e.Message)
			return true
		})
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
		a.events.ListPublic("").Each(func(e *v1.Event) bool {
			if strings.Contains(e.Message, row.kill.Process) {
				t.Errorf("%s: everybody reads the name of a process: %s", row.name, e.Message)
			}
			return true
		})
	}
}

// A kill is read before the pod's status names the container: it is recorded once it does.
func TestAKillWaitsForItsContainer(t *testing.T) {
	for _, row := range []struct {
		name  string
		known time.Duration // after the kill: the status names the container
		is    bool
	}{
		{"named within a second", 500 * time.Millisecond, true},
		{"named late", 30 * time.Second, true},
		{"never named: it is of no pod", time.Hour, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				waiting, killed, claimed, asked := make(chan oom.Kill, claimsMost), time.Now(), 0, 0
				go claimKills(ctx, waiting, func(oom.Kill) bool {
					asked++
					if time.Since(killed) < row.known {
						return false
					}
					claimed++
					return true
				})
				waiting <- oom.Kill{Process: "tail"}
				time.Sleep(2 * time.Hour)
				cancel()
				synctest.Wait()
				if (claimed == 1) != row.is || claimed > 1 || asked > int(claimWithin/claimEvery) {
					t.Errorf("it was claimed %d times, of %d", claimed, asked)
				}
			})
		})
	}
}

// Kills that come without a pause keep none of them from its container.
func TestManyKillsWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		waiting, claimed := make(chan oom.Kill, claimsMost), map[int]bool{}
		go claimKills(ctx, waiting, func(k oom.Kill) bool {
			claimed[k.PID] = k.PID%2 == 0
			return claimed[k.PID]
		})
		for pid := range 40 {
			waiting <- oom.Kill{PID: pid}
			time.Sleep(claimEvery / 4)
		}
		time.Sleep(2 * claimEvery)
		cancel()
		synctest.Wait()
		for pid := range 40 {
			if is, asked := claimed[pid]; !asked || is != (pid%2 == 0) {
				t.Errorf("kill %d: asked for %v, claimed %v", pid, asked, is)
			}
		}
	})
}
