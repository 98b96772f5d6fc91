package agent

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/oom"
	"monopod/manifests"
)

// watchMemory records, until ctx ends, which processes the kernel kills for want of memory: a
// runtime reports a container that was killed, and not a process that the container started.
func (a *Agent) watchMemory(ctx context.Context) {
	err := oom.Watch(ctx, oom.Log, func(k oom.Kill) {
		a.workers.OOMKills.Add(k)
		if p := a.recordKill(k); p != nil { // its worker may have seen the end of the container before
			a.watch.Workers.Wake(manifests.Key{Namespace: p.Namespace, Name: p.Name})
		}
	})
	if err != nil {
		a.log.Info("the kernel's log cannot be read: which processes are killed for want of memory is not recorded", "err", err)
	}
}

// recordKill records a kill, unless it is a former one, as an event of the node, if its memory is used up, and of the container
// whose process was killed. It returns the pod of that container; nil: it is of none.
func (a *Agent) recordKill(k oom.Kill) *v1.Pod {
	process := message.Private(k.Process)
	if k.Limit == "" && !k.Former {
		a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, "SystemOOM",
			message.Of("System OOM encountered, victim process: %s, pid: %d", process, message.Number(k.PID)))
	}
	for _, p := range a.store.Pods() {
		container := containerIn(p, k)
		if container == "" {
			continue
		}
		if k.Former { // of a time when no agent read the log, or another one recorded it
			return p
		}
		about := events.ContainerRef(events.PodRef(p.Namespace, p.Name, string(p.UID)), &p.Spec, container)
		a.events.Record(about, v1.EventTypeWarning, "OOMKilling", message.Of("The kernel killed the process %s: %s", process, whyKilled(p, k.Limit)))
		return p
	}
	return nil
}

// containerIn returns the name of the container of a pod whose process was killed; "": it is of none.
func containerIn(p *v1.Pod, k oom.Kill) string {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for at := range list {
			_, id, _ := strings.Cut(list[at].ContainerID, "://")
			if k.In(id) {
				return list[at].Name
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
	case !oom.IsOfPod(limit, string(p.UID)):
		return message.Fixed("the memory that all pods may use together is used up")
	}
	return message.Fixed("it has reached its memory limit")
}
