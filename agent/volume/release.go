package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"monopod/agent/disk"
)

// HasVolumes reports whether a pod has volumes of the agent's on this machine.
func HasVolumes(root, uid string) bool {
	_, err := os.Lstat(filepath.Join(PodDir(root, uid), "volumes"))
	return err == nil
}

// Release unmounts and removes the volumes of a pod, with all that is in them. Its
// other files stay. It may be called again, also for a pod that has none. If anything
// else is mounted below, it changes nothing and says so. Call it when no container of
// the pod is left that may run.
func Release(ctx context.Context, root, uid string) error {
	_, dir, err := findPodDir(root, uid)
	if err != nil || dir == "" || !HasVolumes(root, uid) {
		return err
	}
	if err := unmountBelow(ctx, dir); err != nil {
		return err
	}
	if err := removeVolumes(ctx, dir); err != nil {
		return fmt.Errorf("remove volumes of %s: %w", dir, err)
	}
	return nil
}

// removeVolumes removes the folders of volumes. That of the volumes themselves goes last: as
// long as it is there, HasVolumes says so.
func removeVolumes(ctx context.Context, dir string) error {
	top, err := disk.OpenDir(dir, 1)
	if err != nil {
		return err
	}
	defer top.Close()
	volumes, err := top.OpenBelow("volumes")
	if err != nil {
		return err
	}
	defer volumes.Close()
	if err := volumes.Empty(ctx); err != nil {
		return err
	}
	for _, name := range []string{subPathDir, "plugins", "volumes"} {
		if err := top.RemoveAll(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
