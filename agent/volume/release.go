package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"monopod/agent/disk"
)

// HasVolumes reports whether the agent has volumes of a pod on this machine.
func HasVolumes(root, uid string) bool {
	_, err := os.Lstat(filepath.Join(PodDir(root, uid), "volumes"))
	return err == nil
}

// Release unmounts and removes the volumes of a pod with their content. Its other files stay. It
// may be called again, also for a pod without volumes. If anything else is mounted below, it
// changes nothing and returns an error. Call it once no container of the pod may run any more.
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

// removeVolumes removes the folders of volumes. The folder of the volumes themselves is removed
// last: HasVolumes is true as long as it exists.
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
