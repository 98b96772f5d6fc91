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
	// lookEvery is how long after a look for a lock the next one is at the earliest.
	lookEvery = 2 * time.Second
	// lookWithin is how long a look may take until nothing is known of the lock.
	lookWithin = time.Second
)

// lockFile is a file with which a workload keeps changes of its pod away.
type lockFile struct {
	dir   string // the volume's
	below string // where it is in that
}

// lockFileOf returns the lock file of a pod that has one.
func lockFileOf(root string, p *v1.Pod) lockFile {
	name, below, _ := annotations.LockIn(p, p.Annotations[annotations.UpdateLock])
	return lockFile{dir: volume.EmptyDir(root, string(p.UID), name), below: below}
}

// look reports whether the file is there, of any kind. What a path leads to by a link that the
// workload made does not count.
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

// isNoFile reports whether an error says that there is no such file; other errors are those of
// the disk.
func isNoFile(err error) bool {
	for _, none := range []error{fs.ErrNotExist, fs.ErrInvalid, disk.ErrLink, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

// looked is what came of a look for the lock of a pod.
type looked struct {
	key   manifests.Key
	lock  rollout.Lock // for which it was looked
	state rollout.Locked
	ended bool // the look: one without an answer goes on
}

// locks looks for the lock files of pods of which a change waits, and saves since when they keep
// it away: both beside the sync loop, whose goroutine owns it.
type locks struct {
	root    string // the root dir
	ask     func(lockFile) rollout.Locked
	pods    *records
	disk    diskWrites
	running *sync.WaitGroup
	found   chan looked
	saved   chan error
	unsaved bool // since when changes are kept away is not as it is on disk
	saving  bool
	failed  bool // it was not saved, and is tried again later
}

// look starts a look for the lock of the version of a pod that runs, unless one runs, or was
// made just now.
func (k *locks) look(ctx context.Context, r *podRecord, runs *v1.Pod) {
	if r.looking || r.Lock.State != rollout.Unlooked && time.Now().Before(r.looks) {
		return
	}
	r.looking, r.looks = true, time.Now().Add(lookEvery)
	file, found := lockFileOf(k.root, runs), looked{key: r.Key, lock: r.Lock, ended: true}
	answer := make(chan rollout.Locked, 1)
	go func() { answer <- k.ask(file) }() // which the kernel may never let end
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

// take takes over what came of a look, and marks the name.
func (k *locks) take(found looked, now checkpoint.Moment) {
	r := k.pods.see(found.key)
	if found.ended {
		r.looking = false
	}
	if r.Lock.File != found.lock.File || r.Lock.UID != found.lock.UID {
		return // another version runs, or nothing waits any more
	}
	was := r.Lock.Since
	r.Lock = r.Lock.Seen(found.state, now)
	k.unsaved = k.unsaved || r.Lock.Since != was
	k.pods.mark(found.key)
}

// wereSaved takes the result of saving. What the disk did not take is tried again at the next
// tick.
func (k *locks) wereSaved(err error) { k.saving, k.failed = false, err != nil }

// tick tries again what the disk did not take.
func (k *locks) tick() { k.unsaved = k.unsaved || k.failed }

// restore takes over what a previous agent saved.
func (k *locks) restore(all map[string]hold.Lock) {
	for name, l := range all {
		k.pods.of(hold.KeyOf(name)).Lock = rollout.Lock{File: l.File, UID: l.UID, Since: l.Since}
	}
}

// save saves since when locks keep changes away, if that is not saved: one write at a time, of
// which saved tells the end.
func (k *locks) save(ctx context.Context, to *hold.Store) {
	if !k.unsaved || k.saving {
		return
	}
	k.unsaved, k.saving = false, true
	all := map[string]hold.Lock{}
	for key, r := range k.pods.all {
		if l := r.Lock; !l.Since.IsZero() {
			all[key.String()] = hold.Lock{File: l.File, UID: l.UID, Since: l.Since}
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
