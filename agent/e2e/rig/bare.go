package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// BarePod is a pod of one container that is run with nothing but CRI calls: what
// the same work costs without an agent.
type BarePod struct {
	Namespace, Name string
	HostNetwork     bool
	Command         []string
	Logs            string // folder for its logs
	Grace           int64  // seconds that Stop gives it
	Cgroup          string // the parent of its cgroups; "": the runtime's own choice

	Sandbox, Container string // ids, set by Start
	attempt            uint32
}

// Start runs the sandbox and starts the container.
func (p *BarePod) Start(ctx context.Context, c *CRI) error {
	if err := p.StartSandbox(ctx, c); err != nil {
		return err
	}
	return p.StartContainer(ctx, c)
}

// StartSandbox runs the sandbox.
func (p *BarePod) StartSandbox(ctx context.Context, c *CRI) error {
	config := p.sandboxConfig()
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return fmt.Errorf("start pod %s: %w", p.Name, err)
	}
	s, err := c.Runtime.RunPodSandbox(ctx, &rt.RunPodSandboxRequest{Config: config})
	if err != nil {
		return fmt.Errorf("run sandbox of %s: %w", p.Name, err)
	}
	p.Sandbox = s.PodSandboxId
	return nil
}

// StartContainer creates and starts the container, or its successor.
func (p *BarePod) StartContainer(ctx context.Context, c *CRI) error {
	call, err := p.TryContainer(ctx, c, func(*rt.ContainerConfig) {})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", call, p.Name, err)
	}
	return nil
}

// TryContainer creates and starts the container, or its successor, with a configuration
// that change has made of its own, and returns the call that was made last.
func (p *BarePod) TryContainer(ctx context.Context, c *CRI, change func(*rt.ContainerConfig)) (call string, err error) {
	config := p.containerConfig()
	change(config)
	p.attempt++
	r, err := c.Runtime.CreateContainer(ctx, &rt.CreateContainerRequest{PodSandboxId: p.Sandbox, SandboxConfig: p.sandboxConfig(), Config: config})
	if err != nil {
		return "CreateContainer", err
	}
	p.Container = r.ContainerId
	_, err = c.Runtime.StartContainer(ctx, &rt.StartContainerRequest{ContainerId: p.Container})
	return "StartContainer", err
}

func (p *BarePod) containerConfig() *rt.ContainerConfig {
	labels := p.labels()
	labels[labelContainer] = "main"
	return &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: "main", Attempt: p.attempt}, Image: &rt.ImageSpec{Image: Busybox, UserSpecifiedImage: Busybox}, Labels: labels,
		Command: p.Command, LogPath: fmt.Sprintf("main-%d.log", p.attempt),
		Linux: &rt.LinuxContainerConfig{
			Resources:       &rt.LinuxContainerResources{CpuShares: 10},
			SecurityContext: &rt.LinuxContainerSecurityContext{NamespaceOptions: p.namespaces()},
		},
	}
}

// Stop stops the container with Grace, then stops and removes the sandbox.
func (p *BarePod) Stop(ctx context.Context, c *CRI) error {
	if _, err := c.Runtime.StopContainer(ctx, &rt.StopContainerRequest{ContainerId: p.Container, Timeout: p.Grace}); err != nil {
		return fmt.Errorf("stop container of %s: %w", p.Name, err)
	}
	return c.removeSandbox(ctx, p.Sandbox)
}

func (p *BarePod) labels() map[string]string {
	return map[string]string{labelPod: p.Name, labelNamespace: p.Namespace, labelUID: p.Name}
}

func (p *BarePod) namespaces() *rt.NamespaceOption {
	n := &rt.NamespaceOption{Network: rt.NamespaceMode_POD, Pid: rt.NamespaceMode_CONTAINER}
	if p.HostNetwork {
		n.Network = rt.NamespaceMode_NODE
	}
	return n
}

func (p *BarePod) sandboxConfig() *rt.PodSandboxConfig {
	return &rt.PodSandboxConfig{
		Metadata:     &rt.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: p.Name},
		Labels:       p.labels(),
		LogDirectory: filepath.Join(p.Logs, p.Name),
		Linux: &rt.LinuxPodSandboxConfig{CgroupParent: p.Cgroup, SecurityContext: &rt.LinuxSandboxSecurityContext{
			NamespaceOptions: p.namespaces(),
			// As the kubelet and monopod ask for every sandbox; it costs runc some 15 ms.
			Seccomp: &rt.SecurityProfile{ProfileType: rt.SecurityProfile_RuntimeDefault},
		}},
	}
}

// removeSandbox stops and removes a sandbox with whatever is in it.
func (c *CRI) removeSandbox(ctx context.Context, id string) error {
	if _, err := c.Runtime.StopPodSandbox(ctx, &rt.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", id, err)
	}
	if _, err := c.Runtime.RemovePodSandbox(ctx, &rt.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", id, err)
	}
	return nil
}

// RemoveAll kills and removes all pods of a namespace, or of the runtime with "".
func (c *CRI) RemoveAll(ctx context.Context, namespace string) error {
	sandboxes, err := c.Sandboxes(ctx, namespace)
	if err != nil {
		return err
	}
	return Each(8, len(sandboxes), func(i int) error { return c.removeSandbox(ctx, sandboxes[i].ID) })
}

// Each calls f for 0..n-1, at most par at a time, and returns all errors.
func Each(par, n int, f func(i int) error) error {
	var wg sync.WaitGroup
	slots, errs := make(chan struct{}, par), make([]error, n)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
