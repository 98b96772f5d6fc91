package volume

import (
	v1 "k8s.io/api/core/v1"
)

// emptyDir makes the directory, on disk or in memory.
func (s *setup) emptyDir(v *v1.Volume) (Mount, error) {
	var medium v1.EmptyDirVolumeSource
	if v.EmptyDir != nil {
		medium = *v.EmptyDir
	}
	p, err := s.place(emptyDirPlugin, v.Name, v.Name, medium)
	if err != nil {
		return Mount{}, err
	}
	defer p.Close()
	if p.fresh {
		if err := s.own(p, readWrite); err != nil {
			return Mount{}, err
		}
	}
	return Mount{HostPath: p.path, Managed: true}, p.ready()
}
