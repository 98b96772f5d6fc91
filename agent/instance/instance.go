// Package instance holds what one instance of a pod has on this machine outside of the runtime.
package instance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/logrotate"
	"monopod/agent/node"
	"monopod/agent/objects"
	"monopod/agent/podhosts"
	"monopod/agent/podresolv"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/agent/volume"
	"monopod/manifests"
)

// Disk is where all instances have their files, logs and cgroups.
type Disk struct {
	Root              *checkpoint.Root
	Machine           *node.Node
	Hosts             *podhosts.Keeper  // nil: pods do not know each other's names
	Resolv            *podresolv.Keeper // nil: pods keep the name servers that they start with
	Cgroups           *node.PodCgroups
	Rotator           *logrotate.Rotator
	PodLogs, LogLinks string                                         // folders; LogLinks "": no links are made
	Trashed           func()                                         // something was moved into the trash; may be nil
	KeepLogs          bool                                           // of removed pods
	Observe           func(v *v1.Volume, start time.Time, err error) // of each volume that was set up; may be nil
	Objects           objects.Store                                  // the ConfigMaps and Secrets, as the sync loop sets them
}

// Files are the files of the instances of one pod name. Its methods may be
// called by several goroutines that start containers together.
type Files struct {
	Disk *Disk
	Key  manifests.Key
	Log  *slog.Logger

	settingUp sync.Mutex      // volumes and /etc/hosts: one container at a time
	refreshAt time.Time       // when volumes must be updated to their objects; zero: they are up to date. Of FollowObjects
	unshown   saidonce.Error  // why they are not, likewise
	former    []string        // names of those that are not, likewise
	lacks     saidonce.Errors // what containers run without, by its kind and their names
	sweeps    sweeps
}

// Clear removes everything that is named by a uid alone.
func (f *Files) Clear(ctx context.Context, uid string) error {
	// The cgroup first: running processes keep the volumes busy, and the dir that TearDown removes
	// last marks the cgroup as the agent's.
	if err := f.Disk.Cgroups.Destroy(ctx, uid); err != nil {
		return err
	}
	if err := f.tearDown(ctx, uid); err != nil {
		return err
	}
	f.Disk.Root.Forget(uid)
	if f.Disk.Trashed != nil {
		f.Disk.Trashed()
	}
	return nil
}

// tearDown removes the pod's dir, except for the checkpoint of a next version with the same uid.
func (f *Files) tearDown(ctx context.Context, uid string) error {
	if f.Disk.Root.HasNext(uid) {
		return volume.TearDownBut(ctx, f.Disk.Root.Dir, uid, checkpoint.NextFile)
	}
	return volume.TearDown(ctx, f.Disk.Root.Dir, uid)
}

// SetUpOwn makes what only this version uses, while another one runs: its volumes and the folders
// of its logs.
func (f *Files) SetUpOwn(ctx context.Context, p *manifests.Pod, n *podspec.Host) error {
	if err := volume.SetUpOwn(ctx, f.Disk.Root.Dir, p.Pod, f.volumeInput(p, n)); err != nil {
		return err
	}
	for _, c := range podspec.AllContainers(p.Pod) {
		if err := f.MakeContainerLogDir(p.Pod, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// SaveNext writes the checkpoint of a next version, and removes what was made of another one.
// runs: the uid of the version that runs.
func (f *Files) SaveNext(ctx context.Context, c *checkpoint.Checkpoint, runs string) error {
	before := f.Disk.Root.NextOf(f.Key)
	if err := f.Disk.Root.SaveNext(c); err != nil {
		return err
	}
	if before == nil || before.Uid() == c.Uid() || before.Uid() == runs {
		return nil
	}
	return f.clearUnused(ctx, before.Uid())
}

// Discard removes what was made of a next version that was withdrawn: its checkpoint and, unless
// its uid is that of the version that runs, all of its files. nil is none.
func (f *Files) Discard(ctx context.Context, next *checkpoint.Checkpoint, runs string) error {
	err := f.Disk.Root.DropNext(next)
	if err != nil || next == nil || next.Uid() == runs {
		return err
	}
	return f.clearUnused(ctx, next.Uid())
}

// clearUnused removes the files of a uid without any checkpoint. If another pod has taken the uid
// meanwhile, only the logs are this one's.
func (f *Files) clearUnused(ctx context.Context, uid string) error {
	release, free := f.Disk.Root.Claim(uid)
	switch {
	case !free && f.Disk.Root.IsOfAnother(uid, f.Key):
		return f.RemoveLogs(ctx, uid)
	case !free:
		return nil
	}
	defer release()
	return errors.Join(f.RemoveLogs(ctx, uid), f.Clear(ctx, uid))
}

// SetUpVolumes sets up the pod's volumes, for one container at a time.
func (f *Files) SetUpVolumes(ctx context.Context, p *manifests.Pod, n *podspec.Host) (map[string]volume.Mount, error) {
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	return volume.SetUp(ctx, f.Disk.Root.Dir, p.Pod, f.volumeInput(p, n))
}

func (f *Files) volumeInput(p *manifests.Pod, n *podspec.Host) volume.Input {
	in := podspec.VolumeInput(p.Pod, n)
	in.Bounded, in.Observe, in.Objects = !p.Unbounded, f.Disk.Observe, f.Disk.Objects.Now()
	return in
}

// BindSubPaths makes the parts of volumes that the container mounts by subPath,
// and returns their host paths by index in volumeMounts. For an image volume it
// is the path in the image.
func (f *Files) BindSubPaths(pod *v1.Pod, c *v1.Container, in podspec.Input, n *podspec.Host) (map[int]string, error) {
	paths, err := podspec.SubPaths(pod, c, in, n)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	out := map[int]string{}
	var binds []volume.SubPathMount
	for k, path := range paths {
		m := &c.VolumeMounts[k]
		if in.VolumeImages[m.Name] != "" {
			out[k] = path // the runtime finds it in the image
			continue
		}
		binds = append(binds, volume.SubPathMount{
			Volume: m.Name, Container: c.Name, Index: k, Mount: in.Volumes[m.Name], Path: path,
			Shared: m.MountPropagation != nil && *m.MountPropagation == v1.MountPropagationBidirectional})
	}
	bound, err := volume.SubPaths(f.Disk.Root.Dir, string(pod.UID), binds)
	if err != nil {
		return nil, err
	}
	for i, path := range bound {
		out[binds[i].Index] = path
	}
	return out, nil
}
