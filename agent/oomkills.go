package agent

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/oom"
	"monopod/manifests"
)

// openMemoryLog opens the log in which the kernel tells which processes it kills for want of memory;
// nil: it cannot be read, which is logged.
func openMemoryLog(log *slog.Logger) *oom.Kills {
	kills, err := oom.Open(oom.Log)
	if err != nil {
		log.Info(unreadableKernelLog, "err", err)
	}
	return kills
}

const unreadableKernelLog = "the kernel's log cannot be read: which processes are killed for want of memory is not recorded"

// watchMemory records, until ctx ends, which processes the kernel kills for want of memory: a
// runtime reports a container that was killed, and not a process that the container started.
func (a *Agent) watchMemory(ctx context.Context) {
	if a.workers.OOMKills == nil {
		return
	}
	waiting := make(chan oom.Kill, claimsMost)
	var claims sync.WaitGroup
	defer claims.Wait()
	claims.Go(func() { claimKills(ctx, waiting, a.claimKill) })
	err := a.workers.OOMKills.Watch(ctx, func(k oom.Kill) {
		a.recordVictim(k)
		if a.claimKill(k) || k.Former {
			return
		}
		select {
		case waiting <- k:
		default: // so many at once are not recorded
		}
	})
	if err != nil {
		a.log.Info(unreadableKernelLog, "err", err)
	}
}

// recordVictim records the kill as an event of the node, if its memory is used up.
func (a *Agent) recordVictim(k oom.Kill) {
	if k.Limit == "" && !k.Former {
		a.events.Record(events.NodeRef(a.cfg.NodeName), v1.EventTypeWarning, "SystemOOM",
			message.Of("System OOM encountered, victim process: %s, pid: %d", message.Private(k.Process), message.Number(k.PID)))
	}
}

// A container may be killed before its pod's status names it: then the kill waits, and its container
// is looked for now and then.
const (
	claimEvery  = time.Second
	claimWithin = time.Minute
	claimsMost  = 64 // kills that wait
)

// claimKills calls claim for each kill that waits until it reports that the kill is of a pod, or for
// a while: most of the others are of no pod.
func claimKills(ctx context.Context, waiting <-chan oom.Kill, claim func(oom.Kill) bool) {
	type unclaimed struct {
		oom.Kill
		since time.Time
	}
	var all []unclaimed
	again := time.NewTimer(claimEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case k := <-waiting:
			if len(all) == 0 {
				again.Reset(claimEvery)
			}
			all = append(all, unclaimed{k, time.Now()})
			all = all[max(0, len(all)-claimsMost):]
		case <-again.C:
			all = slices.DeleteFunc(all, func(k unclaimed) bool { return claim(k.Kill) || time.Since(k.since) >= claimWithin })
			if len(all) > 0 {
				again.Reset(claimEvery)
			}
		}
	}
}

// claimKill records a kill, unless it is a former one, as an event of the container whose process was
// killed, and wakes the worker of its pod, which may have seen the end of the container before. It
// reports whether the status of a pod has that container.
func (a *Agent) claimKill(k oom.Kill) bool {
	for _, p := range a.store.Pods() {
		container, id := containerIn(p, k)
		if container == "" {
			continue
		}
		if !k.Former { // of a time when no agent read the log, or another one recorded it
			about := events.ContainerRef(events.PodRef(p.Namespace, p.Name, string(p.UID)), &p.Spec, container)
			a.events.Record(about, v1.EventTypeWarning, "OOMKilling", message.Of("The kernel killed the process %s: %s", message.Private(k.Process), whyKilled(p, id, k.Limit)))
		}
		a.watch.Workers.Wake(manifests.Key{Namespace: p.Namespace, Name: p.Name})
		return true
	}
	return false
}

// containerIn returns the name and the id of the container of a pod whose process was killed; "": it
// is of none.
func containerIn(p *v1.Pod, k oom.Kill) (name, id string) {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for at := range list {
			c := &list[at]
			ids := []string{idOf(c.ContainerID)}
			if last := c.LastTerminationState.Terminated; last != nil {
				ids = append(ids, idOf(last.ContainerID))
			}
			if found := slices.IndexFunc(ids, k.In); found >= 0 {
				return c.Name, ids[found]
			}
		}
	}
	return "", ""
}

// idOf returns the id in a status's ContainerID.
func idOf(text string) string {
	_, id, _ := strings.Cut(text, "://")
	return id
}

// whyKilled returns why a process of a pod's container with this id was killed, by the cgroup whose
// limit was reached. Where pods have no cgroups, that of a container has no uid in its path.
func whyKilled(p *v1.Pod, id, limit string) message.Text {
	switch {
	case limit == "":
		return message.Fixed("the node has no memory left")
	case !oom.IsOfPod(limit, string(p.UID)) && !strings.Contains(limit, id):
		return message.Fixed("the memory that all pods may use together is used up")
	}
	return message.Fixed("it has reached its memory limit")
}
