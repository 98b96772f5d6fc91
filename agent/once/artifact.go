package once

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
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

// ParseArtifact reads POD/CONTAINER:PATH=DIR and makes sure that the container has a volume at
// PATH. It must be called before the pods are used.
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

// below returns the rest of a path in the folder of a mount, which may be relative to the root folder.
func below(dir, name string) (rest string, ok bool) {
	if dir = path.Join("/", dir); dir == name {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
