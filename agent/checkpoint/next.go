package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"monopod/agent/disk"
	"monopod/manifests"
)

// NextFile is the checkpoint of a version that is to replace another one, in
// <root>/pods/<uid>/next.json of its own uid. While there is a pod.json of the name that is not
// marked for removal, that version is the accepted one, and next.json only records what is
// prepared. Once the former pod.json is marked for removal, which commits the switch, next.json is
// the accepted one; it becomes pod.json once the former instance is removed.
//
// An agent that does not know next.json does not touch the file: for it a folder without pod.json
// belongs to no pod, and is removed after a minute; in a folder with one, the file is removed with
// the pod.
const NextFile = "next.json"

// next returns the path of the checkpoint of a next version.
func (r *Root) next(uid string) string { return r.Path("pods", uid, NextFile) }

// Accepted returns the accepted version of each pod name: the newest checkpoint that is not marked
// for removal, and a next version only where there is no other.
func Accepted(all []*Checkpoint) map[manifests.Key]*Checkpoint {
	out := map[manifests.Key]*Checkpoint{}
	for _, c := range all {
		if c.IsRemoving() {
			continue
		}
		old := out[c.Key()]
		if old == nil || old.Next && !c.Next || old.Next == c.Next && old.Accepted.Before(&c.Accepted) {
			out[c.Key()] = c
		}
	}
	return out
}

// SaveNext writes the checkpoint of a next version to disk, synced. Any other next version of its
// name is removed.
func (r *Root) SaveNext(c *Checkpoint) error {
	defer r.nexts.lock(c.Key())()
	if err := r.saveAs(c, r.next(c.Uid()), disk.WriteFile); err != nil {
		return err
	}
	r.stored.mu.Lock()
	before := r.stored.next[c.Key()]
	r.stored.putNext(c)
	r.stored.mu.Unlock()
	if before == nil || before.Uid() == c.Uid() {
		return nil
	}
	return r.unlinkNext(before.Uid())
}

// NextOf returns the next version of a pod name; nil: none is on disk.
func (r *Root) NextOf(key manifests.Key) *Checkpoint {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	return r.stored.next[key]
}

// HasNext reports whether a uid is that of a next version on disk.
func (r *Root) HasNext(uid string) bool {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	return r.stored.hasNext(uid)
}

// DropNext removes this next version, as NextOf returned it, unless another one has replaced it
// since; nil: nothing to remove. What was made for it stays.
func (r *Root) DropNext(c *Checkpoint) error {
	if c == nil {
		return nil
	}
	defer r.nexts.lock(c.Key())()
	if r.NextOf(c.Key()) != c {
		return nil
	}
	if err := r.unlinkNext(c.Uid()); err != nil {
		return err
	}
	r.forgetNext(c.Key())
	return nil
}

func (r *Root) forgetNext(key manifests.Key) {
	r.stored.mu.Lock()
	defer r.stored.mu.Unlock()
	delete(r.stored.next, key)
}

// DropVoidNext removes the next version of a pod name if it is the accepted one already.
func (r *Root) DropVoidNext(key manifests.Key) error {
	r.stored.mu.Lock()
	next := r.stored.next[key]
	isVoid := false
	if next != nil {
		c := r.stored.byUID[next.Uid()]
		isVoid = c != nil && !c.IsRemoving() && c.Digest == next.Digest
	}
	r.stored.mu.Unlock()
	if !isVoid {
		return nil
	}
	return r.DropNext(next)
}

func (r *Root) unlinkNext(uid string) error {
	err := os.Remove(r.next(uid))
	if err == nil {
		err = disk.SyncDir(r.PodDir(uid))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("checkpoint of a next version: %w", err)
	}
	return nil
}

// Promote makes the next version with the uid of c the accepted one. On disk this is only a rename,
// which also succeeds on a full disk. ok is false if there is none, or it is not of this version,
// or its file is gone. The file is as it was prepared; c is saved afterwards.
func (r *Root) Promote(c *Checkpoint) (ok bool, err error) {
	defer r.nexts.lock(c.Key())()
	n := r.NextOf(c.Key())
	if n == nil || n.Uid() != c.Uid() || n.Digest != c.Digest {
		return false, nil
	}
	err = os.Rename(r.next(c.Uid()), r.checkpoint(c.Uid()))
	if errors.Is(err, fs.ErrNotExist) { // it was removed by hand
		r.forgetNext(c.Key())
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint of %s: %w", c.Key(), err)
	}
	r.forgetNext(c.Key())
	r.stored.put(n)
	return true, disk.SyncDir(r.PodDir(c.Uid()))
}

// loadNext reads the checkpoint of a next version; nil: there is none in this folder.
func (r *Root) loadNext(uid string, read func(path string, parse func([]byte) error) error) (*Checkpoint, error) {
	c, err := r.loadFrom(r.next(uid), uid, read)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.Next = true
	return c, nil
}

// withNexts adds the accepted next versions to the checkpoints, and records the others, one for
// each name: an agent that died between writing one and removing the other left two, of which the
// newer counts.
func (r *Root) withNexts(all, nexts []*Checkpoint) []*Checkpoint {
	newest := Accepted(nexts)
	accepted := Accepted(all)
	for key, c := range newest {
		r.stored.mu.Lock()
		r.stored.putNext(c)
		r.stored.mu.Unlock()
		if accepted[key] == nil {
			all = append(all, c)
		}
	}
	return all
}
