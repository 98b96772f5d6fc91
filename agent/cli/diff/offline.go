package diff

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/cli/client"
	"monopod/agent/hold"
	"monopod/agent/outlook"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/manifests"
)

// Rules are the settings of the next agent.
type Rules struct {
	Gate   rollout.Rules
	Policy string // of updates, see update.Planned
	Suffix string // what the node adds to the names of pods
}

// Offline returns the node while no agent runs: pods as they were reported last, and the owner's
// stops and holds. Nothing is known of room, of pods that others start after and of versions that
// wait.
func Offline(k *client.Known, holds hold.State, rules Rules, now time.Time) *outlook.Node {
	has := staying(k)
	isThere := func(key manifests.Key) bool { return has[key] != nil }
	n := &outlook.Node{World: &rollout.World{Now: checkpoint.Moment{Wall: now}, Rules: rules.Gate, Policy: rules.Policy, NodeHold: holds.Node,
		Names:      rollout.Names{Suffix: rules.Suffix, Has: isThere},
		Ready:      func(manifests.Key) bool { return true },
		Terminated: func(manifests.Key) (h plan.Halt, is bool) { return h, false },
		StopsFirst: func(*v1.Pod) bool { return false },
		Room:       func(*manifests.Pod) *admission.Rejection { return nil }}}
	n.Record = func(key manifests.Key) rollout.Record { return recordOf(key, has[key], &holds) }
	n.Reported = func(key manifests.Key) (*v1.Pod, bool) { return has[key], isThere(key) }
	for key := range has {
		n.Names = append(n.Names, key)
	}
	return n
}

// recordOf returns the record of a pod name with this report; nil: there is none.
func recordOf(key manifests.Key, reported *v1.Pod, holds *hold.State) rollout.Record {
	r := rollout.Record{Key: key}
	if reported == nil {
		return r
	}
	r.Offered = accepted(reported)
	over := reported.Status.Phase == v1.PodSucceeded || reported.Status.Phase == v1.PodFailed
	stop, isStopped := holds.Stopped[key.String()]
	switch {
	case isStopped:
		r.Stop = &rollout.Stop{Version: r.Offered, Over: over, Starts: stop.Starts}
		return r
	case status.WasRefused(&reported.Status) || podstatus.WaitsForPods(&reported.Status):
		return r
	}
	if h, held := holds.Held[key.String()]; held {
		r.Hold = &h
	}
	r.Accepted, r.Over, r.Works = r.Offered, over, true
	r.Now.Run, r.Started, r.Seen.Unmade = r.Accepted, rollout.VersionOf(r.Accepted), !wasCreated(reported)
	r.Lock = rollout.LockOf(r.Accepted.Pod, rollout.Lock{})
	return r
}

// wasCreated reports whether any container of the pod was ever created.
func wasCreated(p *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses),
		func(s v1.ContainerStatus) bool { return s.ContainerID != "" })
}
