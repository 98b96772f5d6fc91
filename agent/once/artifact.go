package once

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/volume"
)

// Artifact is a folder or file of a container that is copied out of a run before what the
// run made is removed. A container that has ended has no root file system any more, so an
// artifact lies in a volume: one of the pod's own, or else an emptyDir that the container
// gets in that place.
type Artifact struct {
	pod    *v1.Pod
	volume v1.Volume
	within string // the path in the volume
	from   string // POD/CONTAINER:PATH
	to     string // the local folder
}

// ParseArtifact reads POD/CONTAINER:PATH=DIR and sees to it that the container has a
// volume at PATH. It must be called before the pods are used.
func ParseArtifact(pods []*v1.Pod, text string) (*Artifact, error) {
	from, to, ok := strings.Cut(text, "=")
	of, inside, ok2 := strings.Cut(from, ":")
	if !ok || !ok2 || to == "" || !path.IsAbs(inside) || path.Clean(inside) == "/" {
		return nil, fmt.Errorf("--artifact %q: write POD/CONTAINER:/PATH=DIR", text)
	}
	chosen, err := find(pods, of)
	if err != nil {
		return nil, fmt.Errorf("--artifact %w", err)
	}
	if chosen.Container == "" && len(chosen.Pod.Spec.Containers) != 1 {
		return nil, fmt.Errorf("--artifact %q: the pod has several containers: write POD/CONTAINER:/PATH=DIR", text)
	}
	if chosen.Container == "" {
		chosen.Container = chosen.Pod.Spec.Containers[0].Name
	}
	a := &Artifact{pod: chosen.Pod, from: from, to: to}
	if err := a.place(chosen.Container, path.Clean(inside)); err != nil {
		return nil, fmt.Errorf("--artifact %q: %w", text, err)
	}
	return a, nil
}

// place finds the volume that the path lies in, or adds one.
func (a *Artifact) place(container, inside string) error {
	c := containerOf(&a.pod.Spec, container)
	var at *v1.VolumeMount
	for k := range c.VolumeMounts {
		m := &c.VolumeMounts[k]
		if _, ok := below(m.MountPath, inside); ok && (at == nil || len(m.MountPath) > len(at.MountPath)) {
			at = m
		}
	}
	if at == nil {
		name := fmt.Sprintf("monopod-artifact-%d", len(a.pod.Spec.Volumes))
		a.volume = v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
		a.pod.Spec.Volumes = append(a.pod.Spec.Volumes, a.volume)
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: inside})
		return nil
	}
	a.volume = a.pod.Spec.Volumes[slices.IndexFunc(a.pod.Spec.Volumes, func(v v1.Volume) bool { return v.Name == at.Name })]
	if a.volume.EmptyDir == nil && a.volume.HostPath == nil || at.SubPathExpr != "" {
		return fmt.Errorf("the path lies in the volume %s, and only what lies in an emptyDir or hostPath, without subPathExpr, can be copied", at.Name)
	}
	rest, _ := below(at.MountPath, inside)
	a.within = path.Join(at.SubPath, rest)
	return nil
}

func containerOf(s *v1.PodSpec, name string) *v1.Container {
	for _, all := range [][]v1.Container{s.InitContainers, s.Containers} {
		for k := range all {
			if all[k].Name == name {
				return &all[k]
			}
		}
	}
	return nil
}

// below returns the rest of a path in a folder.
func below(dir, name string) (rest string, ok bool) {
	if dir = path.Clean(dir); dir == name {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// copy copies the artifact out. Nothing outside of the volume is followed, and what is
// neither a folder nor a file, links included, is left out and told by skipped.
func (a *Artifact) copy(ctx context.Context, root string) (skipped []string, err error) {
	dir := volume.EmptyDir(root, string(a.pod.UID), a.volume.Name)
	if a.volume.HostPath != nil {
		dir = a.volume.HostPath.Path
	}
	from, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if err := os.MkdirAll(a.to, 0o755); err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(a.to)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	start := path.Clean(a.within)
	info, err := from.Lstat(start)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(from.FS(), start, func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
		target, _ := below(start, name)
		switch {
		case start == ".":
			target = name
		case !info.IsDir():
			target = path.Base(name)
		}
		switch {
		case target == ".":
			return nil
		case d.IsDir():
			return makeDir(to, target)
		case d.Type().IsRegular():
			return copyFile(ctx, from, name, to, target)
		}
		skipped = append(skipped, name)
		return nil
	})
	return skipped, err
}

func makeDir(to *os.Root, name string) error {
	if err := to.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// untilDone reads until its context ends.
type untilDone struct {
	context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := context.Cause(r.Context); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// copyFile replaces a file by a copy.
func copyFile(ctx context.Context, from *os.Root, name string, to *os.Root, target string) error {
	in, err := from.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s has changed while it was copied", name))
	}
	if err := to.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := to.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(untilDone{ctx, in}, info.Size())) // of one that grows, what there is now
	return errors.Join(err, out.Close())
}
