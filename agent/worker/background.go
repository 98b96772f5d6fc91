package worker

import (
	"monopod/agent/plan"
	"monopod/agent/pleg"
)

// startBackground starts the actions of a step that run in the background, and
// returns the others. It reports whether the rest of the plan must wait for the
// end of those, which wakes the worker.
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
	w.startStops(s, stops)
	w.startHooks(s, hooks)
	return rest, wait
}

// forgetFinished ends the stops and hooks of containers that are no longer alive.
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
