package plan

import (
	"time"

	"monopod/agent/slots"
)

// busy has the sandboxes and containers on which calls are running. No plan has both kinds for one
// sandbox: if two removals meet, runtimes fail the second (CRI-O: "no such id", containerd: "is
// already in removing state"). A call that hangs blocks nothing.
type busy struct {
	sandboxOf map[string]string    // by container id
	at, in    map[string]time.Time // since when a call runs, by sandbox id
}

// busy returns the calls of earlier plans that are still running.
func (s *Facts) busy() *busy {
	b := &busy{sandboxOf: map[string]string{}, at: map[string]time.Time{}, in: map[string]time.Time{}}
	for _, i := range s.Observed.Instances {
		for k := range i.Containers {
			b.sandboxOf[i.Containers[k].ID] = i.Containers[k].Sandbox
		}
	}
	for _, r := range s.Running {
		since := r.Since
		if since.IsZero() { // it is queued
			since = s.Now
		}
		b.begin(r.Do, r.ID, since)
	}
	return b
}

// begin records that a call on a sandbox or a container has begun.
func (b *busy) begin(do verb, id string, since time.Time) {
	switch {
	case do.ofSandbox():
		b.at[id] = since
	case do.ofContainer():
		b.in[b.sandboxOf[id]] = since
	}
}

// end records that the call has ended.
func (b *busy) end(do verb, id string) {
	switch {
	case do.ofSandbox():
		delete(b.at, id)
	case do.ofContainer():
		delete(b.in, b.sandboxOf[id])
	}
}

// until returns until when a call waits for another one; zero: it need not wait.
func (b *busy) until(do verb, id string) time.Time {
	var since time.Time
	switch {
	case do.ofSandbox():
		since = b.in[id]
	case do.ofContainer():
		since = b.at[b.sandboxOf[id]]
	}
	if since.IsZero() {
		return since
	}
	return since.Add(slots.HangsAfter)
}

// ofSandbox reports whether it is a runtime call on an existing sandbox.
func (v verb) ofSandbox() bool { return v == DoStopSandbox || v == DoRemoveSandbox }

// ofContainer reports whether it is a runtime call on an existing container.
func (v verb) ofContainer() bool {
	return v == DoStopContainer || v == DoRemoveContainer || v == DoResumeContainer || v == DoResize
}
