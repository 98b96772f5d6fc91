// Package podhosts lists all pods of the machine in the hosts file of each.
package podhosts

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/backoff"
	"monopod/agent/checkpoint"
	"monopod/agent/panics"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/agent/status"
	"monopod/agent/wake"
	"monopod/manifests"
)

const (
	// gather is the time in which changes of several pods are combined into one pass; a pass that
	// takes long is followed by a pause of pauses times its duration.
	gather = 200 * time.Millisecond
	pauses = 10
)

// Config is what a Keeper needs.
type Config struct {
	Store  *status.Store
	Root   string                   // the agent's root dir
	Host   func() *podspec.Host     // the machine at present
	Suffix string                   // the suffix that the node adds to the names of pods
	On     func() bool              // whether pods are listed in each other's files
	Former []*checkpoint.Checkpoint // checkpoints of previous agents
	Fault  func()                   // called for each panic
	Log    *slog.Logger
}

// Keeper writes the hosts files of pods: when a container starts, and in place while
// containers have it mounted. Any goroutine may call its methods.
type Keeper struct {
	config Config
	woken  wake.Slot
	seed   maphash.Seed
	said   saidonce.Error // errors of passes that were logged; Run's goroutine owns it

	mu     sync.Mutex      // guards what follows, and is held while a file is written
	former []manifests.Key // pods of previous agents that this one has not reported yet
	pods   []reader        // the pods with an address at the last look
	names  podspec.PodNames
	files  map[types.UID]*file
	done   uint64 // the sum of what all files have; 0: some may not have it
}

// file is the state of the hosts file of a pod.
type file struct {
	sum  uint64         // of its section; 0: not known
	ips  []string       // of the last created sandbox; nil: the reported ones count
	said saidonce.Error // the logged error why it is not up to date
}

// reader is a pod whose hosts file lists pods.
type reader struct {
	*v1.Pod
	ips []string // its own
}

// New returns a Keeper, which updates files while it runs.
func New(c Config) *Keeper {
	k := &Keeper{config: c, woken: wake.New(), seed: maphash.MakeSeed(), files: map[types.UID]*file{}}
	seen := map[manifests.Key]bool{}
	for _, c := range c.Former {
		if key := c.Key(); !seen[key] {
			seen[key] = true
			k.former = append(k.former, key)
		}
	}
	k.config.Former = nil
	return k
}

// Wake makes the Keeper check whether pods are to be listed.
func (k *Keeper) Wake() { k.woken.Wake() }

// Run updates the files of running pods after each change, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	changes, failed := k.config.Store.Changes(), 0
	for {
		began := time.Now()
		var retry <-chan time.Time
		if k.pass(ctx) {
			failed = 0
		} else {
			failed++
			retry = time.After(backoff.After(failed))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(gather, pauses*time.Since(began))):
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-k.woken:
		case <-retry:
		}
	}
}

// pass updates the files of all pods for which something has changed. It returns false if some must
// be retried.
func (k *Keeper) pass(ctx context.Context) (done bool) {
	var all []reader
	var sum uint64
	if err := panics.Contain(func() { all, sum = k.readers() }); err != nil {
		k.say(&k.said, err, "pods are not named to each other; trying again")
		return false
	}
	done = true
	for _, r := range all {
		if ctx.Err() != nil {
			return true
		}
		done = k.try(r) && done
	}
	if done && sum != 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.done = sum
	}
	return done
}

// readers returns the pods whose files may have to change, and the sum of the required content; 0:
// they have it already.
func (k *Keeper) readers() ([]reader, uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.config.On() && k.done == k.sumOff() { // no file lists a pod
		return nil, 0
	}
	k.look()
	sum := k.sum()
	if sum == k.done {
		return nil, 0
	}
	k.done = 0
	return k.pods, sum
}

// try updates the file of a pod, and logs once why that fails. It returns false if it must be
// retried.
func (k *Keeper) try(r reader) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.update(r)
	left, text := isForeign(err), "hosts file is not up to date; trying again"
	if left {
		text = "hosts file is left alone until a container of the pod starts: names of pods in it may be out of date"
	}
	k.say(&k.fileOf(r.UID).said, err, text, "pod", manifests.KeyOf(r.Pod).String())
	return err == nil || left
}

// say logs an error once.
func (k *Keeper) say(said *saidonce.Error, err error, text string, about ...any) {
	if panics.In(err) != nil {
		k.config.Fault()
	}
	if said.IsNew(err) {
		k.config.Log.Warn(text, append(about, panics.Logged(err)...)...)
	}
}

// fileOf returns the state of a pod's file. k.mu is held.
func (k *Keeper) fileOf(uid types.UID) *file {
	f := k.files[uid]
	if f == nil {
		f = &file{}
		k.files[uid] = f
	}
	return f
}

// isForeign reports whether an error means that a file must not be changed: a retry does not help.
func isForeign(err error) bool {
	for _, foreign := range foreign {
		if errors.Is(err, foreign) {
			return true
		}
	}
	return false
}
