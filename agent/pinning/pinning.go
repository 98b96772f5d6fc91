// Package pinning keeps containers on the CPUs that are theirs.
package pinning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cpus"
	"monopod/agent/disk"
	"monopod/agent/saidonce"
	"monopod/agent/wake"
)

// Settings configure a Keeper.
type Settings struct {
	Policy cpus.Settings
	Every  time.Duration // between two checks of what running containers have
	System string        // where Linux describes the CPUs: cpus.System
	Path   string        // of the file of the assignments, as a kubelet writes it
}

// Runtime has the containers.
type Runtime interface {
	// Running returns the agent's containers that run.
	Running(ctx context.Context) ([]cpus.Running, error)
	// Pin makes a running container run on these CPUs only.
	Pin(ctx context.Context, id, list string) error
}

// Keeper has the assignments of CPUs. Any goroutine may use it. With nil, and with the policy none,
// containers run on all CPUs, and no method does anything.
type Keeper struct {
	// Assigned is called with how many containers of a pod were assigned CPUs of their own. It may be
	// set before the first pod.
	Assigned func(containers int)

	settings Settings
	policy   *cpus.Policy
	runtime  Runtime
	log      *slog.Logger
	changed  wake.Slot
	failed   saidonce.Errors // updates of containers, by id, and writes of the file, ""

	mu      sync.Mutex
	table   *cpus.Table
	sent    map[string]string // the CPUs that containers were made with or got last, by id
	written string            // the content of the file, if it is as the table
}

// New returns the keeper with the assignments of the agent before. A file that is damaged, or of
// another machine or policy, is reported, and the assignments are made again. The error is a
// sentence about settings that are wrong on this machine.
func New(s Settings, r Runtime, log *slog.Logger, event func(reason, message string)) (*Keeper, error) {
	if s.Policy.Policy != cpus.Static {
		return nil, nil
	}
	m, err := cpus.Read(s.System)
	if err != nil {
		return nil, fmt.Errorf("cpuManagerPolicy static: %w", err)
	}
	policy, err := cpus.NewPolicy(m, s.Policy)
	if err != nil {
		return nil, fmt.Errorf("cpuManagerPolicy static: %w", err)
	}
	k := &Keeper{Assigned: func(int) {}, settings: s, policy: policy, runtime: r, log: log, changed: wake.New(), sent: map[string]string{}}
	k.table, err = restore(policy, s.Path)
	if err != nil {
		k.table = cpus.NewTable(policy)
		log.Warn("the recorded CPU assignments do not hold; CPUs are assigned again", "file", s.Path, "err", err)
		event("CPUAssignmentsDiscarded", fmt.Sprintf("CPUs are assigned again, as the recorded assignments do not hold: %v", err))
	}
	k.changed.Wake()
	return k, nil
}

// restore reads the file of the assignments.
func restore(policy *cpus.Policy, path string) (*cpus.Table, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cpus.NewTable(policy), nil
	}
	if err != nil {
		return nil, err
	}
	return policy.Restore(text)
}

// Room returns why the pod cannot have the CPUs that it requests; nil: it can. former are the uids
// of what ends before the pod starts.
func (k *Keeper) Room(p *v1.Pod, former []string) *cpus.Refusal {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.Clone().Admit(string(p.UID), cpus.Requests(p), former...)
}

// RoomTogether returns why the last of the pods cannot have the CPUs that it requests once those
// before it have theirs; nil: it can. former are the uids of what ends before all of them start.
func (k *Keeper) RoomTogether(pods []*v1.Pod, former []string) (refusal *cpus.Refusal) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.Clone()
	next.Keep(func(uid, _ string) bool { return !slices.Contains(former, uid) })
	for _, p := range pods {
		refusal = next.Admit(string(p.UID), cpus.Requests(p))
	}
	return refusal
}

// Take assigns the pod the CPUs that it requests, or returns why it cannot have them. What another
// version with this uid had, and the pod has no more, is freed.
func (k *Keeper) Take(p *v1.Pod, former []string) *cpus.Refusal {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := cpus.Requests(p)
	refusal := k.admit(string(p.UID), requests, former)
	if refusal == nil {
		k.Assigned(count(requests))
	}
	return refusal
}

// Reserve keeps, under a name in place of a uid, the CPUs that a pod would get, until Free or Keep
// frees that name. The pod may have what the pods in former have, and gets that first. Reserve reports
// whether there are enough.
func (k *Keeper) Reserve(name string, p *v1.Pod, former []string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.admit(name, cpus.Requests(p), former) == nil
}

