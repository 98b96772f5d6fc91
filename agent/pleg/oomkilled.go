package pleg

import (
	"time"

	"monopod/agent/oom"
)

// The end of a container that the kernel killed, as runtimes report it.
const (
	reasonError     = "Error"
	reasonOOMKilled = "OOMKilled"
	killedCode      = 128 + 9 // SIGKILL, of the container's first process or as a shell passes it on
)

// oomEnds is how long before or after its end a container was killed that ended by a kill for want of
// memory: the kernel frees the memory of the process first, and the clock may have been set.
const oomEnds = 3 * time.Second

// MarkOOM sets by which kills for want of memory the containers ended. last returns the last one in
// the container with an id, which ended at a time.
//
// Runtimes that learn of such a kill report the reason OOMKilled, of which the kubelet's is a copy.
// They do not learn of all: of one because the machine ran out of memory with cgroup v1; of one just
// before the container's cgroup was removed. What ended with the exit code of a killed process, within
// moments of such a kill in that very container, and was not stopped by a decision, gets the reason,
// too; the runtime's exit code stays. No other reason is changed.
func (i *Instance) MarkOOM(last func(id string, ended time.Time) *oom.Kill) {
	for k := range i.Containers {
		n := &i.Containers[k]
		if !n.Exited() || n.ExitCode == 0 && n.Reason != reasonOOMKilled {
			continue
		}
		if n.Finished.IsZero() {
			continue
		}
		kill := last(n.ID, n.Finished)
		if kill == nil || kill.At.Sub(n.Finished).Abs() > oomEnds {
			continue
		}
		n.OOM = kill
		if n.Reason == reasonError && n.ExitCode == killedCode && n.Kill == nil {
			n.Reason = reasonOOMKilled
		}
	}
}
