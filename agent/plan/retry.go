package plan

import (
	"cmp"
	"slices"
	"time"

	"monopod/agent/backoff"
	"monopod/agent/message"
	"monopod/agent/pleg"
	"monopod/agent/slots"
	"monopod/manifests"
)

// Hangs is the text for a call of the runtime that hangs.
const Hangs = "the runtime has not answered for 10s; waiting on"

// Running is an action that a pass began and that has not ended: it hangs, or runs in the
// background.
type Running struct {
	Do    verb
	UID   string
	ID    string    // see Action.ID
	Makes bool      // see Action.Makes
	Since time.Time // zero: it is queued
}

// Key returns the key of what an action works on: at most one action of a key runs, and its
// failures in a row have one back-off.
func (a Action) Key() string {
	switch {
	case a.Do == DoStartContainer || a.Do == DoResumeContainer:
		return a.Name
	case a.Object() == "":
		return SandboxFailure
	}
	return string(a.Do) + " " + a.Object()
}

// Object returns the existing object that the action works on: the id of a sandbox or a container,
// or the uid of an instance. It is "" for an action that starts the desired version.
func (a Action) Object() string {
	if a.Makes() || a.Do == DoAccept && !a.Beside || a.Do == DoSetUp {
		return ""
	}
	return cmp.Or(a.ID, a.UID)
}

// Has reports whether the object exists, see Action.Object: what was recorded about one that is
// gone is void.
func (s *Facts) Has(object string) bool {
	if s.Known[object] != nil || s.Observed.Instances[object] != nil || s.Pod != nil && string(s.Pod.UID) == object {
		return true
	}
	for _, i := range s.Observed.Instances {
		if i.Has(object) || slices.ContainsFunc(i.Sandboxes, func(b pleg.Sandbox) bool { return b.ID == object }) {
			return true
		}
	}
	return false
}

// OfDesired reports whether failures under a key concern the start of the desired version.
func OfDesired(key string, pod *manifests.Pod) bool {
	if key == SandboxFailure {
		return true
	}
	for k := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[k].Name == key {
			return true
		}
	}
	for k := range pod.Spec.Containers {
		if pod.Spec.Containers[k].Name == key {
			return true
		}
	}
	return false
}

// Makes reports whether the action creates something that must be removed later.
func (a Action) Makes() bool {
	return a.Do == DoCreateSandbox || a.Do == DoStartContainer || a.Do == DoResumeContainer
}

// gates reports whether the steps after the action wait for its success.
func (a Action) gates() bool {
	return !a.Beside && a.Do != DoStartContainer && a.Do != DoResumeContainer
}

// hold removes from a plan what already runs or is in back-off, what would conflict with another
// action on its sandbox, and the steps that wait for it.
func (s *Facts) hold(p *Plan) {
	busy := s.busy()
	for k := 0; k < len(p.Steps); k++ {
		var rest []Action
		blocked := false
		for _, a := range p.Steps[k] {
			if s.mayDo(p, a) && s.mayCall(p, busy, a) {
				rest = append(rest, a)
				continue
			}
			blocked = blocked || a.gates()
		}
		p.Steps[k] = rest
		if blocked {
			p.Steps = p.Steps[:k+1]
		}
		for _, a := range rest {
			if !a.Beside { // the next step waits for its end
				busy.end(a.Do, a.ID)
			}
		}
	}
	p.dropEmpty()
}

// mayCall reports whether no call is running on the action's sandbox or on something in it, and
// records that the action does something there.
func (s *Facts) mayCall(p *Plan, busy *busy, a Action) bool {
	if until := busy.until(a.Do, a.ID); s.Now.Before(until) {
		p.wakeAt(until)
		return false
	}
	busy.begin(a.Do, a.ID, s.Now)
	return true
}

func (s *Facts) mayDo(p *Plan, a Action) bool {
	if _, runs := s.Running[a.Key()]; runs {
		return false
	}
	if f := s.Failures[a.Key()]; s.Now.Before(f.Retry) {
		p.wakeAt(f.Retry)
		return false
	}
	if a.Do == DoForget { // what is still being created must be removed first
		for _, r := range s.Running {
			if r.UID == a.UID && r.Makes {
				return false
			}
		}
	}
	return true
}

// A sandbox that dies soon, or has no address, is created again at once the first time, and then at
// intervals that double up to remakeMax. A sandbox that lived for backOffReset resets that.
const remakeMax = time.Minute

// SandboxUnusable is the reason of a condition: sandboxes are created again and again.
const SandboxUnusable = "SandboxUnusable"

// Remade returns the failure state of sandboxes after one was created.
func (f Failure) Remade(now time.Time) Failure {
	made := 1
	if now.Sub(f.MadeAt) < backOffReset {
		made = f.Made + 1
	}
	next := Failure{Made: made, MadeAt: now}
	if made > 1 {
		next.Retry = now.Add(backoff.Between(RetryFirst, remakeMax, made+1))
	}
	return next
}

// Done returns the state after a success that the next observation should show. If it does not, the
// action is repeated, with a back-off as after failures.
func (f Failure) Done(now time.Time) Failure {
	return Failure{Count: f.Count + 1, Retry: now.Add(RetryAfter(f.Count))}
}

// Over reports whether the state is outdated: what was done was observed long ago. A record about
// an object stays as long as the object.
func (f Failure) Over(now time.Time) bool {
	return f.Object == "" && f.Reason == "" && f.Made == 0 && f.Busy.IsZero() && now.Sub(f.Retry) > RetryMax
}

// busyFor is how long the runtime may be busy with an object before that counts as a failure.
const busyFor = 30 * time.Second

// Failed returns the failure state after another failure. busy: the runtime works on the object for
// an earlier call; reserved: its name is taken. A name that stays taken belongs to another program,
// so the next number is tried.
func (f Failure) Failed(now time.Time, w Waiting, busy, reserved bool) Failure {
	f.Count++
	f.Retry = now.Add(RetryAfter(f.Count))
	if !busy {
		f.Waiting, f.Busy = w, time.Time{}
		return f
	}
	f.Retry = now.Add(RetryIn(f.Count)) // the other call ends soon
	if f.Busy.IsZero() {
		f.Busy = now
	}
	if now.Sub(f.Busy) >= busyFor {
		f.Waiting = w
		if reserved {
			f.Skip++
		}
	}
	return f
}

// dropEmpty drops the steps without actions.
func (p *Plan) dropEmpty() {
	p.Steps = slices.DeleteFunc(p.Steps, func(step []Action) bool { return len(step) == 0 })
}

// HangText returns since when the start of a container, or of the pod's sandbox, hangs; empty if it
// does not.
func (s *Facts) HangText(container string) message.Text {
	for _, key := range []string{container, SandboxFailure} {
		if r, runs := s.Running[key]; runs && s.Now.Sub(r.Since) >= slots.HangsAfter && !r.Since.IsZero() {
			return message.Of("the runtime has not answered since %s", message.Time(r.Since))
		}
	}
	return message.Text{}
}
