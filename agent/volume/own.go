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

// isShared reports whether a volume is the machine's, or outlives pods: two versions of a pod
// have it together.
func isShared(v v1.Volume) bool { return v.HostPath != nil || v.PersistentVolumeClaim != nil }

// LookAtShared looks whether what a pod mounts of the machine and of volumes that outlive pods
// is as SetUp needs it. It makes nothing.
func LookAtShared(root string, p *v1.Pod) error {
	used := mounted(p)
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if !used[v.Name] || !isShared(*v) {
			continue
		}
		if err := lookAt(root, p.Namespace, v); err != nil {
			return setUpError(v, err)
		}
	}
	return nil
}

func lookAt(root, namespace string, v *v1.Volume) error {
	if v.HostPath != nil {
		return lookAtHostPath(v.HostPath)
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

// SetUpOwn is SetUp of what a pod alone has, while another version of it runs.
func SetUpOwn(ctx context.Context, root string, p *v1.Pod, in Input) error {
	own := *p
	own.Spec.Volumes = slices.DeleteFunc(slices.Clone(p.Spec.Volumes), isShared)
	_, err := SetUp(ctx, root, &own, in)
	return err
}

// TearDownBut is TearDown of a pod whose directory is the next version's, too: afterwards there
// is another directory in its place, with this file alone, and at no time there is none.
func TearDownBut(ctx context.Context, root, uid, file string) error {
	_, dir, err := findPodDir(root, uid)
	if err != nil || dir == "" {
		return err
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return err
	}
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

// exchange exchanges two directories. On a file system that cannot do that at once, the second
// one is missing for a moment.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	aside := a + "~"
	return errors.Join(os.Rename(b, aside), os.Rename(a, b))
}
