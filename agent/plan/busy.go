package plan

import (
	"time"

	"monopod/agent/slots"
)

// busy is where something is being done: at sandboxes, and at containers in them. No plan
// has both for one sandbox: of two removals that meet, runtimes fail the second (CRI-O:
// "no such id", containerd: "is already in removing state"). A call that hangs keeps
// nothing waiting.
type busy struct {
	sandboxOf map[string]string    // by container id
	at, in    map[string]time.Time // since when, by sandbox id
}

// busy returns where something is being done that an earlier plan began.
func (s *Facts) busy() *busy {
	b := &busy{sandboxOf: map[string]string{}, at: map[string]time.Time{}, in: map[string]time.Time{}}
	for _, i := range s.Observed.Instances {
		for k := range i.Containers {
			b.sandboxOf[i.Containers[k].ID] = i.Containers[k].Sandbox
		}
	}
	for _, r := range s.Running {
		since := r.Since
		if since.IsZero() { // its turn comes
			since = s.Now
		}
		b.begin(r.Do, r.ID, since)
	}
	return b
}

// begin notes that something is done at a sandbox or a container from then on.
func (b *busy) begin(do verb, id string, since time.Time) {
	switch {
	case do.ofSandbox():
		b.at[id] = since
	case do.ofContainer():
		b.in[b.sandboxOf[id]] = since
	}
}

// end notes that it is done.
func (b *busy) end(do verb, id string) {
	switch {
	case do.ofSandbox():
		delete(b.at, id)
	case do.ofContainer():
		delete(b.in, b.sandboxOf[id])
	}
}

// until returns until when a call waits for another one; zero: for none.
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

// ofSandbox reports whether it is a call of the runtime about a sandbox that is there.
func (v verb) ofSandbox() bool { return v == DoStopSandbox || v == DoRemoveSandbox }

// ofContainer reports whether it is a call of the runtime about a container that is there.
func (v verb) ofContainer() bool {
	return v == DoStopContainer || v == DoRemoveContainer || v == DoResumeContainer || v == DoResize
}
