// Package volume makes the directories of a pod and what its containers mount from there, and
// removes them without ever deleting through a mount or a symbolic link.
//
// Below the agent's root directory a pod has
//
//	pods/<uid>/volumes/kubernetes.io~<plugin>/<volume>
//	pods/<uid>/plugins/kubernetes.io~empty-dir/<volume>/ready
//	pods/<uid>/volume-subpaths/<volume>/<container>/<index of the mount>
//	pods/<uid>/containers/<container>/<termination log>
//
// as the kubelet lays them out. The volumes that outlive pods are beside them, in
//
//	volumes/<namespace>_<claim>
//	claims/<namespace>_<claim>     records that it was created: see claimrecord.go
//
// Only a pod's worker makes calls for the pod, and those of SetUp one at a time. Each type of
// volume is a case of setup.volume with a file of its own; manifests/validate/volume.go accepts it.
package volume

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/podfiles"
)

// Mount is a volume that is ready to be mounted into containers.
type Mount struct {
	// HostPath is the absolute path of the volume on the machine; "" for an
	// image volume, which only the runtime can mount.
	HostPath string
	// ReadOnly volumes are mounted read-only in all containers.
	ReadOnly bool
	// Managed volumes are the agent's own, so it may relabel them for SELinux.
	Managed bool
}

// Input is what SetUp needs beside the pod's spec.
type Input struct {
	// Memory is the default size limit of a volume in memory, in bytes; 0: the kernel's, half of
	// the machine's memory.
	Memory int64
	// Field and Resource return the text of a downwardAPI file.
	Field    func(*v1.ObjectFieldSelector) (string, error)
	Resource func(*v1.ResourceFieldSelector) (string, error)
	// Objects has the ConfigMaps and Secrets; nil: there are none.
	Objects Objects
	// Bounded limits the files of the pod's volumes to podfiles.Most in total.
	Bounded bool
	// Observe is called for each volume with the start of its set-up and its
	// error; it may be nil.
	Observe func(v *v1.Volume, start time.Time, err error)
}

// Objects returns ConfigMaps and Secrets by name; nil without an error if there is none. SetUp does
// not change them.
type Objects interface {
	ConfigMap(namespace, name string) (*v1.ConfigMap, error)
	Secret(namespace, name string) (*v1.Secret, error)
}

// setup is one call of SetUp.
type setup struct {
	root string // the agent's root dir
	pod  *v1.Pod
	in   Input

	mounts *mountTable
	texts  map[string][]byte            // of fields, by path: a pod may use one under many names
	keys   map[string]map[string][]byte // of ConfigMaps, by name
}

// SetUp creates the pod's directories and each volume that a container mounts, and returns the
// volumes by name. It may be called again at any time: a ready volume stays unchanged, one that a
// power cut removed is created again, and files from the pod or from objects are updated.
func SetUp(ctx context.Context, root string, p *v1.Pod, in Input) (map[string]Mount, error) {
	if err := fits(p, in); err != nil {
		return nil, err
	}
	if err := Prepare(root, string(p.UID)); err != nil {
		return nil, err
	}
	return newSetup(root, p, in).volumes(ctx)
}

func newSetup(root string, p *v1.Pod, in Input) *setup {
	return &setup{root: root, pod: p, in: in, mounts: newMountTable(PodDir(root, string(p.UID))), texts: map[string][]byte{}, keys: map[string]map[string][]byte{}}
}

// fits refuses a pod whose files are too large, before any is written.
func fits(p *v1.Pod, in Input) error {
	if !in.Bounded {
		return nil
	}
	var objects podfiles.Objects
	if in.Objects != nil {
		objects = in.Objects
	}
	if large := podfiles.Check(p, objects); large != nil {
		return errors.New(large.Text)
	}
	return nil
}

// Refresh updates the volumes of a running pod that show ConfigMaps or Secrets, and leaves all
// others unchanged. A volume that cannot be updated keeps its content: former has their names. Refresh
// joins the errors of all volumes.
func Refresh(ctx context.Context, root string, p *v1.Pod, in Input) (former []string, err error) {
	if err := fits(p, in); err != nil {
		for i := range p.Spec.Volumes {
			former = append(former, p.Spec.Volumes[i].Name)
		}
		return former, err
	}
	s, used := newSetup(root, p, in), mounted(p)
	var errs []error
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if !used[v.Name] || v.ConfigMap == nil && v.Secret == nil && v.Projected == nil {
			continue
		}
		if _, err := s.files(ctx, v); err != nil {
			errs, former = append(errs, setUpError(v, err)), append(former, v.Name)
		}
	}
	return former, errors.Join(errs...)
}

func setUpError(v *v1.Volume, err error) error {
	return fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
}

// volumes creates the volumes.
func (s *setup) volumes(ctx context.Context) (map[string]Mount, error) {
	out := map[string]Mount{}
	for _, v := range foldersFirst(s.pod) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		m, err := s.volume(ctx, v)
		if s.in.Observe != nil {
			s.in.Observe(v, start, err)
		}
		if err != nil {
			return nil, setUpError(v, err)
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

func (s *setup) volume(ctx context.Context, v *v1.Volume) (Mount, error) {
	switch {
	case v.HostPath != nil:
		return setUpHostPath(v.HostPath)
	case v.EmptyDir != nil, v.VolumeSource == v1.VolumeSource{}:
		return s.emptyDir(ctx, v)
	case v.Image != nil:
		return Mount{ReadOnly: true}, nil
	case v.PersistentVolumeClaim != nil:
		return s.claim(ctx, v)
	case v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.Projected != nil:
		return s.files(ctx, v)
	default:
		return Mount{}, errors.New("volumes of this kind are not supported yet")
	}
}
