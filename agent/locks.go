package agent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/hold"
	"monopod/agent/rollout"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

const (
	// lookEvery is the shortest time between the starts of two checks for a lock.
	lookEvery = 2 * time.Second
	// lookWithin is how long a check may take before the state of the lock counts as unknown.
	lookWithin = time.Second
)

// lockFile is the file with which a workload prevents changes of its pod.
type lockFile struct {
	dir   string // the folder of the volume
	below string // the path below dir
}

// lockFileOf returns the lock file of a pod, which must have one.
func lockFileOf(root string, p *v1.Pod) lockFile {
	name, below, _ := annotations.LockIn(p, p.Annotations[annotations.UpdateLock])
	return lockFile{dir: volume.EmptyDir(root, string(p.UID), name), below: below}
}

// look reports whether the file exists, of any kind. A path that a link of the workload leads to
// does not count.
func (f lockFile) look() rollout.Locked {
	dir, name := path.Split(f.below)
	depth := 0
	if dir = strings.Trim(dir, "/"); dir != "" {
		depth = strings.Count(dir, "/") + 1
	}
	d, err := disk.OpenDir(filepath.Join(f.dir, dir), depth)
	if err == nil {
		defer d.Close()
		_, err = d.Stat(name)
	}
	switch {
	case err == nil:
		return rollout.Held
	case isNoFile(err):
		return rollout.Free
	}
	return rollout.Unknown
}

// isNoFile reports whether an error means that there is no such file; other errors are those of the
// disk.
func isNoFile(err error) bool {
	for _, none := range []error{fs.ErrNotExist, fs.ErrInvalid, disk.ErrLink, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

// looked is the result of a check for the lock of a pod.
type looked struct {
	key   manifests.Key
	lock  rollout.Lock // the lock that was checked
	state rollout.Locked
	ended bool // the check has ended: one without an answer goes on in the background
}

// locks checks the lock files of pods for which a change waits, and saves since when they delay it:
// both in the background of the sync loop, whose goroutine owns it.
type locks struct {
	root    string // the root dir
	ask     func(lockFile) rollout.Locked
	pods    *records
	disk    diskWrites
	running *sync.WaitGroup
	found   chan looked
	saved   chan error
	unsaved bool // the times since when locks delay changes differ from those on disk
	saving  bool
	failed  bool // the last save failed, and is retried
}

// look starts a check for the lock of the running version of a pod, unless a check is running or
// the last one started less than lookEvery ago.
func (k *locks) look(ctx context.Context, r *podRecord, runs *v1.Pod) {
	if r.looking || r.Lock.State != rollout.Unlooked && time.Now().Before(r.looks) {
		return
	}
	r.looking, r.looks = true, time.Now().Add(lookEvery)
	file, found := lockFileOf(k.root, runs), looked{key: r.Key, lock: r.Lock, ended: true}
	answer := make(chan rollout.Locked, 1)
	go func() { answer <- k.ask(file) }() // the kernel may block this forever
	k.running.Go(func() {
		timer := time.NewTimer(lookWithin)
		defer timer.Stop()
		select {
		case found.state = <-answer:
			k.tell(ctx, found)
			return
		case <-timer.C:
			k.tell(ctx, looked{key: found.key, lock: found.lock, state: rollout.Unknown})
		case <-ctx.Done():
			return
		}
		select {
		case found.state = <-answer:
			k.tell(ctx, found)
		case <-ctx.Done():
		}
	})
}

func (k *locks) tell(ctx context.Context, found looked) {
	select {
	case k.found <- found:
	case <-ctx.Done():
	}
}

// take records the result of a check, and marks the name.
func (k *locks) take(found looked, now checkpoint.Moment) {
	r := k.pods.see(found.key)
	if found.ended {
		r.looking = false
	}
	if r.Lock.File != found.lock.File || r.Lock.UID != found.lock.UID {
		return // another version runs, or no change waits any more
	}
	was := lockRecord(&r.Lock)
	r.Lock = r.Lock.Seen(found.state, r.Now.IsLockAlone(), now)
	k.unsaved = k.unsaved || lockRecord(&r.Lock) != was
	k.pods.mark(found.key)
}

// wereSaved handles the result of a save. A failed one is retried at the next tick.
func (k *locks) wereSaved(err error) { k.saving, k.failed = false, err != nil }

// tick retries a failed save.
func (k *locks) tick() { k.unsaved = k.unsaved || k.failed }

// restore loads what a previous agent saved.
func (k *locks) restore(all map[string]hold.Lock) {
	for name, l := range all {
		k.pods.of(hold.KeyOf(name)).Lock = rollout.Lock{File: l.File, UID: l.UID, Since: l.Since, Spent: l.Spent}
	}
}

// lockRecord returns the record of a lock on disk; zero: none is needed.
func lockRecord(l *rollout.Lock) hold.Lock {
	if !l.Counts() {
		return hold.Lock{}
	}
	return hold.Lock{File: l.File, UID: l.UID, Since: l.Since, Spent: l.Spent}
}

// save saves since when locks delay changes, if that has changed: one write at a time. The result
// is sent to saved.
func (k *locks) save(ctx context.Context, to *hold.Store) {
	if !k.unsaved || k.saving {
		return
	}
	k.unsaved, k.saving = false, true
	all := map[string]hold.Lock{}
	for key, r := range k.pods.all {
		if r.Lock.Counts() {
			all[key.String()] = lockRecord(&r.Lock)
		}
	}
	k.running.Go(func() {
		err := k.disk.await(ctx, "since when locks keep changes away", func() error {
			return to.Change(func(s *hold.State) { s.Locks = all })
		})
		select {
		case k.saved <- err:
		case <-ctx.Done():
		}
	})
}
