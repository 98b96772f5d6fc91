// Package devices gives containers the devices of the machine that they request.
//
// What resources the settings make of devices is counted: a container has its devices for itself,
// unless the settings share them, from the admission of its pod until nothing of that is left. A
// device that a container requests by its name, as in podman kube play, is not counted, unless it
// is one of the settings, too.
package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/saidonce"
	"monopod/agent/wake"
)

// Resource is a resource that the settings make of devices.
type Resource struct {
	Paths       []string // patterns of filepath.Match: each path that matches is a device
	CDI         []string // full names: each is a device
	Permissions string   // of the letters r, w and m
	Count       int      // how many containers may have each device at a time; 0: any number
}

// Settings configure a Keeper.
type Settings struct {
	Resources map[string]Resource // by name
	SpecDirs  []string            // the folders of CDI specifications: SpecDirs
	Path      string              // of the file of the assignments
	Unwatched bool                // devices are only looked at now and then
}

// Keeper has the assignments of devices. Any goroutine may use it. nil has no devices.
type Keeper struct {
	Changed func() // is called when devices come or go, or are assigned; it may be set before Run

	settings Settings
	log      *slog.Logger
	came     wake.Slot // the machine has other devices
	woken    wake.Slot // of Run
	failed   saidonce.Error

	mu      sync.Mutex
	table   *Table
	missing map[string]wanted // by name, devices that were missing when a container was to be made

	writing sync.Mutex // of the file
	written string     // its content; "": not known
}

// New looks at the devices of the machine, and returns the keeper with the assignments of the agent
// before. Assignments that are damaged are reported, and made again.
func New(s Settings, log *slog.Logger, event func(reason, message string)) *Keeper {
	k := &Keeper{Changed: func() {}, settings: s, log: log, came: wake.New(), woken: wake.New(), missing: map[string]wanted{}}
	k.table = newTable(s, Look(s))
	if !k.Counts() {
		return k
	}
	err := k.table.restore(s.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the recorded device assignments do not hold; devices are assigned again", "file", s.Path, "err", err)
		event("DeviceAssignmentsDiscarded", fmt.Sprintf("devices are assigned again, as the recorded assignments do not hold: %v", err))
	}
	return k
}

// Counts reports whether the settings make resources of devices.
func (k *Keeper) Counts() bool { return k != nil && len(k.settings.Resources) > 0 }

// Has reports whether the settings make a resource of devices.
func (k *Keeper) Has(resource string) bool {
	if k == nil {
		return false
	}
	_, has := k.settings.Resources[resource]
	return has
}

// Came receives when devices have come or gone, or a container has taken another one.
func (k *Keeper) Came() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.came
}

// keyOf is how the table names a pod.
func keyOf(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

// Room returns why a pod cannot have the devices that it requests; nil: it can.
func (k *Keeper) Room(p *v1.Pod) *Refusal { return k.RoomTogether([]*v1.Pod{p}, nil) }

// RoomTogether returns why the last of the pods cannot have its devices once those before it have
// theirs, and the pods with these names have none; nil: it can.
func (k *Keeper) RoomTogether(pods []*v1.Pod, former []string) (refusal *Refusal) {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.clone()
	for _, pod := range former {
		next.keep(pod, nil)
	}
	for _, p := range pods {
		refusal = next.admit(keyOf(p), string(p.UID), Requests(p, k.Has))
	}
	return refusal
}

// Take assigns a pod the devices that it requests, or returns why it cannot have them. version is
// its uid, or another name under which they are kept until Keep frees them.
func (k *Keeper) Take(p *v1.Pod, version string) *Refusal {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.clone()
	refusal := next.admit(keyOf(p), version, Requests(p, k.Has))
	if refusal == nil {
		k.set(next)
	}
	return refusal
}

// Keep frees the devices of all versions of a pod but these, and reports whether they had any.
func (k *Keeper) Keep(pod string, versions []string) (freed bool) {
	if !k.Counts() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.clone()
	freed = next.keep(pod, versions)
	if freed {
		k.set(next)
	}
	return freed
}

// Clear frees what the versions of a pod had before their requests changed, and reports whether they
// had any: no container runs with it any more.
func (k *Keeper) Clear(pod string) (freed bool) {
	if !k.Counts() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.clone()
	freed = next.clear(pod)
	k.set(next)
	return freed
}

// Leaving returns the pods, by their names, of which Clear would free anything.
func (k *Keeper) Leaving() map[string]bool {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]bool{}
	for h := range k.table.held {
		if h.isLeaving() {
			all[h.Pod] = true
		}
	}
	return all
}

// KeepAll frees the devices of all versions but these, by the names of their pods.
func (k *Keeper) KeepAll(known map[string][]string) {
	if !k.Counts() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.table.clone()
	for h := range k.table.held {
		next.keep(h.Pod, known[h.Pod])
	}
	k.set(next)
}

// set makes a table the present one. Containers may wait for what it frees. The caller has the lock.
func (k *Keeper) set(next *Table) {
	same := func(a, b share) bool { return slices.Equal(a.ids, b.ids) && a.turn == b.turn }
	if maps.EqualFunc(k.table.held, next.held, same) {
		return
	}
	if k.table.hasMoreThan(next) {
		k.came.Wake()
	}
	k.table = next
	k.woken.Wake()
}

// save writes the file if the assignments have changed.
func (k *Keeper) save() error {
	if !k.Counts() {
		return nil
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	text := k.table.text()
	k.mu.Unlock()
	if text == k.written {
		return nil
	}
	err := disk.WriteFile(k.settings.Path, []byte(text), 0o600)
	if err != nil {
		return fmt.Errorf("which devices containers have is not on disk: %w", err)
	}
	k.written = text
	return nil
}
