package agent

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/oom"
)

// watchMemory records, until ctx ends, which processes the kernel kills for want of memory: a
// runtime reports a container that was killed, and not a process that the container started.
func (a *Agent) watchMemory(ctx context.Context) {
	err := oom.Watch(ctx, oom.Log, a.recordKill)
	if err != nil {
		a.log.Info("the kernel's log cannot be read: which processes are killed for want of memory is not recorded", "err", err)
	}
}

// recordKill records a kill as an event of the node, if its memory is used up, and of the container
// whose process was killed.
func (a *Agent) recordKill(k oom.Kill) {
	process := message.Private(k.Process)
	if k.Limit == "" {
		a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, "SystemOOM",
			message.Of("System OOM encountered, victim process: %s, pid: %d", process, message.Number(k.PID)))
	}
	for _, p := range a.store.Pods() {
		container := containerIn(p, k.Cgroup)
		if container == "" {
			continue
		}
		about := events.ContainerRef(events.PodRef(p.Namespace, p.Name, string(p.UID)), &p.Spec, container)
		a.events.Record(about, v1.EventTypeWarning, "OOMKilling", message.Of("The kernel killed the process %s: %s", process, whyKilled(p, k.Limit)))
		return
	}
}

// containerIn returns the name of the container of a pod that has a cgroup, or one below it; "": none
// has. Each runtime and cgroup driver has a name of its own for it, with the container's id in it.
func containerIn(p *v1.Pod, cgroup string) string {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for k := range list {
			_, id, _ := strings.Cut(list[k].ContainerID, "://")
			if id != "" && strings.Contains(cgroup, id) {
				return list[k].Name
			}
		}
	}
	return ""
}

// whyKilled returns why a process of a pod was killed, by the cgroup whose limit was reached.
func whyKilled(p *v1.Pod, limit string) message.Text {
	switch {
	case limit == "":
		return message.Fixed("the node has no memory left")
	case !strings.Contains(strings.ReplaceAll(limit, "_", "-"), string(p.UID)): // systemd has no dashes in names
		return message.Fixed("the memory that all pods may use together is used up")
	}
	return message.Fixed("it has reached its memory limit")
}
