package podspec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests/decode"
)

// containerMounts returns the mounts in the order of volumeMounts, then /etc/hosts,
// /etc/resolv.conf and the termination log.
func containerMounts(p *v1.Pod, c *v1.Container, in Input, n *Host) ([]*rt.Mount, error) {
	var out []*rt.Mount
	ownHosts, ownResolv := false, false
	for i := range c.VolumeMounts {
		m, err := volumeMount(p, c, i, in, n)
		if err != nil {
			return nil, err
		}
		ownHosts = ownHosts || c.VolumeMounts[i].MountPath == "/etc/hosts"
		ownResolv = ownResolv || c.VolumeMounts[i].MountPath == "/etc/resolv.conf"
		out = append(out, m)
	}
	if in.HostsPath != "" && !ownHosts && (p.Spec.HostNetwork || len(in.PodIPs) > 0) {
		out = append(out, &rt.Mount{ContainerPath: "/etc/hosts", HostPath: in.HostsPath, SelinuxRelabel: n.SELinux})
	}
	if in.ResolvPath != "" && !ownResolv {
		out = append(out, &rt.Mount{ContainerPath: "/etc/resolv.conf", HostPath: in.ResolvPath, SelinuxRelabel: n.SELinux})
	}
	if in.TerminationLogPath != "" && c.TerminationMessagePath != "" {
		out = append(out, &rt.Mount{ContainerPath: c.TerminationMessagePath, HostPath: in.TerminationLogPath, SelinuxRelabel: n.SELinux})
	}
	return out, nil
}

func volumeMount(p *v1.Pod, c *v1.Container, i int, in Input, n *Host) (*rt.Mount, error) {
	vm := &c.VolumeMounts[i]
	v, ok := in.Volumes[vm.Name]
	if !ok {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", vm.Name, c.Name)
	}
	host := v.HostPath
	if vm.SubPath != "" || vm.SubPathExpr != "" {
		// Without its subPath the container would see the whole volume.
		if host, ok = in.SubPaths[i]; !ok {
			return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q", vm.Name, c.Name)
		}
	}
	recursive, err := recursiveReadOnly(vm, in)
	if err != nil {
		return nil, err
	}
	m := &rt.Mount{
		ContainerPath:     Absolute(vm.MountPath),
		HostPath:          host,
		Readonly:          vm.ReadOnly || v.ReadOnly,
		SelinuxRelabel:    v.Managed && n.SELinux,
		Propagation:       propagation(vm),
		RecursiveReadOnly: recursive,
	}
	if image := volumeImage(p, vm.Name, in); image != nil {
		m.Image, m.HostPath, m.ImageSubPath = image, "", in.SubPaths[i]
	}
	return m, nil
}

// Absolute makes a relative mount path absolute, from the container's root.
func Absolute(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return path.Join("/", p)
}

func propagation(vm *v1.VolumeMount) rt.MountPropagation {
	if vm.MountPropagation == nil {
		return rt.MountPropagation_PROPAGATION_PRIVATE
	}
	switch *vm.MountPropagation {
	case v1.MountPropagationBidirectional:
		return rt.MountPropagation_PROPAGATION_BIDIRECTIONAL
	case v1.MountPropagationHostToContainer:
		return rt.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	default:
		return rt.MountPropagation_PROPAGATION_PRIVATE
	}
}

func recursiveReadOnly(vm *v1.VolumeMount, in Input) (bool, error) {
	if vm.RecursiveReadOnly == nil || !vm.ReadOnly {
		return false, nil
	}
	switch *vm.RecursiveReadOnly {
	case v1.RecursiveReadOnlyIfPossible:
		return in.RecursiveReadOnly, nil
	case v1.RecursiveReadOnlyEnabled:
		if !in.RecursiveReadOnly {
			return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not supported by the runtime", vm.Name)
		}
		return true, nil
	default:
		return false, nil
	}
}

// SubPaths returns, by index, the path inside its volume for each volumeMount with a subPath, with
// subPathExpr expanded. The result is relative and free of "..".
func SubPaths(p *v1.Pod, c *v1.Container, in Input, n *Host) (map[int]string, error) {
	out := map[int]string{}
	var e *Env
	for i := range c.VolumeMounts {
		vm := &c.VolumeMounts[i]
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			var err error
			if e == nil {
				if e, err = environment(p, c, in, n); err != nil {
					return nil, err
				}
			}
			if sub, err = e.expandStrict(vm.SubPathExpr); err != nil {
				return nil, err
			}
		}
		if sub == "" {
			continue
		}
		if path.IsAbs(sub) || slices.Contains(strings.Split(sub, "/"), "..") {
			return nil, fmt.Errorf("subPath of volumeMount %q of container %q must be a relative path without '..'", vm.Name, c.Name)
		}
		out[i] = sub
	}
	return out, nil
}

// expandStrict is expand for paths: an unset or empty variable is an error, as the result would be
// another path.
func (e *Env) expandStrict(s string) (string, error) {
	var missing []string
	out, err := expand(s, decode.MaxSubPath-1, func(name string) (string, bool) {
		v := e.Values[name]
		if v == "" {
			missing = append(missing, name)
		}
		return v, true
	})
	if err != nil {
		return "", fmt.Errorf("subPathExpr of %.100q: %w", s, decode.ErrLongSubPath)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("missing value for %s", strings.Join(slices.Compact(missing), ", "))
	}
	return out, nil
}
