package worker

import (
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
)

// Features returns what the pod's handler supports; nil: the runtime has not told, or tells nothing.
func (ws *Pool) Features(p *v1.Pod) (*rt.RuntimeHandlerFeatures, error) {
	handler, err := podspec.RuntimeHandler(p, ws.RuntimeClasses)
	if err != nil {
		return nil, err
	}
	return ws.Watch.Handler(handler), nil
}

// recursiveReadOnly reports whether the pod's handler supports recursive
// read-only mounts.
func (t *starter) recursiveReadOnly(p *v1.Pod) bool {
	features, err := t.pod.shared.Features(p)
	return err == nil && features.GetRecursiveReadOnlyMounts()
}

// users returns the pod's user namespace, nil for a pod with the host's.
func (t *starter) users(p *v1.Pod) (*rt.UserNamespace, error) {
	if !podspec.OwnUsers(p) {
		return nil, nil
	}
	features, err := t.pod.shared.Features(p)
	if err != nil {
		return nil, err
	}
	if err := podspec.CheckUsers(p, features); err != nil {
		return nil, err
	}
	return t.pod.shared.Disk.Root.Users.Take(string(p.UID))
}

// prepareSandbox returns the pod's sandbox config, with a user namespace if the
// pod has one.
func (t *starter) prepareSandbox(p *v1.Pod, attempt uint32) (*rt.PodSandboxConfig, error) {
	config, err := podspec.SandboxConfig(p, attempt, t.pod.shared.Disk.Machine.Now())
	if err != nil {
		return nil, err
	}
	users, err := t.users(p)
	if err == nil && users != nil {
		config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = users
	}
	return config, err
}

// withUsers gives a container its sandbox's user namespace. All its mounts are
// id-mapped: files have the same ids on disk as inside, so volumes, their group
// and the agent's files for the container need no other owners.
func withUsers(c *rt.ContainerConfig, m *madeSandbox) {
	users := m.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	c.Linux.SecurityContext.NamespaceOptions.UsernsOptions = users
	for _, mount := range c.Mounts {
		mount.UidMappings, mount.GidMappings = users.GetUids(), users.GetGids()
	}
}
