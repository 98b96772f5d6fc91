package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/disk"
)

// claimsDir is the folder below the root dir with a directory for each
// PersistentVolumeClaim. No pod's end removes one.
const claimsDir = "volumes"

// ClaimDir returns the directory of a claim.
func ClaimDir(root string, c types.NamespacedName) string {
	return filepath.Join(root, claimsDir, claimFile(c))
}

func claimFile(c types.NamespacedName) string { return c.Namespace + "_" + c.Name }

// Uses reports whether a pod has a volume that is the claim.
func Uses(p *v1.Pod, c types.NamespacedName) bool {
	for _, v := range p.Spec.Volumes {
		if s := v.PersistentVolumeClaim; s != nil && s.ClaimName == c.Name && p.Namespace == c.Namespace {
			return true
		}
	}
	return false
}

// Claims returns the claims that have a directory, or had one that is missing, sorted by the
// names of these.
func Claims(root string) ([]types.NamespacedName, error) {
	var names []string
	for _, folder := range []string{claimsDir, recordsDir} {
		files, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range files {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	var all []types.NamespacedName
	for _, file := range slices.Compact(names) {
		if namespace, name, ok := strings.Cut(file, "_"); ok && namespace != "" {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return all, nil
}

// claim makes the directory of a claim, open to all as an emptyDir is, for the first
// pod that mounts it, and gives what is in it to the group of each new pod. One that was
// made and is missing is a *MissingClaimError.
func (s *setup) claim(ctx context.Context, v *v1.Volume) (Mount, error) {
	source := v.PersistentVolumeClaim
	c := types.NamespacedName{Namespace: s.pod.Namespace, Name: source.ClaimName}
	if err := errors.Join(checkName("volume", claimFile(c)), checkName("volume", v.Name)); err != nil {
		return Mount{}, err
	}
	if _, err := checkClaim(s.root, c); err != nil {
		return Mount{}, err
	}
	if err := makeDirs(s.root, claimsDir); err != nil {
		return Mount{}, err
	}
	// Held until the pod may be seen to use it: its checkpoint is there already.
	unlock, err := lockClaims(s.root, unix.LOCK_SH)
	if err != nil {
		return Mount{}, err
	}
	defer unlock()
	was, err := s.findClaim(c)
	if err != nil {
		return Mount{}, err
	}
	p, err := s.claimPlace(claimFile(c), v.Name)
	if err != nil {
		return Mount{}, err
	}
	defer p.Close()
	if p.fresh = p.fresh || was == unrecorded || was == claimByHand; p.fresh && !source.ReadOnly && !s.isOwned(p) {
		if err := s.own(ctx, p, readWrite); err != nil {
			return Mount{}, err
		}
	}
	if err := errors.Join(p.ready(), s.recordClaim(c, was)); err != nil {
		return Mount{}, err
	}
	return Mount{HostPath: p.path, ReadOnly: source.ReadOnly, Managed: true}, nil
}

// findClaim returns what is recorded of a claim that is there, and makes one that never was.
// unrecorded: it was made just now.
func (s *setup) findClaim(c types.NamespacedName) (claimRecord, error) {
	was, err := checkClaim(s.root, c)
	if err != nil || was != unrecorded {
		return was, err
	}
	made, err := makeClaim(ClaimDir(s.root, c))
	if err != nil {
		return unrecorded, err
	}
	if !made {
		was = claimUnknown
	}
	return was, disk.SyncDir(filepath.Join(s.root, claimsDir))
}

// recordClaim records a claim that is set up, unless that is recorded.
func (s *setup) recordClaim(c types.NamespacedName, was claimRecord) error {
	now, err := recorded(s.root, c)
	if err != nil || now == was {
		return err
	}
	return writeRecord(s.root, c, now)
}

// makeClaim makes a directory that is there with its final mode, or not at all.
func makeClaim(dir string) (made bool, err error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), unfinished)
	if err != nil {
		return false, err
	}
	if err = os.Chmod(fresh, 0o777); err == nil {
		if err = unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE); err == unix.EINVAL {
			err = unix.Rename(fresh, dir) // a file system that cannot; at most an empty directory goes
		}
	}
	if err == nil {
		return true, nil
	}
	os.Remove(fresh)
	if errors.Is(err, fs.ErrExist) { // another pod was faster
		return false, nil
	}
	return false, &fs.PathError{Op: "make", Path: dir, Err: err}
}

// claimPlace opens the directory of a claim. Its mark is the pod's.
func (s *setup) claimPlace(name, mark string) (*place, error) {
	marks := []string{"pods", string(s.pod.UID), "plugins", emptyDirPlugin, mark}
	if !isDir(filepath.Join(s.root, claimsDir, name)) {
		return nil, fmt.Errorf("%s is in the way: not a directory", filepath.Join(s.root, claimsDir, name))
	}
	if err := makeDirs(s.root, marks...); err != nil {
		return nil, err
	}
	p := &place{path: filepath.Join(s.root, claimsDir, name)}
	p.mark = filepath.Join(s.root, filepath.Join(marks...), "ready")
	_, err := os.Lstat(p.mark)
	p.fresh = err != nil
	dir, err := s.open([]string{claimsDir, name})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return p, p.openAt(dir)
}

// isOwned reports whether the pod wants no change where the top is of its group.
func (s *setup) isOwned(p *place) bool {
	c := s.pod.Spec.SecurityContext
	if c == nil || c.FSGroup == nil || c.FSGroupChangePolicy == nil ||
		*c.FSGroupChangePolicy != v1.FSGroupChangeOnRootMismatch {
		return false
	}
	var top unix.Stat_t
	const mode = unix.S_ISGID | 0o770
	return unix.Stat(p.path, &top) == nil && int64(top.Gid) == *c.FSGroup && top.Mode&mode == mode
}

// errRemoving tells a pod to come again.
var errRemoving = errors.New("a volume is being removed")

// lockClaims locks the claims: shared by pods that are set up, alone for a removal. It
// does not wait.
func lockClaims(root string, how int) (unlock func(), err error) {
	dir, err := os.Open(filepath.Join(root, claimsDir))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), how|unix.LOCK_NB); err != nil {
		dir.Close()
		if err == unix.EWOULDBLOCK {
			err = errRemoving
		}
		return nil, err
	}
	return func() { dir.Close() }, nil
}

