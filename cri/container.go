package cri

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer creates a container in a sandbox without starting it, and returns its id. pod is
// the configuration with which the sandbox was run.
func (c *Client) CreateContainer(ctx context.Context, sandbox string, config *rt.ContainerConfig, pod *rt.PodSandboxConfig) (id string, err error) {
	object := podName(pod) + "/" + config.GetMetadata().GetName()
	r, err := call(ctx, "CreateContainer", object, c.makeIn(c.changes("CreateContainer", c.Timeouts.Create)), c.runtime.CreateContainer,
		&rt.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod})
	return r.GetContainerId(), whole(r.GetContainerId() != "", err, "CreateContainer", object, "an id")
}

// StartContainer starts a created container. A container can be started only once.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := call(ctx, "StartContainer", short(id), c.changes("StartContainer", c.Timeouts.Create), c.runtime.StartContainer,
		&rt.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer asks the container to end, kills it after grace, rounded up to seconds, and returns
// when it has ended. Grace 0 kills at once. Stopping a container that has ended or is gone is not
// an error.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	seconds := int64((grace + time.Second - 1) / time.Second)
	_, err := call(ctx, "StopContainer", short(id), grace+c.Timeouts.Stop, c.runtime.StopContainer,
		&rt.StopContainerRequest{ContainerId: id, Timeout: seconds})
	return unlessGone(err)
}

// RemoveContainer removes a container, killing it if it runs. A missing container is not an error.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := call(ctx, "RemoveContainer", short(id), c.changes("RemoveContainer", c.Timeouts.Remove), c.runtime.RemoveContainer,
		&rt.RemoveContainerRequest{ContainerId: id})
	return unlessGone(err)
}

// KillCreated kills containers that were created and never started, before they or their sandboxes
// are stopped or removed. On CRI-O such a container has a process already, which may ignore
// SIGTERM: removing it, or stopping its sandbox, would take the whole timeout of the call (CRI-O,
// server/utils.go, stopTimeoutFromContext). Other runtimes have nothing to kill. Errors are
// dropped: the next call reports what is wrong.
func (c *Client) KillCreated(ctx context.Context, ids ...string) {
	for _, id := range ids {
		_ = c.StopContainer(ctx, id, 0)
	}
}

// UpdateContainer changes the resources of a running container.
func (c *Client) UpdateContainer(ctx context.Context, id string, r *rt.LinuxContainerResources) error {
	_, err := call(ctx, "UpdateContainerResources", short(id), c.changes("UpdateContainerResources", c.Timeouts.Create), c.runtime.UpdateContainerResources,
		&rt.UpdateContainerResourcesRequest{ContainerId: id, Linux: r})
	return err
}

// Containers lists the containers, in any state, that have all of labels.
func (c *Client) Containers(ctx context.Context, labels map[string]string) ([]*rt.Container, error) {
	all, err := c.ListContainers(ctx, labels, &List[rt.Container]{})
	if err != nil {
		return nil, err
	}
	return all.Added, nil
}

// ContainerStatus returns the status of a container, with its times, exit code and reason. It is
// never nil without an error.
func (c *Client) ContainerStatus(ctx context.Context, id string) (*rt.ContainerStatus, error) {
	r, err := call(ctx, "ContainerStatus", short(id), c.asks("ContainerStatus"), c.runtime.ContainerStatus,
		&rt.ContainerStatusRequest{ContainerId: id})
	return r.GetStatus(), whole(r.GetStatus() != nil, err, "ContainerStatus", short(id), "a status")
}

// ContainerPID returns the process id of the first process of a container, as the runtime sees it; 0
// if the runtime does not report it. CRI-O and containerd do, in JSON of their own.
func (c *Client) ContainerPID(ctx context.Context, id string) (int, error) {
	r, err := call(ctx, "ContainerStatus", short(id), c.asks("ContainerStatus"), c.runtime.ContainerStatus,
		&rt.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal([]byte(r.GetInfo()["info"]), &info) != nil {
		return 0, nil
	}
	return info.PID, nil
}

// ReopenContainerLog has the runtime reopen a running container's log at its path, and returns when
// it has.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := call(ctx, "ReopenContainerLog", short(id), c.asks("ReopenContainerLog"), c.runtime.ReopenContainerLog,
		&rt.ReopenContainerLogRequest{ContainerId: id})
	return err
}

// call makes one unary call within timeout. On an error the response is nil; protobuf's getters
// accept that.
func call[Req, Resp any](ctx context.Context, name, object string, timeout time.Duration,
	do func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), request *Req) (*Resp, error) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := do(ctx, request)
	if err == nil {
		return response, nil
	}
	var within time.Duration
	if deadline, _ := ctx.Deadline(); !time.Now().Before(deadline) {
		within = time.Since(started)
	}
	return nil, failed(name, object, within, err)
}

// short returns the beginning of an id, as crictl prints it.
func short(id string) string { return id[:min(len(id), 13)] }