// admit assigns CPUs to the containers of a uid. Nothing changes if they cannot have them.
func (k *Keeper) admit(uid string, requests []cpus.Request, former []string) *cpus.Refusal {
	next, has := k.table.Clone(), map[string]bool{}
	for _, r := range requests {
		has[r.Container] = true
	}
	next.Keep(func(of, container string) bool { return of != uid || has[container] })
	refusal := next.Admit(uid, requests, former...)
	if refusal == nil {
		k.table = next
		k.changed.Wake()
	}
	return refusal
}

// count returns how many containers request CPUs of their own.
func count(requests []cpus.Request) (n int) {
	for _, r := range requests {
		if r.CPUs > 0 {
			n++
		}
	}
	return n
}

// Free frees the CPUs of pods, and reports whether they had any.
func (k *Keeper) Free(uids []string) bool {
	return k.keep(func(uid string) bool { return !slices.Contains(uids, uid) })
}

// Keep frees the CPUs of all pods but those that are known.
func (k *Keeper) Keep(known map[string]bool) { k.keep(func(uid string) bool { return known[uid] }) }

func (k *Keeper) keep(isActive func(uid string) bool) (freed bool) {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table.Keep(func(uid, _ string) bool {
		active := isActive(uid)
		freed = freed || !active
		return active
	})
	if freed {
		k.changed.Wake()
	}
	return freed
}

// Of returns the CPUs on which a container must run; "": all.
func (k *Keeper) Of(uid, container string) string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.On(uid, container).String()
}

// Own returns the CPUs that a container has for itself.
func (k *Keeper) Own(uid, container string) cpus.Set {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	set, isOwn := k.table.Of(uid, container)
	if !isOwn {
		return nil
	}
	return set
}

// Allocatable returns the CPUs that containers can have for themselves.
func (k *Keeper) Allocatable() cpus.Set {
	if k == nil {
		return nil
	}
	return k.policy.Allocatable()
}

// Pools returns how many CPUs containers share, without those that are reserved, and how many they
// have for themselves.
func (k *Keeper) Pools() (shared, own int) {
	if k == nil {
		return 0, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.Pools()
}

// Started tells of a container that was started, and with which CPUs it was made. If others are
// its own by now, it gets them at once.
func (k *Keeper) Started(uid, container, id, list string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.sent[id] = list
	set := k.table.On(uid, container)
	k.mu.Unlock()
	if set.String() != list {
		k.changed.Wake()
	}
}

// Run gives running containers the CPUs that are theirs, and writes the file, whenever assignments
// change, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil {
		return
	}
	tick := time.NewTicker(k.settings.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
		case <-tick.C:
		}
		k.save()
		k.reconcile(ctx)
	}
}

// save writes the file if the assignments have changed.
func (k *Keeper) save() {
	k.mu.Lock()
	text := k.table.Text()
	isWritten := text == k.written
	k.mu.Unlock()
	if isWritten {
		return
	}
	err := disk.WriteFile(k.settings.Path, []byte(text), 0o600)
	if k.failed.IsNew("", err) && err != nil {
		k.log.Error("CPU assignments not written", "file", k.settings.Path, "err", err)
	}
	if err != nil {
		return
	}
	k.mu.Lock()
	k.written = text
	k.mu.Unlock()
}

// reconcile gives each running container the CPUs that are its now. What fails is done again at the
// next time.
func (k *Keeper) reconcile(ctx context.Context) {
	running, err := k.runtime.Running(ctx)
	if err != nil {
		return // the watch reports it
	}
	for _, u := range k.updates(running) {
		err := k.runtime.Pin(ctx, u.ID, u.CPUs)
		if k.failed.IsNew(u.ID, err) && err != nil && ctx.Err() == nil {
			k.log.Warn("CPUs of a container not changed", "container", u.Container, "uid", u.UID, "cpus", u.CPUs, "err", err)
		}
		if err == nil {
			k.mu.Lock()
			k.sent[u.ID] = u.CPUs
			k.mu.Unlock()
		}
	}
}

// updates returns what running containers lack, and forgets those that do not run.
func (k *Keeper) updates(running []cpus.Running) []cpus.Update {
	k.mu.Lock()
	defer k.mu.Unlock()
	sent, runs := map[string]string{}, map[string]bool{"": true} // the file stays
	for _, r := range running {
		runs[r.ID] = true
		if list, was := k.sent[r.ID]; was {
			sent[r.ID] = list
		}
	}
	k.sent = sent
	k.failed.Keep(func(id string) bool { return runs[id] })
	return k.table.Updates(running, func(r cpus.Running) string { return sent[r.ID] })
}
