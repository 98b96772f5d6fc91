package agent

import (
	"context"
	"slices"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/plan"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/agent/worker"
	"monopod/manifests"
)

// halted is a pod that runs nothing: it is stopped, or started again and not admitted yet.
type halted struct {
	version *manifests.Pod // of which the volumes are kept; nil: none
	starts  bool
}

// stoppedWhy is what is reported of a stopped pod.
var stoppedWhy = plan.Waiting{Reason: status.ReasonStopped, Message: "stopped by request; `monopod start` runs it again"}

// setHolds takes over the record of a previous agent, before the first snapshot.
func (l *syncLoop) setHolds(s *hold.Store, rules func() hold.Rules, checkpoints []*checkpoint.Checkpoint) {
	l.holds, l.gates.Store, l.gates.Rules = s, s, rules
	versions := map[manifests.Key]*manifests.Pod{}
	for _, p := range checkpoint.LastGood(checkpoints) {
		versions[p.Key()] = p
	}
	for name, stop := range s.State().Stopped {
		key := hold.KeyOf(name)
		l.halted[key] = &halted{versions[key], stop.Starts}
		l.table.Free(key) // another pod may have taken its allocation
	}
}

// requests answers what the owner asks for.
func (l *syncLoop) requests(node string) *hold.Requests {
	return &hold.Requests{Store: l.holds, Pods: l.store, Events: l.shared.Events, Log: l.shared.Log, Node: node, Changed: l.holdsChanged,
		Desired: func(key manifests.Key) bool { return l.desired.Names()[key.String()] }}
}

// holdsChanged makes the loop look at the record of holds again. Any goroutine may call it.
func (l *syncLoop) holdsChanged() {
	select {
	case l.asked <- struct{}{}:
	default:
	}
}

// handleHolds stops and starts the pods of which the record says so.
func (l *syncLoop) handleHolds(ctx context.Context) {
	now := l.holds.State()
	for name, stop := range now.Stopped {
		key := hold.KeyOf(name)
		h := l.halted[key]
		if a := l.desired.Of(key); a != nil && (h == nil || h.starts != stop.Starts) {
			if h == nil {
				h = &halted{version: l.desiredOf(key)}
				l.halted[key] = h
			}
			if h.starts = stop.Starts; !stop.Starts {
				l.order.Forget(key)
			}
			for _, p := range l.holdDependents([]*manifests.Pod{a.Pod}) {
				l.admit(ctx, p)
			}
			l.stale = true
		}
	}
	l.dropStops(nil)
	l.gatesChanged(ctx)
}

// keepsStopped reports whether a desired pod is stopped, and lets nothing of it run then.
func (l *syncLoop) keepsStopped(ctx context.Context, key manifests.Key) bool {
	h := l.halted[key]
	if h == nil || h.starts {
		return false
	}
	l.gates.Forget(key)
	l.table.Withdraw(key)
	l.table.Free(key)
	l.halt(ctx, key, stoppedWhy)
	return true
}

// halt lets nothing of a pod run, and keeps its volumes.
func (l *syncLoop) halt(ctx context.Context, key manifests.Key, why plan.Waiting) {
	if v := l.halted[key].version; v != nil {
		l.send(ctx, key, worker.Update{Pod: v, Halted: plan.Halt{Waiting: why}})
		return
	}
	if l.restored[key] != nil { // which is going
		l.setDesired(ctx, key, nil)
	}
	l.refused[key] = true // is reported by the loop
}

// startHalted ends the halt of a pod of which a version was admitted; nil: it waits on. It
// reports whether that is so.
func (l *syncLoop) startHalted(ctx context.Context, key manifests.Key, version *manifests.Pod) (waits bool) {
	h := l.halted[key]
	if h == nil {
		return false
	}
	if version == nil {
		r, _ := l.table.Rejected(key)
		l.halt(ctx, key, plan.Waiting{Reason: r.Reason, Message: r.Message})
		return true
	}
	l.dropStops([]manifests.Key{key})
	return false
}

// dropStops forgets stops: those of these pods, and of pods of which is sure that no
// manifest gives them.
func (l *syncLoop) dropStops(of []manifests.Key) {
	over := map[string]hold.Stop{}
	for name, stop := range l.holds.State().Stopped {
		key := hold.KeyOf(name)
		if slices.Contains(of, key) || l.last != nil && l.last.Complete && !l.desired.Has(key) {
			over[name] = stop
			delete(l.halted, key)
		}
	}
	for _, key := range of {
		delete(l.halted, key)
	}
	if len(over) == 0 {
		return
	}
	l.running.Go(func() {
		err := l.holds.Change(func(s *hold.State) {
			for name, stop := range over {
				if s.Stopped[name] == stop { // and not stopped again meanwhile
					delete(s.Stopped, name)
				}
			}
		})
		if err != nil {
			l.shared.Log.Error("pods that are not stopped any more are still recorded as such", "err", err)
		}
	})
}

// reportStopped reports a stopped pod that has no worker.
func (l *syncLoop) reportStopped(key manifests.Key) {
	h, a := l.halted[key], l.desired.Of(key)
	if h == nil || h.starts || a == nil || l.workers[key] != nil {
		return
	}
	_ = l.contained(a.Pod.Pod, "report the pod", func() {
		out := *a.Pod.Pod
		out.Status = podstatus.HaltedStatus(a.Pod, stoppedWhy)
		l.store.SetPod(key.String(), &out)
	})
}
