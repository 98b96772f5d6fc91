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

// claimsDir is the folder below the root dir with a directory for each PersistentVolumeClaim. The
// end of a pod removes none of them.
const claimsDir = "volumes"

// ClaimDir returns the directory of a claim.
func ClaimDir(root string, c types.NamespacedName) string {
	return filepath.Join(root, claimsDir, claimFile(c))
}

func claimFile(c types.NamespacedName) string { return c.Namespace + "_" + c.Name }

// Uses reports whether a pod has a volume for the claim.
func Uses(p *v1.Pod, c types.NamespacedName) bool {
	for _, v := range p.Spec.Volumes {
		if s := v.PersistentVolumeClaim; s != nil && s.ClaimName == c.Name && p.Namespace == c.Namespace {
			return true
		}
	}
	return false
}

// Claims returns the claims that have a directory, or had one that is now missing, sorted by the
// directories' names.
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

// claim creates the directory of a claim, open to all users like an emptyDir, for the first pod
// that mounts it, and gives its content to the group of each new pod. For a claim that was created
// and is missing it returns a *MissingClaimError.
func (s *setup) claim(ctx context.Context, v *v1.Volume) (Mount, error) {
	source := v.PersistentVolumeClaim
	c := types.NamespacedName{Namespace: s.pod.Namespace, Name: source.ClaimName}
	if err := errors.Join(checkName("volume", claimFile(c)), checkName("volume", v.Name)); err != nil {
		return Mount{}, err
	}
	if _, err := checkClaim(s.root, c); err != nil {
		return Mount{}, err
	}
	unlock, err := s.useClaims()
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
	if err := errors.Join(s.recordClaim(c, was), unlessFull(p.ready())); err != nil {
		return Mount{}, err
	}
	return Mount{HostPath: p.path, ReadOnly: source.ReadOnly, Managed: true}, nil
}

// useClaims keeps claims from being removed until it is visible that the pod uses them. The pod's
// checkpoint exists already.
func (s *setup) useClaims() (unlock func(), err error) {
	err = makeDirs(s.root, claimsDir)
	if err != nil {
		return nil, err
	}
	return lockClaims(s.root, unix.LOCK_SH)
}

// newClaims creates the claims of a pod that never existed.
func (s *setup) newClaims() error {
	used := mounted(s.pod)
	for i := range s.pod.Spec.Volumes {
		v := &s.pod.Spec.Volumes[i]
		if !used[v.Name] || v.PersistentVolumeClaim == nil {
			continue
		}
		err := s.newClaim(types.NamespacedName{Namespace: s.pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName})
		if err != nil {
			return setUpError(v, err)
		}
	}
	return nil
}

func (s *setup) newClaim(c types.NamespacedName) error {
	was, err := checkClaim(s.root, c)
	if err != nil || was != unrecorded {
		return err
	}
	unlock, err := s.useClaims()
	if err != nil {
		return err
	}
	defer unlock()
	was, err = s.findClaim(c)
	if err != nil || was != unrecorded {
		return err
	}
	return s.recordClaim(c, was)
}

// findClaim returns the record of an existing claim, and creates one that never existed; unrecorded
// means that it has just been created.
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

// recordClaim records a claim that is set up, unless that is recorded already.
func (s *setup) recordClaim(c types.NamespacedName, was claimRecord) error {
	now, err := recorded(s.root, c)
	if err != nil || now == was {
		return err
	}
	return writeRecord(s.root, c, now)
}

// makeClaim creates a directory with its final mode, or none at all.
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
			err = unix.Rename(fresh, dir) // a file system without that flag; at worst an empty directory is replaced
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

// claimPlace opens the directory of a claim. The mark belongs to the pod.
func (s *setup) claimPlace(name, mark string) (*place, error) {
	marks := []string{"pods", string(s.pod.UID), "plugins", emptyDirPlugin, mark}
	if !isDir(filepath.Join(s.root, claimsDir, name)) {
		return nil, fmt.Errorf("%s is in the way: not a directory", filepath.Join(s.root, claimsDir, name))
	}
	p := &place{path: filepath.Join(s.root, claimsDir, name)}
	err := makeDirs(s.root, marks...)
	if unlessFull(err) != nil {
		return nil, err
	}
	if err == nil {
		p.mark = filepath.Join(s.root, filepath.Join(marks...), "ready")
		_, err = os.Lstat(p.mark)
	}
	p.fresh = err != nil
	dir, err := s.open([]string{claimsDir, name})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return p, p.openAt(dir)
}

// unlessFull drops the error of a mark that cannot be written because the disk is full or
// read-only: without the mark, the content of the claim is given to the pod's group once more when
// the next container starts.
func unlessFull(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}

// isOwned reports whether the pod's fsGroupChangePolicy leaves the claim unchanged, as its top
// directory already belongs to the pod's group.
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

// errRemoving means that the pod has to try again.
var errRemoving = errors.New("a volume is being removed")

// lockClaims locks the claims, shared for the set-up of pods and exclusive for a removal. It does
// not wait.
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

// RemoveClaim removes the directory of a claim with its content, unless pods use it: users returns
// their names, from checkpoints. Any process may call it.
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
	return errors.Join(EmptyTrash(ctx, root), deleteRetired(ctx, root))
}

// forgetClaim removes the record of a missing claim, so that the next pod creates it.
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

// retire moves a claim's directory out of the way, for deletion, unless it is in use. It removes the record
// first: a directory without a record counts as created.
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
	err = discard(root, dir)
	if errors.Is(err, unix.EXDEV) { // the folder of the claims is on another disk than the trash
		return moveTo(filepath.Join(root, claimsDir), retired, dir)
	}
	return err
}

// retired is the prefix of directories of claims that are no claims any more, beside the claims. Whatever
// has it is deleted, so it is one that a person who moves data aside does not use.
const retired = ".monopod-removed-"

// deleteRetired deletes them, also those that a killed process left.
func deleteRetired(ctx context.Context, root string) error {
	return disk.Each(filepath.Join(root, claimsDir), 0, func(name string) error {
		if !strings.HasPrefix(name, retired) {
			return nil
		}
		return removeDir(ctx, filepath.Join(root, claimsDir), name)
	})
}

// lockAlone locks the claims for a removal. It waits up to 2 seconds for pods that are being set
// up, which takes moments.
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
