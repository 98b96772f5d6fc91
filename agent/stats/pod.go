package stats

import (
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// readPod reads the usage of a pod and its containers from its cgroup. It returns nil if nothing of
// the pod runs.
func readPod(host Host, h hierarchy, pod *v1.Pod, cgroup string) *podUse {
	p := &podUse{Pod: pod}
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for k := range list {
			if st := &list[k]; st.State.Running != nil && st.ContainerID != "" {
				_, id, _ := strings.Cut(st.ContainerID, "://")
				p.Containers = append(p.Containers, &containerUse{ContainerStatus: st, ID: id})
			}
		}
	}
	if cgroup != "" {
		p.Use = h.read(cgroup)
	}
	if p.Use == nil && len(p.Containers) == 0 {
		return nil
	}
	if p.Use != nil {
		p.Path = cgroup
		p.readMembers(host, h)
		if *p.Use.Processes == 0 && len(p.Containers) == 0 {
			return nil // an empty cgroup, left over or not filled yet
		}
	}
	return p
}

// levels is how far below a container's cgroup its processes may be: with the systemd driver of v2,
// crun creates a cgroup "container" for them, and a systemd in the container has further ones below
// that.
const levels = 2

// readMembers reads the cgroups below the pod's: those of its containers; the remaining one is the
// sandbox.
func (p *podUse) readMembers(host Host, h hierarchy) {
	inside := "" // a process in the pod's network
	for _, name := range h.children(p.Path) {
		at := path.Join(p.Path, name)
		pids := h.processesIn(at, levels)
		p.Use.Processes = plus(p.Use.Processes, known(uint64(len(pids))))
		if strings.Contains(name, "-conmon-") { // CRI-O's: crio-conmon-ID.scope is the machine's process beside a container
			continue
		}
		i := slices.IndexFunc(p.Containers, func(c *containerUse) bool { return idOf(name) == c.ID })
		switch {
		case i >= 0:
			c := p.Containers[i]
			if c.Use = h.readNumbers(at); c.Use != nil {
				c.Path, c.Use.Processes = at, known(uint64(len(pids)))
			}
		case len(pids) > 0:
			p.Sandbox, p.SandboxPath = idOf(name), at
			inside = pids[0]
		case p.Sandbox == "": // CRI-O leaves the sandbox's cgroup without a process
			p.Sandbox, p.SandboxPath = idOf(name), at
		}
		if len(pids) > 0 && inside == "" {
			inside = pids[0]
		}
	}
	if inside != "" && !p.Spec.HostNetwork { // else it would be the machine's again
		p.Links = host.links(inside)
	}
}

// idOf returns the id of the container with a cgroup name: runtimes use the id itself,
// cri-containerd-ID.scope or crio-ID.scope.
func idOf(cgroup string) string {
	cgroup = strings.TrimSuffix(cgroup, ".scope")
	return cgroup[strings.LastIndex(cgroup, "-")+1:]
}

// incomplete reports whether the runtime must be asked for the pod's usage: a container's usage is
// not known, or there is no process through which to read the network.
func (p *podUse) incomplete() bool {
	if p.Use != nil && *p.Use.Processes == 0 && !p.Spec.HostNetwork {
		return true
	}
	return slices.ContainsFunc(p.Containers, func(c *containerUse) bool { return c.Use == nil })
}
