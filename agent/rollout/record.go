// Package rollout decides which version of a pod runs.
//
// Record is all that is known of one pod name, World what else matters, and Decide a pure
// function of the two: what is to run, what is prepared beside it, and what waits. The sync
// loop gathers the one, asks, and carries out the answer.
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
	Gone    bool           // no manifest gives the pod, which is proven; else, without a version, it is not known yet
	Read    time.Time      // when that version was first read
	Kept    Kept           // how it got its uid, if not from its manifest

	Accepted *manifests.Pod // the version that was let start and has its room; nil: none, or it is to go
	Over     bool           // it has ended
	Started  Version        // the version that was let start last, in this boot; zero: none
	Trial    *Trial         // it is on trial, or its successor was; nil: neither
	Proof    Proof          // whether it works

	Stop  *Stop                             // the owner's wish that nothing of the pod runs; nil: there is none
	Hold  *hold.Hold                        // and that nothing of it is changed; nil: there is none
	Back  bool                              // the offered version is the former one, which comes back as its successor failed
	Order Order                             // the place of the offered version in the start order
	Lock  Lock                              // of the accepted version, while a change of it waits
	Left  map[string]*checkpoint.Checkpoint // of previous agents, by uid, until a worker has them
	Stray bool                              // the runtime has something of it that neither a worker nor a previous agent knows

	Prepared prepare.State // of the version that is prepared
	Lasting  bool          // that waits for more than its pulls, or since before this agent

	Works bool     // there is a worker
	Now   Decision // as it was carried out last
	Seen  Seen     // what the worker said of that
}

// Kept is a version that takes a pod's place in place: as its manifest gives it, and with the
// uid of the pod. The zero value is none.
type Kept struct{ Offered, Pod *manifests.Pod }

// Stop is a pod of which nothing runs, as its owner wishes.
type Stop struct {
	Version *manifests.Pod // of which the volumes are kept; nil: none
	Over    bool           // that version had ended
	Starts  bool           // it is to run again, and was not let start yet
}

// Seen is what a worker said of the decision that it was given last.
type Seen struct {
	Ready    bool   // pods that start after this one may start
	Unmade   bool   // no container of the version that is to run was ever made
	Idle     bool   // nothing of it runs, or is going to
	Outdated string // the object for whose change containers of it are to restart; "": none is

	// Uncommitted is why the version that is to run is not on disk as the one that does, so that the
	// one before runs on; "": it is, or it was not tried yet.
	Uncommitted string
}

// Running returns the accepted version, unless it has ended; nil: there is none.
func (r *Record) Running() *manifests.Pod {
	if r.Over {
		return nil
	}
	return r.Accepted
}

// IsHalted reports whether nothing of the pod is to run until its owner says so.
func (r *Record) IsHalted() bool { return r.Stop != nil && !r.Stop.Starts }

// IsPrepared reports whether the offered version is the one that is prepared, and has what it
// needs.
func (r *Record) IsPrepared() bool {
	return r.Works && r.Prepared.Ready && r.Prepared.Is(r.Offered) && manifests.Same(r.Now.Prepare, r.Offered)
}

// HasAnything reports whether there is anything to remember of the name.
func (r *Record) HasAnything() bool {
	return r.Offered != nil || r.Works || r.Left != nil || r.Stray || r.Stop != nil || r.Trial != nil
}

// IsThere reports whether anything of the pod may be there: a worker has it, or none has yet.
func (r *Record) IsThere() bool { return r.Works || r.isLeft() }

func (r *Record) isLeft() bool { return r.Left != nil || r.Stray }
