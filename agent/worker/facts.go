package worker

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/volume"
)

// lookAround adds to the facts what the machine, and not the runtime, has of the pod. It changes
// nothing there.
func (w *Worker) lookAround(s *plan.Facts) {
	if s.Pod == nil {
		return
	}
	s.NoNetwork = w.pod.shared.Watch.NoNetwork()
	newest := s.Instance().Sandbox()
	if silent := newest != nil && newest.Ready && newest.Unknown; !silent {
		w.unsaid = time.Time{}
	} else if w.unsaid.IsZero() {
		w.unsaid = s.Now
	}
	s.Unsaid = w.unsaid
	s.CgroupGone = s.Instance().Sandbox() != nil && s.Checkpoint().Ended() == "" && w.pod.shared.Disk.Cgroups.Vanished(s.Pod.Pod)
	s.Volumes = w.releasesVolumes(s)
}

// releasesVolumes reports whether the pod has ended and has volumes that are to go. If
// another pod has its uid, they are that pod's.
func (w *Worker) releasesVolumes(s *plan.Facts) bool {
	if s.Checkpoint().Ended() == "" || w.pod.shared.Settings().KeepVolumes || !volume.HasVolumes(w.pod.shared.Disk.Root.Dir, string(s.Pod.UID)) {
		return false
	}
	_, taken := w.pod.shared.Uids.Other(s.Pod.UID, w.pod.key)
	return !taken
}

// probe marks kill decisions, lost containers and kills for want of memory, updates the set of probes and takes their results.
func (w *Worker) probe(s *plan.Facts) {
	for uid, i := range s.Observed.Instances {
		if c := w.pod.known[uid]; c != nil {
			i.MarkKills(c.KillDecisions)
			i.MarkReplaced(c.ReplaceSandbox)
			i.MarkExcused(c.Excused)
			i.MarkAccepted(c)
		}
		i.MarkLost(w.pod.shared.Watch.Lost)
		i.MarkOOM(w.pod.shared.OOMKills.Last)
	}
	if !s.AwaitsAcceptance() {
		w.probes.set.Follow(w.probes.targets(s))
	}
	s.Probes = w.probes.set.Results()
}

// MarkKill records a kill decision. If the disk does not take it, the container is stopped all the
// same; only an agent that dies meanwhile loses the cause.
func (w *Worker) MarkKill(s *plan.Facts, a plan.Action) {
	c := w.checkpointOf(s, a.UID)
	var excused []string
	if !c.KillDecisions[a.ID].Requested { // else its attempt is excused already
		excused = a.Excused
	}
	c = c.WithExcused(excused...)
	all := map[string]checkpoint.KillDecision{a.ID: {Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: a.Asked}}
	maps.Copy(all, c.KillDecisions)
	if a.Asked { // a restart request overrides a probe's decision
		all[a.ID] = checkpoint.KillDecision{Cause: a.Cause, Reason: a.Reason, Text: a.Text, Grace: a.Grace, Requested: true}
	}
	maps.DeleteFunc(all, func(id string, _ checkpoint.KillDecision) bool { return !s.Observed.Instances[a.UID].Has(id) })
	c.KillDecisions = all
	w.pod.rememberOrWarn(c, "why a container is killed") // a power cut ends the container, too
}

// recordNetwork records, once, that the pod waits for the runtime's network, or that the runtime
// does not report the sandbox's network. A sandbox that failed before has no other reason to wait
// any longer: the network was the cause.
func (w *Worker) recordNetwork(s *plan.Facts, p *plan.Plan) {
	now, waits := p.NetworkWait()
	if waits && len(p.Steps) == 0 {
		delete(w.failures, plan.SandboxFailure)
	}
	if !waits && s.Pod != nil {
		now, _ = s.UnknownNetwork()
	}
	text := now.Message.String()
	if text != w.noNetwork && text != "" {
		w.pod.log.Warn("pod without a known network", "reason", now.Reason, "err", text)
		w.pod.shared.Events.Record(events.About(s.Pod.Pod), v1.EventTypeWarning, now.Reason, now.Message)
	}
	w.noNetwork = text
}
