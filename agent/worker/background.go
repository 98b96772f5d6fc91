package worker

import (
	"monopod/agent/plan"
	"monopod/agent/pleg"
)

// startBackground begins those actions of a step that go on beside the worker, and
// returns the others. It reports whether the rest of the plan has to wait for
// the end of what was begun, which wakes the worker.
func (w *Worker) startBackground(s *plan.Facts, step []plan.Action) (rest []plan.Action, wait bool) {
	var stops, hooks []plan.Action
	for _, a := range step {
		switch a.Do {
		case plan.DoStopContainer:
			stops = append(stops, a)
			wait = wait || a.Whole
		case plan.DoRunPostStart:
			hooks = append(hooks, a)
		default:
			rest = append(rest, a)
		}
	}
	w.beginStops(s, stops)
	w.beginHooks(s, hooks)
	return rest, wait
}

// forgetFinished ends what goes on for containers that are not alive any more.
func (w *Worker) forgetFinished(seen *pleg.Observed) {
	alive := map[string]bool{}
	for _, i := range seen.Instances {
		for k := range i.Containers {
			alive[i.Containers[k].ID] = i.Containers[k].Alive()
		}
	}
	w.forgetStops(alive)
	w.forgetHooks(alive)
}
