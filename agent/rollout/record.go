// Package rollout decides which version of a pod runs.
//
// Record is all that is known of one pod name, World the rest of the input, and Decide a pure
// function of the two: what runs, what is prepared beside it, and what waits. The sync loop fills
// the record, calls Decide, and carries out the decision.
package rollout

import (
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/prepare"
	"monopod/manifests"
)

// Record is all that is known of one pod name. The sync loop's goroutine owns it.
type Record struct {
	Key manifests.Key

	Given   *manifests.Pod // the version as its manifest gives it; nil: none
	Offered *manifests.Pod // the desired version, with the uid that it has or gets: Given, or a former one in its place; nil: none
	Gone    bool           // it is certain that no manifest gives the pod; if false and Offered is nil, it is not known yet
	Read    time.Time      // when that version was first read
	Kept    Kept           // how it got its uid, if the uid is not from its manifest

	Accepted *manifests.Pod // the version that may run and has its room; nil: none, or it is being removed
	Over     bool           // the accepted version has ended
	Started  Version        // the version that was started last, in this boot; zero: none
	Trial    *Trial         // of the offered version, or of its failed successor; nil: none
	Proof    Proof          // whether the running version works

	Coming  Version // the version that takes, or took, the place of one that ran, once it had all that it needs; zero: none
	Between bool    // its former version was stopped for its next one, which has not started yet

	Stop  *Stop                             // the owner stopped the pod; nil: not stopped
	Hold  *hold.Hold                        // the owner forbids changes; nil: no hold
	Back  bool                              // the offered version is the former one, after its successor failed
	Order Order                             // the place of the offered version in the start order
	Lock  Lock                              // of the accepted version, while a change of it waits
	Left  map[string]*checkpoint.Checkpoint // checkpoints of previous agents, by uid, until a worker takes them
	Stray bool                              // the runtime has something of it that neither a worker nor a checkpoint knows

	Prepared prepare.State // the state of the version that is prepared
	Lasting  bool          // that version waits for more than its pulls, or waited before this agent started

	Works bool     // there is a worker
	Now   Decision // the decision that was carried out last
	Seen  Seen     // what the worker reported of it
}

// Kept is a version that replaces the running one in place: as its manifest gives it, and with the
// uid of the pod. The zero value: none.
type Kept struct{ Offered, Pod *manifests.Pod }

// Stop is the state of a pod that its owner stopped.
type Stop struct {
	Version *manifests.Pod // the version whose volumes are kept; nil: none
	Over    bool           // that version had ended before
	Starts  bool           // the pod is to run again, but may not start yet
}

// Seen is what a worker reported of the decision that it received last.
type Seen struct {
	Ready    bool   // pods that start after this one may start
	Unmade   bool   // no container of the desired version was ever created
	Idle     bool   // nothing of it runs or will run
	Outdated string // the changed object for which its containers are to restart; "": none

	// Uncommitted is why the disk does not record the desired version as the running one, so that
	// the former one runs on; "": it is recorded, or this was not tried yet.
	Uncommitted string
}

// Running returns the accepted version, unless it has ended; nil: there is none.
func (r *Record) Running() *manifests.Pod {
	if r.Over {
		return nil
	}
	return r.Accepted
}

// IsHalted reports whether the pod is stopped until its owner starts it.
func (r *Record) IsHalted() bool { return r.Stop != nil && !r.Stop.Starts }

// IsPrepared reports whether the offered version is the prepared one, and has what it needs.
func (r *Record) IsPrepared() bool {
	return r.Works && r.Prepared.Ready && r.Prepared.Is(r.Offered) && manifests.Same(r.Now.Prepare, r.Offered)
}

// IsComing reports whether a version takes, or took, the place of one that ran, once it had all that it
// needs: it is to start even if nothing of it was made yet and another one is offered.
func (r *Record) IsComing(p *manifests.Pod) bool { return p != nil && r.Coming == VersionOf(p) }

// HasAnything reports whether anything of the name must be remembered.
func (r *Record) HasAnything() bool {
	return r.Offered != nil || r.Works || r.Left != nil || r.Stray || r.Stop != nil || r.Trial != nil
}

// IsThere reports whether anything of the pod may exist on the node, with or without a worker.
func (r *Record) IsThere() bool { return r.Works || r.isLeft() }

func (r *Record) isLeft() bool { return r.Left != nil || r.Stray }
