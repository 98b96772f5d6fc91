package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Claims returns the claims that have a directory, sorted by the names of these.
func Claims(root string) ([]types.NamespacedName, error) {
	dirs, err := os.ReadDir(filepath.Join(root, claimsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []types.NamespacedName
	for _, d := range dirs {
		if namespace, name, ok := strings.Cut(d.Name(), "_"); ok && namespace != "" {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return all, nil
}

// claim makes the directory of a claim, open to all as an emptyDir is, for the first
// pod that mounts it, and gives what is in it to the group of each new pod.
func (s *setup) claim(ctx context.Context, v *v1.Volume) (Mount, error) {
	source := v.PersistentVolumeClaim
	c := types.NamespacedName{Namespace: s.pod.Namespace, Name: source.ClaimName}
	if err := errors.Join(checkName("volume", claimFile(c)), checkName("volume", v.Name)); err != nil {
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
	made, err := makeClaim(ClaimDir(s.root, c))
	if err != nil {
		return Mount{}, err
	}
	p, err := s.claimPlace(claimFile(c), v.Name)
	if err != nil {
		return Mount{}, err
	}
	defer p.Close()
	if p.fresh = p.fresh || made; p.fresh && !source.ReadOnly && !s.isOwned(p) {
		if err := s.own(ctx, p, readWrite); err != nil {
			return Mount{}, err
		}
	}
	return Mount{HostPath: p.path, ReadOnly: source.ReadOnly, Managed: true}, p.ready()
}

// makeClaim makes a directory that is there with its final mode, or not at all.
func makeClaim(dir string) (made bool, err error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
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
	if err := errors.Join(makeDirs(s.root, claimsDir, name), makeDirs(s.root, marks...)); err != nil {
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
	if i, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !i.IsDir() {
		return fmt.Errorf("there is no volume %s", c)
	}
	if err := retire(ctx, root, dir, users); err != nil {
		return fmt.Errorf("volume %s: %w", c, err)
	}
	return EmptyTrash(ctx, root)
}

// retire moves a claim's directory into the trash, unless it is in use.
func retire(ctx context.Context, root, dir string, users func() ([]string, error)) error {
	unlock, err := lockAlone(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := users()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("pod %s uses it: remove the pod's manifest first", strings.Join(names, ", "))
	}
	below, err := mountsBelow(dir)
	switch {
	case err != nil:
		return err
	case len(below) > 0:
		return fmt.Errorf("something is mounted at %s", below[0].path)
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
