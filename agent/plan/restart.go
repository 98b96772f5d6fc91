package plan

import (
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/defaults"
)

// The crash-loop back-off, with the kubelet's values unless others are set
// (see BackOff). A run of more than 10 min resets it.
const (
	BackOffFirst = 10 * time.Second
	BackOffMax   = 5 * time.Minute
	backOffReset = 10 * time.Minute
)

// CrashLoop is the reason of a container in back-off.
const CrashLoop = "CrashLoopBackOff"

// MayRestart reports whether a container that exited starts again (kubelet:
// ShouldContainerBeRestarted).
func MayRestart(pod *v1.Pod, c *v1.Container, n *pleg.Container) bool {
	if !n.Exited() || podspec.IsSidecar(pod, c) || n.BrokenOff {
		return true
	}
	if isSpent(pod, n) {
		return false
	}
	if n.Kill != nil {
		return askedToStart(n) || defaults.RestartPolicyOf(pod, c) != v1.RestartPolicyNever
	}
	init := podspec.IsInit(pod, c)
	if c.RestartPolicy != nil && podspec.RestartRule(c, n.ExitCode) != "" {
		return true
	}
	switch defaults.RestartPolicyOf(pod, c) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return n.ExitCode != 0 || init && !Succeeded(n)
	}
	return !init || !Succeeded(n)
}

// Succeeded reports whether an init container succeeded. One with an OOM-killed process did not,
// even if it exited with 0; of a regular container only the exit code counts (kubelet: the same).
func Succeeded(c *pleg.Container) bool {
	return c.Exited() && c.ExitCode == 0 && c.Reason != "OOMKilled"
}

// allSucceeded reports whether all regular containers exited with 0.
func allSucceeded(pod *v1.Pod, i *pleg.Instance) bool {
	for k := range pod.Spec.Containers {
		if n := i.Newest(pod.Spec.Containers[k].Name); n == nil || !n.Exited() || n.ExitCode != 0 {
			return false
		}
	}
	return true
}

// next returns when the attempt after n may start, and the mark of that attempt. The mark is an
// annotation in the runtime, so that a restarted agent continues the back-off. It is the last wait
// and not a date: a changed maximum applies to a container that already waits. A container that
// died with its sandbox, or whose start was broken off, does not wait.
func (b BackOff) next(n *pleg.Container, sandbox string, now time.Time) (from time.Time, mark string) {
	switch {
	case n != nil && n.BrokenOff:
		return time.Time{}, n.BackOff
	case n == nil || askedToStart(n):
		return time.Time{}, ""
	case n.Sandbox != sandbox:
		return time.Time{}, n.BackOff
	}
	last, err := time.ParseDuration(n.BackOff)
	ran := !n.Started.IsZero() && n.Finished.Sub(n.Started) > backOffReset // false if its start failed
	if !b.always && (err != nil || ran) {
		return time.Time{}, "0s"
	}
	wait := b.after(last)
	from = n.Finished.Add(wait)
	if limit := now.Add(wait); from.After(limit) { // the clock was set back
		from = limit
	}
	return from, wait.String()
}

// start returns the action that starts a container, or nothing while it must wait. n is the
// previous attempt, or nil.
func (s *Facts) start(p *Plan, c *v1.Container, n *pleg.Container, why string) []Action {
	f := s.Failures[c.Name]
	if s.Now.Before(f.Retry) {
		s.waitForRetry(p, c.Name, f)
		return nil
	}
	if pull, ok := s.Fetching[c.Name]; ok {
		s.waitForImage(p, c, pull)
		return nil
	}
	attempt, sandbox := s.Next[c.Name], ""
	if n != nil {
		attempt = max(attempt, n.Attempt+1)
	}
	if made := s.Instance().Newest(c.Name); made != nil && made.State == rt.ContainerState_CONTAINER_CREATED {
		attempt = max(attempt, made.Attempt) // it was never started, so its number is used again
	}
	attempt += f.Skip
	if b := s.Instance().Sandbox(); b != nil && b.Ready && !s.CgroupGone {
		sandbox = b.ID
	}
	from, mark := s.BackOff.forPod(s.Pod.Pod).next(n, sandbox, s.Now)
	if n == nil {
		mark = s.Checkpoint().Marks[c.Name]
	}
	if s.Now.Before(from) {
		p.wakeAt(from)
		p.startsAt(c.Name, from)
		p.Wait(c.Name, Waiting{CrashLoop, message.Of("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			message.Name(mark), message.Name(c.Name), message.Name(s.Pod.Name), message.Name(s.Pod.Namespace), message.Name(s.Pod.UID))})
		return nil
	}
	return []Action{{Do: DoStartContainer, UID: string(s.Pod.UID), Name: c.Name, Attempt: attempt, BackOff: mark, Revision: s.Checkpoint().Revision, Reason: why}}
}

// resume returns the action that starts a container that was created and not started, because the
// agent or the runtime died in between.
func (s *Facts) resume(p *Plan, n *pleg.Container) []Action {
	if f := s.Failures[n.Name]; s.Now.Before(f.Retry) {
		s.waitForRetry(p, n.Name, f)
		return nil
	}
	return []Action{{Do: DoResumeContainer, UID: string(s.Pod.UID), ID: n.ID, Name: n.Name, Attempt: n.Attempt, Reason: "it was created and not started"}}
}

// waitForRetry makes a container wait after a failure.
func (s *Facts) waitForRetry(p *Plan, name string, f Failure) {
	p.wakeAt(f.Retry)
	if f.Reason != "" {
		p.Wait(name, f.Waiting)
	}
}
