package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests/annotations"
)

// whyUnknown returns why a container in the state "unknown" stops.
func whyUnknown(n *pleg.Container) string {
	if n.Lost {
		return "the runtime lists it as running, and its process is gone"
	}
	return "the runtime does not know its state"
}

// addressEvery is how often the runtime is asked for an address that it did not report.
const addressEvery = 10 * time.Second

// planRunning plans a desired pod that has not ended.
func (s *Facts) planRunning(p *Plan) {
	i, f := s.Instance(), s.Failures[SandboxFailure]
	switch c := s.Known[string(s.Pod.UID)]; {
	case c != nil && c.Next && !c.Unwritten: // a restarted agent knows the pod by what was prepared
		p.then(Action{Do: DoAccept, UID: string(s.Pod.UID), Beside: true, Reason: "the pod is new"})
	case c == nil || c.Unwritten || c.Next:
		waits := s.Now.Before(f.Retry)
		if waits {
			p.wakeAt(f.Retry)
		} else {
			p.then(Action{Do: DoAccept, UID: string(s.Pod.UID), Reason: "the pod is new"})
		}
		if waits && i == nil {
			return // without a checkpoint a restarted agent would not know the pod
		}
	}
	if s.planBroken(p, i) {
		return
	}
	if v := s.result(p, i); v != nil {
		s.planEnd(p, i, *v)
		return
	}
	why := s.newSandbox(i)
	if why == "" && i.Sandbox().Unknown {
		p.wakeAt(s.Now.Add(addressEvery))
	}
	switch {
	case why == "" && s.planReset(p, i):
		return
	case why == "":
		planOutdated(p, i)
		s.planHooks(p, i)
		s.planFollow(p, i)
		s.planContainers(p, i)
		s.planPrune(p, i)
		return
	}
	if phase, ended := s.endedWithSandbox(i); ended && !s.sandboxReplaced() {
		s.planEnd(p, i, s.resultWithoutSandbox(i, phase))
		return
	}
	if s.waitForNetwork(p) {
		return
	}
	if i != nil {
		defer s.planPrune(p, i)
	}
	if s.Now.Before(f.Retry) {
		p.wakeAt(f.Retry)
		return
	}
	if s.waitForRemovals(p, i) {
		return
	}
	s.planSandbox(p, i, why)
}

// maxSandboxes is how many sandboxes a pod may have: no more are created while the runtime does not
// remove the dead ones.
const maxSandboxes = 10

// waitForRemovals makes the containers wait if the pod has too many sandboxes. It reports whether
// they wait.
func (s *Facts) waitForRemovals(p *Plan, i *pleg.Instance) bool {
	if i == nil || len(i.Sandboxes) < maxSandboxes {
		return false
	}
	text := message.Of("the runtime does not remove the %d sandboxes that the pod had", message.Number(len(i.Sandboxes)))
	for _, b := range i.Sandboxes {
		if f := s.Failures[Action{Do: DoRemoveSandbox, ID: b.ID}.Key()]; f.Reason != "" {
			text = message.Of("%s: %s", text, f.Message)
			break
		}
	}
	for _, c := range podspec.AllContainers(s.Pod.Pod) {
		p.Wait(c.Name, Waiting{"FailedCreatePodSandBox", text})
	}
	return true
}

// SandboxTrouble returns why the pod needs a new sandbox, "" if it does not (kubelet:
// podSandboxChanged, in the same order).
func SandboxTrouble(pod *v1.Pod, i *pleg.Instance) string {
	newest := i.Sandbox()
	switch {
	case i == nil:
		return "the pod is new"
	case newest == nil:
		return "the pod has no sandbox"
	}
	ready := 0
	for _, b := range i.Sandboxes {
		if b.Ready {
			ready++
		}
	}
	switch {
	case ready > 1:
		return fmt.Sprintf("the pod has %d sandboxes", ready)
	case !newest.Ready:
		return "its sandbox is dead"
	case newest.Unknown: // an unknown state is no reason to kill
	case newest.HostNetwork != pod.Spec.HostNetwork:
		return "its sandbox has the wrong network"
	case !newest.HostNetwork && len(newest.IPs) == 0:
		return "its sandbox has no address"
	}
	return ""
}

// endedWithSandbox reports whether a pod whose sandbox is gone needs no new one, because no
// container would run in it, and how the pod ended.
func (s *Facts) endedWithSandbox(i *pleg.Instance) (v1.PodPhase, bool) {
	pod := s.Pod.Pod
	switch {
	case pod.Spec.RestartPolicy != v1.RestartPolicyNever:
		return "", false
	case i == nil || !slices.ContainsFunc(i.Containers, wasStarted):
		return cmp.Or(s.Reported, v1.PodFailed), s.ranInEarlierBoot()
	case i.Sandbox() == nil:
		return "", false
	case allSucceeded(pod, i):
		return v1.PodSucceeded, true
	}
	return v1.PodFailed, true
}

// wasStarted reports whether a container came to run.
func wasStarted(c pleg.Container) bool {
	return c.State != rt.ContainerState_CONTAINER_CREATED && !c.BrokenOff
}

// NotesBoot reports whether the checkpoint keeps the boot in which a pod starts, see
// checkpoint.Checkpoint.
func NotesBoot(p *v1.Pod) bool {
	return p.Spec.RestartPolicy == v1.RestartPolicyNever || len(annotations.OrderOf(p).After) > 0
}

