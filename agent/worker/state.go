package worker

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/plan"
	"monopod/agent/podimages"
	"monopod/agent/podstatus"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

// State is what a worker reports to the sync loop of its pod.
type State struct {
	Key        manifests.Key
	UID        types.UID // of the desired pod, "" without one
	Generation uint64    // of the update
	Cleared    bool      // nothing of previous versions is left, but what has the uid of the desired pod
	RunsFormer bool      // containers of a previous version with that uid run still
	Ended      bool      // the desired pod has ended and is not restarted
	Ready      bool      // pods that start after the desired pod may start
	Gone       bool      // nothing is left, and no pod is desired
	Halted     bool      // nothing is left of the desired pod, which is not to run
	Unmade     bool      // no container of the desired pod was ever created
	Outdated   string    // the object for whose change its containers are to restart; "": none

	Health update.Health // of the desired pod

	// OfCommit is of a state that has only Uncommitted: why the update's version is not on disk as
	// the one that runs, so that the one before runs; "": it is now.
	OfCommit    bool
	Uncommitted string
}

// state reports to the sync loop when the pod takes less of the node than before.
func (r *reporter) state(ctx context.Context, s *plan.Facts) {
	now := State{Key: r.pod.key, Generation: r.pod.current.Generation, Cleared: len(s.Leaving()) == 0}
	if s.Pod != nil {
		now.UID, now.RunsFormer = s.Pod.UID, s.RunsFormer()
		now.Ended = now.Cleared && s.Checkpoint().Ended() != ""
		now.Halted = s.IsHalted()
		now.Ready = now.Cleared && s.Halted.Reason == "" && podstatus.IsReady(r.lastStatus(string(s.Pod.UID)))
		if now.Cleared {
			now.Outdated = s.Outdated()
		}
		now.Unmade = !now.Cleared || !s.Made(r.lastStatus(string(s.Pod.UID)))
		if now.Cleared {
			now.Health = health(s, r.lastStatus(string(s.Pod.UID)), now.Ready, now.Unmade)
		}
	}
	switch {
	case now == r.sent:
	case now.Cleared || r.pod.current.Next != nil:
		r.send(ctx, now)
	default: // not sent; the next cleared state is sent again
		r.sent = now
	}
}

// health returns what is known of the desired pod once nothing of other versions is left.
func health(s *plan.Facts, st *v1.PodStatus, isReady, isUnmade bool) update.Health {
	if !s.FollowsDesired() {
		return update.Health{}
	}
	_, offline := s.NetworkWait()
	h := update.HealthOf(s.Pod.Pod, st, isReady)
	h.Waits = offline || isUnmade && s.Failures[plan.SandboxFailure].IsDisk || s.AwaitsImage(st)
	h.Excused = s.RestartsByOthers()
	return h
}

func (r *reporter) send(ctx context.Context, now State) {
	select {
	case r.pod.shared.States <- now:
		r.sent = now
	case <-ctx.Done():
	}
}

// Update is the desired state of a worker's pod.
type Update struct {
	Pod        *manifests.Pod   // nil: everything of it must go
	Exchanges  bool             // Pod is nil only because other pods wait for what it has, as it does for what they have
	Images     *podimages.Ready // what was fetched for Pod while another version ran; nil: nothing
	Next       *manifests.Pod   // is prepared while Pod runs; nil: none
	Starts     bool             // Pod starts even if nothing of it was made before Next came
	Waits      string           // what the next version, or the removal of Pod, waits for; "": nothing
	Pull       status.Pull      // the image of that which is pulled again; zero: none
	Told       string           // any other note on Pod; "": none
	Restarts   bool             // containers of Pod may restart for changed config
	Restart    string           // what such a restart waits for; "": nothing
	IsBack     bool             // Pod is the former version, whose successor failed
	Kept       string           // why Pod must not replace the version that runs until the disk has it; "": it may
	Halted     plan.Halt        // why nothing of Pod is to run though it stays; zero: it runs
	Generation uint64           // counts the updates of all workers; States repeat it
	Read       time.Time        // when this version was first read; zero: not known
}

// Says reports whether two updates are equal but for the generation.
func (u *Update) Says(o *Update) bool {
	return manifests.Same(u.Pod, o.Pod) && manifests.Same(u.Next, o.Next) && u.Starts == o.Starts && u.IsBack == o.IsBack && u.Waits == o.Waits && u.Pull == o.Pull && u.Restarts == o.Restarts && u.Restart == o.Restart &&
		u.Told == o.Told && u.Kept == o.Kept && u.Halted == o.Halted && u.Exchanges == o.Exchanges
}

// switchTo forgets the state of another update.
func (w *Worker) switchTo(u Update) {
	if w.pod.current == u {
		return
	}
	former, halted := w.pod.current.Pod, w.pod.current.Halted
	w.pod.current = u
	if former != nil && manifests.Same(former, u.Pod) && halted == u.Halted {
		return // only what waits has changed
	}
	w.fetches.Become(&v1.Pod{}, nil)
	if u.Images != nil && u.Pod != nil {
		w.fetches.Become(u.Pod.Pod, *u.Images)
	}
	w.start.made, w.report.start = nil, time.Time{}
	if former == nil || u.Pod == nil || former.UID != u.Pod.UID {
		w.hooks.forget(nil)
	}
	maps.DeleteFunc(w.failures, func(key string, _ plan.Failure) bool {
		return former != nil && plan.OfDesired(key, former)
	})
}
