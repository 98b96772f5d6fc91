package agent

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/oom"
	"monopod/agent/status"
)

func TestKillsForWantOfMemoryAreEvents(t *testing.T) {
	const uid, id = "63816e76-ac39-dee5-92e6-755d55eed460", "f51188035c50d79dc4eeb3e155ffbfe58ed5890277e0bbd72ab2126d01786eb0"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	noErr(t, err)
	pod := somePod(func(p *v1.Pod) {
		p.Name, p.Namespace, p.UID = "web-n", "default", uid
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", ContainerID: "containerd://" + id}, {Name: "waits"}}
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
		{"the limit of all pods", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id, Limit: "/kubepods"},
			"OOMKilling c: The kernel killed the process tail: the memory that all pods may use together is used up"},
		{"the machine", oom.Kill{Process: "tail", PID: 7, Cgroup: "/kubepods/pod" + uid + "/" + id},
			"SystemOOM : System OOM encountered, victim process: tail, pid: 7|OOMKilling c: The kernel killed the process tail: the node has no memory left"},
		{"the machine, and a process that is no pod's", oom.Kill{Process: "cron", PID: 7, Cgroup: "/system.slice/cron.service"},
			"SystemOOM : System OOM encountered, victim process: cron, pid: 7"},
		{"a former one", oom.Kill{Process: "tail", Cgroup: "/kubepods/pod" + uid + "/" + id, Limit: "", Former: true}, ""},
		{"a limit that is no pod's", oom.Kill{Process: "cron", PID: 7, Cgroup: "/system.slice/cron.service", Limit: "/system.slice/cron.service"}, ""},
	} {
		a := &Agent{store: store, log: log, events: events.Open(events.Config{Path: filepath.Join(t.TempDir(), "events.jsonl"), Node: "n", Log: log})}
		a.cfg.NodeName = "n"
		if p := a.recordKill(row.kill); (p != nil) != row.kill.In(id) {
			t.Errorf("%s: it is of %v", row.name, p)
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