// RemoveClaim removes the directory of a claim with all that is in it, unless a pod
// uses it: users names those by their checkpoints. Any process may call it.
func RemoveClaim(ctx context.Context, root string, c types.NamespacedName, users func() ([]string, error)) error {
	if err := checkName("volume", claimFile(c)); err != nil {
		return err
	}
	dir := ClaimDir(root, c)
	_, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && IsMissing(root, c):
		return forgetClaim(root, c, users)
	case errors.Is(err, fs.ErrNotExist), err == nil && !isDir(dir):
		return fmt.Errorf("there is no volume %s", c)
	}
	if err := retire(ctx, root, c, users); err != nil {
		return fmt.Errorf("volume %s: %w", c, err)
	}
	return EmptyTrash(ctx, root)
}

// forgetClaim lets the next pod make a claim that is missing.
func forgetClaim(root string, c types.NamespacedName, users func() ([]string, error)) error {
	err := unused(users)
	if err == nil {
		err = removeRecord(root, c)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", c, err)
	}
	return nil
}

// unused fails if there are users.
func unused(users func() ([]string, error)) error {
	names, err := users()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("pod %s uses it: remove the pod's manifest first", strings.Join(names, ", "))
	}
	return err
}

// retire moves a claim's directory into the trash, unless it is in use. Its record goes first:
// a directory without one counts as made.
func retire(ctx context.Context, root string, c types.NamespacedName, users func() ([]string, error)) error {
	dir := ClaimDir(root, c)
	unlock, err := lockAlone(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	if err := unused(users); err != nil {
		return err
	}
	below, err := mountsBelow(dir)
	switch {
	case err != nil:
		return err
	case len(below) > 0:
		return fmt.Errorf("something is mounted at %s", below[0].path)
	}
	if err := removeRecord(root, c); err != nil {
		return err
	}
	return discard(root, dir)
}

// lockAlone locks the claims for a removal. It gives pods that are being set up, which
// takes them moments, 2 seconds.
func lockAlone(ctx context.Context, root string) (unlock func(), err error) {
	for range 40 {
		if unlock, err = lockClaims(root, unix.LOCK_EX); !errors.Is(err, errRemoving) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil, errors.New("volumes are being set up or removed all the time: try again")
}
