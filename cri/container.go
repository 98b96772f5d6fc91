package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer makes a container in a sandbox, not started, and returns its
// id. pod is the configuration that the sandbox was run with.
func (c *Client) CreateContainer(ctx context.Context, sandbox string, config *rt.ContainerConfig, pod *rt.PodSandboxConfig) (id string, err error) {
	object := podName(pod) + "/" + config.GetMetadata().GetName()
	r, err := call(ctx, "CreateContainer", object, c.makeIn(c.Timeouts.Create), c.runtime.CreateContainer,
		&rt.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod})
	return r.GetContainerId(), whole(r.GetContainerId() != "", err, "CreateContainer", object, "an id")
}

// StartContainer starts a created container; a container starts once only.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	_, err := call(ctx, "StartContainer", short(id), c.Timeouts.Create, c.runtime.StartContainer,
		&rt.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer asks the container to end, kills it when grace, rounded up to
// seconds, has passed, and returns when it has ended. Grace 0 kills at once.
// Stopping what has ended or is gone is no error.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	seconds := int64((grace + time.Second - 1) / time.Second)
	_, err := call(ctx, "StopContainer", short(id), grace+c.Timeouts.Stop, c.runtime.StopContainer,
		&rt.StopContainerRequest{ContainerId: id, Timeout: seconds})
	return unlessGone(err)
}

// RemoveContainer removes a container, killing it if it runs. That it is gone
// already is no error.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	_, err := call(ctx, "RemoveContainer", short(id), c.Timeouts.Remove, c.runtime.RemoveContainer,
		&rt.RemoveContainerRequest{ContainerId: id})
	return unlessGone(err)
}

// KillCreated kills containers that were created and never started, before they or their
// sandboxes are stopped or removed. On CRI-O such a container has a process already, which
// SIGTERM need not end: to remove it, or to stop its sandbox, would take all the time that
// the call has (CRI-O, server/utils.go, stopTimeoutFromContext). Other runtimes have nothing
// to kill. What fails here, the next call tells.
func (c *Client) KillCreated(ctx context.Context, ids ...string) {
	for _, id := range ids {
		_ = c.StopContainer(ctx, id, 0)
	}
}

// UpdateContainer gives a running container other resources.
func (c *Client) UpdateContainer(ctx context.Context, id string, r *rt.LinuxContainerResources) error {
	_, err := call(ctx, "UpdateContainerResources", short(id), c.Timeouts.Create, c.runtime.UpdateContainerResources,
		&rt.UpdateContainerResourcesRequest{ContainerId: id, Linux: r})
	return err
}

// Containers lists the containers, in any state, that carry all of labels.
func (c *Client) Containers(ctx context.Context, labels map[string]string) ([]*rt.Container, error) {
	all, err := c.ListContainers(ctx, labels, &List[rt.Container]{})
	if err != nil {
		return nil, err
	}
	return all.Added, nil
}

// ContainerStatus returns what the runtime knows of a container: its times, exit
// code and reason. It is never nil without an error.
func (c *Client) ContainerStatus(ctx context.Context, id string) (*rt.ContainerStatus, error) {
	r, err := call(ctx, "ContainerStatus", short(id), c.Timeouts.Query, c.runtime.ContainerStatus,
		&rt.ContainerStatusRequest{ContainerId: id})
	return r.GetStatus(), whole(r.GetStatus() != nil, err, "ContainerStatus", short(id), "a status")
}

// ReopenContainerLog makes the runtime reopen a running container's log at its
// path, and returns when it did.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	_, err := call(ctx, "ReopenContainerLog", short(id), c.Timeouts.Query, c.runtime.ReopenContainerLog,
		&rt.ReopenContainerLogRequest{ContainerId: id})
	return err
}

// call carries out one unary call within timeout. On an error the response is
// nil, on which protobuf's getters work.
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

// short is enough of an id to recognize it, as crictl prints it.
func short(id string) string { return id[:min(len(id), 13)] }
