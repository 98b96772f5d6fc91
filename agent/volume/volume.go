// Package volume makes the directories of a pod and what its containers mount
// from there, and removes them without ever deleting through a mount or a
// symbolic link.
//
// Below the agent's root directory a pod has
//
//	pods/<uid>/volumes/kubernetes.io~<plugin>/<volume>
//	pods/<uid>/plugins/kubernetes.io~<plugin>/<volume>/ready
//	pods/<uid>/volume-subpaths/<volume>/<container>/<index of the mount>
//	pods/<uid>/containers/<container>/<termination log>
//
// as the kubelet lays them out. All calls of one pod are made by its worker,
// one at a time.
package volume

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Mount is a volume that is ready to be mounted into containers.
type Mount struct {
	// HostPath is the absolute path of the volume on the machine.
	HostPath string
	// ReadOnly volumes are mounted read-only whatever the container says.
	ReadOnly bool
	// Managed volumes are the agent's own, so it may relabel them for SELinux.
	Managed bool
}

// SetUp makes the pod's directories and each volume that a container mounts,
// and returns them by name. It may be called again at any time: what is there
// and ready stays as it is, what a power cut took is made anew. memory is the
// most bytes that a volume in memory may hold where nothing smaller limits
// it; 0: the kernel's default, half of the machine's.
func SetUp(ctx context.Context, root string, p *v1.Pod, memory int64) (map[string]Mount, error) {
	dir, err := makePodDir(root, string(p.UID))
	if err != nil {
		return nil, err
	}
	used := mounted(p)
	out := map[string]Mount{}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if !used[v.Name] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := setUp(dir, p, v, memory)
		if err != nil {
			return nil, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
		}
		out[v.Name] = m
	}
	return out, nil
}

// mounted returns the names of the volumes that containers mount.
func mounted(p *v1.Pod) map[string]bool {
	used := map[string]bool{}
	for _, containers := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			for _, m := range containers[i].VolumeMounts {
				used[m.Name] = true
			}
		}
	}
	return used
}

func setUp(dir string, p *v1.Pod, v *v1.Volume, memory int64) (Mount, error) {
	switch {
	case v.HostPath != nil:
		return setUpHostPath(v.HostPath)
	case v.EmptyDir != nil, v.VolumeSource == v1.VolumeSource{}:
		return setUpEmptyDir(dir, p, v, memory)
	default:
		return Mount{}, errors.New("volumes of this kind are not supported yet")
	}
}
