package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// toldMore tells of an action what only some have.
func toldMore(a action) string {
	t := ""
	if a.PreStop != "" {
		t += " with preStop"
	}
	if len(a.Behind) > 0 {
		t += " behind " + strings.Join(slices.Sorted(slices.Values(a.Behind)), " ")
	}
	if len(a.Marks) > 0 {
		t += fmt.Sprint(" ", a.Marks)
	}
	if a.Verdict.Phase != "" {
		t += " " + string(a.Verdict.Phase)
	}
	if a.Verdict.Reason != "" {
		t += " " + a.Verdict.Reason
	}
	return t
}

// row is a situation and the plan that is made from it.
type row struct {
	name string
	scene
	want string
}

func checkPlans(t *testing.T, rows []row) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := told(plan(row.scene.situation())); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// hookedBy gives containers a postStart hook.
func hookedBy(p *v1.Pod, names ...string) *v1.Pod {
	for _, c := range allContainers(p) {
		if slices.Contains(names, c.Name) {
			c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}}
		}
	}
	return p
}

// posted says how a container's postStart hook stands.
func posted(id string, h hookState) func(*situation) {
	return func(s *situation) { s.PostStart = map[string]hookState{id: h} }
}

// noted says that the checkpoint knows a container's postStart hook as done.
func noted(name, id string) func(*situation) {
	return func(s *situation) { s.Known["u"] = s.Known["u"].hooked(name, id) }
}

// stops says of which containers a stop is under way, or is tried again.
func stops(all map[string]stopping) func(*situation) {
	return func(s *situation) { s.Stopping = all }
}

// deleted says since when the pod is being removed.
func deleted(ago time.Duration) func(*situation) {
	return func(s *situation) { s.Known["u"].Pod.DeletionTimestamp.Time = s.Now.Add(-ago) }
}

func preStops(c container) container {
	c.PreStop = `{"sleep":{"seconds":1}}`
	return c
}

func graced(c container, d time.Duration) container {
	c.Grace = d
	return c
}

func all(changes ...func(*situation)) func(*situation) {
	return func(s *situation) {
		for _, change := range changes {
			change(s)
		}
	}
}
