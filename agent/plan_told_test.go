package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

// toldMore tells of an action what only some have.
func toldMore(a plan.Action) string {
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
			if got := told(plan.Make(row.scene.situation())); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

// hookedBy gives containers a postStart hook.
func hookedBy(p *v1.Pod, names ...string) *v1.Pod {
	for _, c := range podspec.AllContainers(p) {
		if slices.Contains(names, c.Name) {
			c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}}
		}
	}
	return p
}

// posted says how a container's postStart hook stands.
func posted(id string, h plan.HookState) func(*plan.Facts) {
	return func(s *plan.Facts) { s.PostStart = map[string]plan.HookState{id: h} }
}

// noted says that the checkpoint knows a container's postStart hook as done.
func noted(name, id string) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Known["u"] = s.Known["u"].WithHookDone(name, id) }
}

// stops says of which containers a stop is under way, or is tried again.
func stops(all map[string]plan.Stopping) func(*plan.Facts) {
	return func(s *plan.Facts) { s.Stopping = all }
}

// deleted says since when the pod is being removed.
func deleted(ago time.Duration) func(*plan.Facts) {
	return func(s *plan.Facts) {
		s.Mark = checkpoint.Mark{Boot: "b", Up: 48 * time.Hour}
		s.Known["u"].Removed = &checkpoint.Mark{Boot: "b", Up: s.Mark.Up - ago}
	}
}

func preStops(c pleg.Container) pleg.Container {
	c.PreStop = `{"sleep":{"seconds":1}}`
	return c
}

func graced(c pleg.Container, d time.Duration) pleg.Container {
	c.Grace = d
	return c
}

func all(changes ...func(*plan.Facts)) func(*plan.Facts) {
	return func(s *plan.Facts) {
		for _, change := range changes {
			change(s)
		}
	}
}
