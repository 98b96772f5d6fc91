package pleg

import (
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/oom"
)

func TestWhatEndedForWantOfMemory(t *testing.T) {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	killed := Container{ID: "c1", State: rt.ContainerState_CONTAINER_EXITED, ExitCode: 137, Reason: "Error", Finished: end}
	for _, row := range []struct {
		name   string
		change func(*Container)
		at     time.Time // of the kill
		of     string
		reason string
		marked bool
	}{
		{"its first process, and the runtime does not know", func(*Container) {}, end, "c1", "OOMKilled", true},
		{"a process, whose end a shell passed on", func(*Container) {}, end.Add(-time.Second), "c1", "OOMKilled", true},
		{"a process, whose end the runtime saw first", func(*Container) {}, end.Add(3 * time.Second), "c1", "OOMKilled", true},
		{"a kill that was logged long after its end", func(*Container) {}, end.Add(time.Minute), "c1", "Error", false},
		{"a process, long before", func(*Container) {}, end.Add(-time.Minute), "c1", "Error", false},
		{"another container", func(*Container) {}, end, "c2", "Error", false},
		{"the runtime knows", func(n *Container) { n.Reason = "OOMKilled" }, end, "c1", "OOMKilled", true},
		{"the runtime knows, and it succeeded", func(n *Container) { n.Reason, n.ExitCode = "OOMKilled", 0 }, end, "c1", "OOMKilled", true},
		{"it ended in its own way", func(n *Container) { n.ExitCode = 1 }, end, "c1", "Error", true},
		{"it succeeded", func(n *Container) { n.ExitCode, n.Reason = 0, "Completed" }, end, "c1", "Completed", false},
		{"it never started", func(n *Container) { n.Reason = "StartError" }, end, "c1", "StartError", true},
		{"it was to stop", func(n *Container) { n.Kill = &checkpoint.KillDecision{} }, end, "c1", "Error", true},
		{"it runs", func(n *Container) { n.State, n.Reason = rt.ContainerState_CONTAINER_RUNNING, "" }, end, "c1", "", false},
		{"it is not known when it ended", func(n *Container) { n.Finished = time.Time{} }, end, "c1", "Error", false},
	} {
		i := Instance{Containers: []Container{killed}}
		n := &i.Containers[0]
		row.change(n)
		code := n.ExitCode
		for range 2 { // the same facts may be marked again
			i.MarkOOM(func(id string, _ time.Time) *oom.Kill {
				if id != row.of {
					return nil
				}
				return &oom.Kill{At: row.at}
			})
		}
		if n.Reason != row.reason || n.ExitCode != code || (n.OOM != nil) != row.marked {
			t.Errorf("%s: %s %d, kill %v", row.name, n.Reason, n.ExitCode, n.OOM)
		}
	}
}
