package critest

import (
	"fmt"
	"slices"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What happens to containers without anybody asking the runtime. which is an id,
// or a name: "container", "pod/container" or "namespace/pod/container" (for a
// sandbox "pod" or "namespace/pod"), meaning the newest of that name. A name
// that nothing has fails the test.

// Exit ends a running container as if its program had exited.
func (r *Runtime) Exit(which string, code int32) { r.exits(which, code, "") }

// OOM ends a running container as the kernel does when its memory limit is hit.
func (r *Runtime) OOM(which string) { r.exits(which, killedCode, "OOMKilled") }

func (r *Runtime) exits(which string, code int32, reason string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(which); c != nil && c.alive() {
		r.exit(c, code, reason)
		return
	}
	r.t.Errorf("critest: no container %q runs; there are:\n%s", which, r.describe())
}

// SetPID has the runtime report a process id as that of the container's first process.
func (r *Runtime) SetPID(which string, pid int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(which); c != nil {
		c.pid = pid
		return
	}
	r.t.Errorf("critest: no container %q; there are:\n%s", which, r.describe())
}

// LoseTrack makes a running container's state unknown to the runtime.
func (r *Runtime) LoseTrack(which string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(which); c != nil && c.alive() {
		c.state = rt.ContainerState_CONTAINER_UNKNOWN
		r.change()
		return
	}
	r.t.Errorf("critest: no container %q runs; there are:\n%s", which, r.describe())
}

// RemoveContainerBehindBack removes a container, killing it first.
func (r *Runtime) RemoveContainerBehindBack(which string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(which); c != nil {
		r.kill(c)
		r.removeContainer(c)
		return
	}
	r.t.Errorf("critest: no container %q; there are:\n%s", which, r.describe())
}

// KillSandbox ends a sandbox's own process: it is not ready any more, while its
// containers run on, as they do under containerd and runc.
func (r *Runtime) KillSandbox(which string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.findSandbox(which); b != nil {
		r.unready(b)
		return
	}
	r.t.Errorf("critest: no sandbox %q; there are:\n%s", which, r.describe())
}

// RemoveSandboxBehindBack removes a sandbox and its containers, killing them first.
func (r *Runtime) RemoveSandboxBehindBack(which string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.findSandbox(which); b != nil {
		r.stopSandbox(b)
		r.removeSandbox(b)
		return
	}
	r.t.Errorf("critest: no sandbox %q; there are:\n%s", which, r.describe())
}

// Reboot is a power cut of the machine: the runtime restarts, no sandbox is
// ready any more and what ran has ended with code 255, reason Unknown.
func (r *Runtime) Reboot() {
	r.Stop()
	r.mu.Lock()
	for _, c := range r.containers {
		r.exit(c, unknownCode, "Unknown")
	}
	for _, b := range r.sandboxes {
		r.unready(b)
	}
	r.mu.Unlock()
	r.Resume()
}

// find returns the newest container of that name or id, or nil. r.mu is held.
func (r *Runtime) find(which string) *container {
	var found *container
	for _, c := range r.containersInOrder() {
		if c.id == which || endsIn(c.name(), which) {
			found = c
		}
	}
	return found
}

// findSandbox: r.mu is held.
func (r *Runtime) findSandbox(which string) *sandbox {
	var found *sandbox
	for _, b := range r.sandboxesInOrder() {
		if b.id == which || endsIn(podName(b.config), which) {
			found = b
		}
	}
	return found
}

// noteDoubles writes down what is there twice now of a sandbox that has just come or
// got a container: its pod, its uid, and their containers. r.mu is held.
func (r *Runtime) noteDoubles(of *sandbox) {
	live := map[string][]string{} // what is live, to its ids
	pods := map[string]bool{}     // sandboxes that are live
	for _, c := range r.sorted(func(c *container) bool { return c.alive() && c.sandbox.isLike(of) }) {
		live["container "+c.name()] = append(live["container "+c.name()], c.id[:13])
		pods[c.sandbox.id] = true
	}
	for _, b := range r.sandboxesInOrder() {
		if b.isLike(of) && (b.ready || pods[b.id]) {
			for _, what := range []string{"pod " + podName(b.config), "uid " + b.config.GetMetadata().GetUid()} {
				live[what] = append(live[what], b.id[:13])
			}
		}
	}
	delete(live, "uid ") // of objects without a uid
	for what, ids := range live {
		if double := fmt.Sprintf("%s: %v", what, ids); len(ids) > 1 && !slices.Contains(r.doubles, double) {
			r.doubles = append(r.doubles, double)
		}
	}
}

// isLike reports whether both are of one pod name or of one uid.
func (b *sandbox) isLike(other *sandbox) bool {
	m, o := b.config.GetMetadata(), other.config.GetMetadata()
	return m.GetUid() == o.GetUid() || m.GetName() == o.GetName() && m.GetNamespace() == o.GetNamespace()
}
