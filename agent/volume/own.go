package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// isShared reports whether a volume belongs to the machine or outlives pods: two versions of a pod
// share it.
func isShared(v v1.Volume) bool { return v.HostPath != nil || v.PersistentVolumeClaim != nil }

// LookAtShared checks that the machine's paths and the lasting volumes that a pod mounts are as
// SetUp needs them. It creates nothing.
func LookAtShared(root string, p *v1.Pod) error {
	var folders []string
	for _, v := range foldersFirst(p) {
		if !isShared(*v) {
			continue
		}
		if err := lookAt(root, p.Namespace, v, folders); err != nil {
			return setUpError(v, err)
		}
		if isFolderToCreate(v) {
			real, _, err := destination(filepath.Clean(v.HostPath.Path), folders)
			if err != nil {
				return setUpError(v, err)
			}
			folders = append(folders, real)
		}
	}
	return nil
}

// lookAt is LookAtShared for one volume. folders are the machine's that are created before it.
func lookAt(root, namespace string, v *v1.Volume, folders []string) error {
	if v.HostPath != nil {
		return lookAtHostPath(v.HostPath, folders)
	}
	c := types.NamespacedName{Namespace: namespace, Name: v.PersistentVolumeClaim.ClaimName}
	_, err := checkClaim(root, c)
	if err != nil {
		return err
	}
	dir := ClaimDir(root, c)
	i, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !i.IsDir():
		return fmt.Errorf("%s is in the way: not a directory", dir)
	}
	return err
}

// SetUpOwn is SetUp for the volumes that only this pod uses, while another version of it runs. It
// also creates claims that never existed.
func SetUpOwn(ctx context.Context, root string, p *v1.Pod, in Input) error {
	own := *p
	own.Spec.Volumes = slices.DeleteFunc(slices.Clone(p.Spec.Volumes), isShared)
	_, err := SetUp(ctx, root, &own, in)
	if err != nil {
		return err
	}
	return newSetup(root, p, in).newClaims()
}

// TearDownBut is TearDown for a pod whose directory the next version uses, too: afterwards another
// directory is in its place, with only this file. The directory is never missing.
func TearDownBut(ctx context.Context, root, uid, file string) error {
	_, dir, err := findPodDir(root, uid)
	if err != nil || dir == "" {
		return err
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return err
	}
	err = replaceDir(root, dir, uid, file)
	if err == nil {
		return nil
	}
	return emptyBut(ctx, dir, file)
}

// replaceDir moves a directory into the trash and leaves another one in its place, with only one of
// its files.
func replaceDir(root, dir, uid, file string) error {
	trash := filepath.Join(root, trashDir)
	if err := disk.MkdirAll(trash, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(trash, uid+".")
	if err != nil {
		return err
	}
	err = errors.Join(os.Chmod(fresh, dirMode), os.Link(filepath.Join(dir, file), filepath.Join(fresh, file)))
	if err == nil {
		err = exchange(fresh, dir)
	}
	if err != nil {
		os.RemoveAll(fresh)
	}
	return err
}

// emptyBut removes everything in a directory except one file, for the case that another directory
// cannot be created. It removes the other files, such as the checkpoint, last.
func emptyBut(ctx context.Context, dir, file string) error {
	top, err := disk.OpenDir(dir, 1)
	if err != nil {
		return err
	}
	defer top.Close()
	if err := top.EmptyFolders(ctx); err != nil {
		return err
	}
	return top.Each(func(name string) error {
		if name == file {
			return nil
		}
		return top.RemoveAll(ctx, name)
	})
}

// exchange exchanges two directories. On a file system without an atomic exchange, the second one
// is missing for a moment.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	aside := a + "~"
	return errors.Join(os.Rename(b, aside), os.Rename(a, b))
}