// ranInEarlierBoot reports whether a container of the pod ran before the machine booted, according
// to the last status or the logs. CRI-O forgets all pods when it starts after a boot.
func (s *Facts) ranInEarlierBoot() bool {
	if !s.Checkpoint().OfEarlierBoot(s.Mark) {
		return false
	}
	for _, next := range s.Next {
		if next > 0 {
			return true
		}
	}
	return false
}

// workDone reports whether all regular containers have exited for good, and
// the phase that follows.
func workDone(pod *v1.Pod, i *pleg.Instance) (v1.PodPhase, bool) {
	for k := range pod.Spec.Containers {
		c := &pod.Spec.Containers[k]
		if n := i.Newest(c.Name); n == nil || !n.Exited() || MayRestart(pod, c, n) {
			return "", false
		}
	}
	if allSucceeded(pod, i) {
		return v1.PodSucceeded, true
	}
	return v1.PodFailed, true
}

// planSandbox creates a new sandbox and starts its first init container, or
// without init containers the regular ones.
func (s *Facts) planSandbox(p *Plan, i *pleg.Instance, why string) {
	uid, attempt := string(s.Pod.UID), uint32(0)
	if i != nil {
		planStop(p, i, s.Pod.Pod, s.sandboxCause(), why, 0)
		s.planRelease(p, i, why)
		p.then(removeCreated(i)...)
		if newest := i.Sandbox(); newest != nil {
			attempt = newest.Attempt + 1
		}
	}
	attempt += s.Failures[SandboxFailure].Skip
	p.then(Action{Do: DoSetUp, UID: uid, Reason: why})
	p.then(Action{Do: DoCreateSandbox, UID: uid, Attempt: attempt, Reason: why})
	if len(s.Pod.Spec.InitContainers) > 0 {
		c := &s.Pod.Spec.InitContainers[0]
		p.then(s.start(p, c, i.NewestStarted(c.Name), why)...)
		return
	}
	s.planFirst(p, i, why)
}

// removeCreated removes the containers that were never started: they belong to
// the old sandbox, and their successors get the same names.
func removeCreated(i *pleg.Instance) []Action {
	var remove []Action
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.State == rt.ContainerState_CONTAINER_CREATED {
			remove = append(remove, Action{Do: DoRemoveContainer, UID: i.UID, ID: c.ID, Name: c.Name, Attempt: c.Attempt, Reason: "it was never started"})
		}
	}
	return remove
}

// planContainers starts the desired containers in a usable sandbox.
func (s *Facts) planContainers(p *Plan, i *pleg.Instance) {
	initialized, failed := s.planInit(p, i)
	if failed {
		p.Steps = nil
		s.planEnd(p, i, checkpoint.Result{Phase: v1.PodFailed, Why: endReason(s.Pod.Pod, i, v1.PodFailed)})
		return
	}
	defer s.planKills(p, i) // kills take long, so starts come first
	s.planReloads(p, i)
	if !initialized {
		return
	}
	var starts, stops []Action
	q := s.newQueue(i.Sandbox().ID)
	for k := range s.Pod.Spec.Containers {
		c := &s.Pod.Spec.Containers[k]
		n := i.Newest(c.Name)
		if q.waits(p, c, n) {
			continue
		}
		before := len(starts)
		switch {
		case n == nil:
			starts = append(starts, s.start(p, c, nil, "it has not been started yet")...)
		case n.Exited() && MayRestart(s.Pod.Pod, c, n):
			starts = append(starts, s.start(p, c, n, ExitReason(n))...)
		case n.State == rt.ContainerState_CONTAINER_UNKNOWN:
			stops = append(stops, stopContainer(i, n, checkpoint.CauseLost, whyUnknown(n)))
		case n.Outdated && !n.Exited(): // the old container is removed or stopped first
		case n.State == rt.ContainerState_CONTAINER_CREATED:
			starts = append(starts, s.resume(p, n)...)
		}
		q.pass(c, n, len(starts) > before)
	}
	p.then(stops...)
	p.then(starts...)
}

func ExitReason(c *pleg.Container) string {
	switch {
	case c.Kill != nil:
		return c.Kill.Reason
	case c.BrokenOff:
		return whyBroken
	}
	return fmt.Sprintf("it exited with %d (%s)", c.ExitCode, c.Reason)
}

// planPrune removes dead containers beyond the number kept per name, and empty
// dead sandboxes except the newest.
func (s *Facts) planPrune(p *Plan, i *pleg.Instance) {
	var remove []Action
	dead, used := map[string]int{}, map[string]bool{}
	for k := range i.Containers {
		c := &i.Containers[k]
		if c.Exited() {
			dead[c.Name]++
		}
		if c.Exited() && dead[c.Name] > max(s.Dead, 1) {
			remove = append(remove, Action{Do: DoRemoveContainer, UID: i.UID, ID: c.ID, Name: c.Name, Attempt: c.Attempt, Beside: true, Reason: "a later attempt has replaced it"})
			continue
		}
		used[c.Sandbox] = true
	}
	for k, b := range i.Sandboxes {
		if k > 0 && !b.Ready && !used[b.ID] {
			remove = append(remove, Action{Do: DoRemoveSandbox, UID: i.UID, ID: b.ID, Beside: true, Reason: "a later sandbox has replaced it"})
		}
	}
	p.then(remove...)
}
