package podspec

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
)

// CheckUsers returns an error for a pod with users of its own on a runtime that does not support
// them. features are those of the pod's handler.
func CheckUsers(p *v1.Pod, features *rt.RuntimeHandlerFeatures) error {
	if OwnUsers(p) && !features.GetUserNamespaces() {
		return errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	return nil
}

// CheckContainer returns the error of ContainerConfig for a container that does not start yet. in
// has its image, the objects and what the runtime supports. What only the start determines counts as
// right: addresses, volumes, and files that other containers write.
func CheckContainer(p *v1.Pod, c *v1.Container, in Input, n *Host) (err error) {
	in.PodIPs, in.Volumes, in.EnvFiles = n.HostIPs, map[string]volume.Mount{}, map[EnvFile]EnvFileContent{}
	for _, v := range p.Spec.Volumes {
		in.Volumes[v.Name] = volume.Mount{}
	}
	for _, v := range c.Env {
		if v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil {
			file := envFileOf(v.ValueFrom.FileKeyRef)
			has := in.EnvFiles[file].Data
			in.EnvFiles[file] = EnvFileContent{Data: fmt.Appendf(has, "%s='x'\n", v.ValueFrom.FileKeyRef.Key)}
		}
	}
	if in.SubPaths, err = SubPaths(p, c, in, n); err != nil {
		return err
	}
	_, err = ContainerConfig(p, c, in, n)
	return err
}
