package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
)

type scene = plantest.Scene

var (
	noon        = plantest.Noon
	pod         = plantest.Pod
	withInit    = plantest.WithInit
	withSidecar = plantest.WithSidecar
	probed      = plantest.Probed
	world       = plantest.World
	up          = plantest.Up
	exit        = plantest.Exit
	in          = plantest.In
	with        = plantest.With
	condemned   = plantest.Condemned
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

// decided is what is told of the plan for s. No plan may have an action at a sandbox beside
// one at something in it.
func decided(t *testing.T, s plan.Facts) string {
	t.Helper()
	p := plan.Make(s)
	sandbox := map[string]string{}
	for _, i := range s.Observed.Instances {
		for _, c := range i.Containers {
			sandbox[c.ID] = c.Sandbox
		}
	}
	beside := map[string]bool{} // sandboxes at which, or in which, something is done that no later step waits for
	for _, step := range p.Steps {
		at, in := map[string]bool{}, maps.Clone(beside)
		for _, a := range step {
			switch a.Do {
			case plan.DoStopSandbox, plan.DoRemoveSandbox:
				at[a.ID] = true
			case plan.DoRemoveContainer, plan.DoStopContainer, plan.DoResumeContainer, plan.DoResize:
				in[sandbox[a.ID]] = true
				beside[sandbox[a.ID]] = beside[sandbox[a.ID]] || a.Beside
			}
		}
		for id := range at {
			if in[id] {
				t.Errorf("something is done at sandbox %s beside something in it: %s", id, told(p))
			}
		}
	}
	return told(p)
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
			if got := decided(t, row.scene.Facts()); got != row.want {
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
