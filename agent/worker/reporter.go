package worker

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/manifests"
)

// reporter reports the pod's status. The worker's goroutine owns it.
type reporter struct {
	pod       *pod
	last      *v1.PodStatus // as reported last, of the uid lastUID
	lastUID   string
	public    message.Book  // what clients other than root may read of it
	inherited bool          // last comes from a previous agent, and may be of a previous instance
	start     time.Time     // see startOf; zero: not read yet
	sent      State         // what the sync loop knows
	starting  *pendingStart // the instance that the worker accepted last, until it runs
}

// restore takes over the pod's last status from a previous agent, unless
// it is of an instance older than the checkpoint's.
func (r *reporter) restore() {
	prev, inherited := r.pod.shared.Store.Previous(r.pod.key.String())
	if !inherited {
		prev, _ = r.pod.shared.Store.Pod(r.pod.key.String()) // of a pod that was held
	}
	if prev == nil || status.WasRefused(&prev.Status) {
		return
	}
	if c := r.pod.known[string(prev.UID)]; c != nil && prev.Status.StartTime.Before(&c.Accepted) {
		return
	}
	r.last, r.lastUID, r.inherited = &prev.Status, string(prev.UID), inherited
}

// dropStale forgets an inherited status whose instance left nothing else:
// the previous agent died before it accepted the next instance.
func (r *reporter) dropStale(s *plan.Facts) {
	if r.inherited && r.pod.known[r.lastUID] == nil && s.Observed.Instances[r.lastUID] == nil {
		r.last, r.lastUID = nil, ""
	}
	r.inherited = false
}

// report stores the pod's status: of the instance that leaves while there is
// one, else of the desired one.
func (r *reporter) report(s *plan.Facts, p *plan.Plan) {
	if p.Gone {
		return
	}
	for _, uid := range s.Leaving() {
		if c := r.pod.known[uid]; c != nil {
			if c.Ended() != "" {
				r.publish(c.Pod, c.Pod.Status, plan.EndTexts(), podstatus.Problems(s))
				return
			}
			old := *s
			old.Pod = c.Version()
			st, public := podstatus.Report(&old, &plan.Plan{}, r.pod.shared.Disk.Machine.Now(), r.lastStatus(uid))
			r.publish(c.Pod, st, public, podstatus.Problems(s))
			return
		}
	}
	if s.Pod == nil {
		return
	}
	if c := s.Checkpoint(); c.Ended() != "" {
		r.publish(s.Pod.Pod, c.Pod.Status, plan.EndTexts(), podstatus.Problems(s))
		return
	}
	st, public := podstatus.Report(s, p, r.pod.shared.Disk.Machine.Now(), r.lastStatus(string(s.Pod.UID)))
	pod := *s.Pod.Pod
	status.SetStarts(&pod, p.Starts)
	r.publish(&pod, st, public, podstatus.Problems(s), podstatus.Pulls(s)...)
}

// unseen reports a pod while the runtime is down: its last status, or that
// of a pod that has not started.
func (r *reporter) unseen(desired *manifests.Pod) {
	if p, ok := r.pod.shared.Store.Pod(r.pod.key.String()); ok && !status.WasRefused(&p.Status) && !podstatus.WaitsForPods(&p.Status) || desired == nil {
		return
	}
	last := r.lastStatus(string(desired.UID))
	if last != nil && !podstatus.WaitsForPods(last) {
		r.publish(desired.Pod, *last, plan.EndTexts(), nil)
		return
	}
	s := &plan.Facts{Pod: desired, Known: r.pod.known, Observed: &pleg.Observed{}, Unseen: true, Now: time.Now()}
	st, public := podstatus.Report(s, &plan.Plan{}, r.pod.shared.Disk.Machine.Now(), last)
	r.publish(desired.Pod, st, public, nil)
}

// publish reports a pod with its status, and its other problems. public has what clients other
// than root may read of the status.
func (r *reporter) publish(pod *v1.Pod, st v1.PodStatus, public message.Book, problems []message.Text, pulls ...status.Pull) {
	out := *pod
	out.Status = st
	if line := r.pod.current.Waits; line != "" {
		problems = append(problems, message.Instead(line, message.Fixed("a new version waits")))
	}
	if line := r.pod.current.Restart; line != "" {
		problems = append(problems, message.Instead(line, message.Fixed("a restart or reload for changed config waits")))
	}
	if note := r.pod.current.Told; note != "" {
		problems = append(problems, message.Private(note))
	}
	lines := make([]string, len(problems))
	for k, problem := range problems {
		lines[k] = public.Note(problem)
	}
	status.SetProblems(&out, lines)
	if r.pod.current.Pull != (status.Pull{}) {
		pulls = append(pulls, r.pod.current.Pull)
	}
	status.SetPulls(&out, pulls)
	r.recordRunning(string(pod.UID), &st)
	r.last, r.lastUID, r.public = &out.Status, string(pod.UID), public
	r.pod.shared.Store.SetReport(r.pod.key.String(), status.Report{Pod: &out, Public: public})
}

// trouble adds the error of a pass to the pod's report, until a later pass reports.
func (r *reporter) trouble(err error) {
	p, reported := r.pod.shared.Store.Pod(r.pod.key.String())
	if !reported {
		r.unseen(r.pod.current.Pod)
		p, reported = r.pod.shared.Store.Pod(r.pod.key.String())
	}
	if reported {
		out, line := *p, plan.ReasonFault+": "+err.Error()
		if lines := status.ProblemsOf(p); !slices.Contains(lines, line) {
			status.SetProblems(&out, append(lines, line))
			r.pod.shared.Store.SetReport(r.pod.key.String(), status.Report{Pod: &out, Public: r.public})
		}
	}
}

// fault puts a pass's panic into the pod's last status, which stands
// until a later pass reports.
func (r *reporter) fault(desired *manifests.Pod, err error) {
	p, reported := r.pod.shared.Store.Pod(r.pod.key.String())
	switch {
	case reported:
		p = p.DeepCopy()
	case desired != nil:
		p = desired.Pod.DeepCopy()
		p.Status = v1.PodStatus{Phase: v1.PodPending}
	default:
		return
	}
	p.Status.Reason, p.Status.Message = plan.ReasonFault, err.Error()
	r.pod.shared.Store.SetReport(r.pod.key.String(), status.Report{Pod: p, Public: r.public})
}
