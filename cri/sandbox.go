package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version returns the runtime's name and version.
func (c *Client) Version(ctx context.Context) (*rt.VersionResponse, error) {
	r, err := call(ctx, "Version", "", c.asks("Version"), c.runtime.Version, &rt.VersionRequest{})
	if Unimplemented(err) {
		err = fmt.Errorf("%w: %s", err, WithoutCRI)
	}
	if err == nil {
		c.isCRIO.Store(r.RuntimeName == CRIO)
		c.settle()
	}
	return r, err
}

// WithoutCRI describes why a runtime may answer without CRI v1, with the remedy: containerd keeps
// serving without the plugins that failed to load; CRI-O always has its CRI.
const WithoutCRI = "it runs, but without CRI v1: CRI-O before 1.21 has none; containerd's CRI plugin is off, or did not load because its store is damaged; " +
	"see journalctl --unit containerd: if io.containerd.metadata.v1.bolt did not load, stop containerd, " +
	"move /var/lib/containerd away and start it; pods come back from their manifests, images must be pulled or imported again"

// Status returns the runtime's conditions, such as rt.RuntimeReady. An answer without a status does
// not mean that the runtime is ready.
func (c *Client) Status(ctx context.Context) (*rt.StatusResponse, error) {
	r, err := call(ctx, "Status", "", c.asks("Status"), c.runtime.Status, &rt.StatusRequest{})
	return r, whole(r.GetStatus() != nil, err, "Status", "", "a status")
}

// RuntimeConfig returns the runtime's configuration: its cgroup driver. Older runtimes do not have
// the call (see Unimplemented).
func (c *Client) RuntimeConfig(ctx context.Context) (*rt.RuntimeConfigResponse, error) {
	return call(ctx, "RuntimeConfig", "", c.asks("RuntimeConfig"), c.runtime.RuntimeConfig, &rt.RuntimeConfigRequest{})
}

// RunSandbox creates and starts a sandbox and returns its id. An empty handler selects the
// runtime's default.
func (c *Client) RunSandbox(ctx context.Context, config *rt.PodSandboxConfig, handler string) (id string, err error) {
	r, err := call(ctx, "RunPodSandbox", podName(config), c.makeIn(c.changes("RunPodSandbox", c.Timeouts.Run)), c.runtime.RunPodSandbox,
		&rt.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return r.GetPodSandboxId(), whole(r.GetPodSandboxId() != "", err, "RunPodSandbox", podName(config), "an id")
}

// StopSandbox kills the processes in the sandbox and tears down its network. A stopped or missing
// sandbox is not an error.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, "StopPodSandbox", short(id), c.changes("StopPodSandbox", c.Timeouts.Stop), c.runtime.StopPodSandbox,
		&rt.StopPodSandboxRequest{PodSandboxId: id})
	return unlessGone(err)
}

// RemoveSandbox removes the sandbox with all its containers, killing those that run. A missing
// sandbox is not an error.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	_, err := call(ctx, "RemovePodSandbox", short(id), c.changes("RemovePodSandbox", c.Timeouts.Remove), c.runtime.RemovePodSandbox,
		&rt.RemovePodSandboxRequest{PodSandboxId: id})
	return unlessGone(err)
}

// Sandboxes lists the sandboxes, in any state, that have all of labels.
func (c *Client) Sandboxes(ctx context.Context, labels map[string]string) ([]*rt.PodSandbox, error) {
	all, err := c.ListSandboxes(ctx, labels, &List[rt.PodSandbox]{})
	if err != nil {
		return nil, err
	}
	return all.Added, nil
}

// SandboxStatus returns the status of a sandbox, with its addresses. It is never nil without an
// error; its fields may be.
func (c *Client) SandboxStatus(ctx context.Context, id string) (*rt.PodSandboxStatus, error) {
	r, err := call(ctx, "PodSandboxStatus", short(id), c.asks("PodSandboxStatus"), c.runtime.PodSandboxStatus,
		&rt.PodSandboxStatusRequest{PodSandboxId: id})
	return r.GetStatus(), whole(r.GetStatus() != nil, err, "PodSandboxStatus", short(id), "a status")
}

// atOnce is the longest life of a stream that counts as unsupported if it ends without an event, on
// a slow machine too.
const atOnce = 5 * time.Second

// errNoEvents is the error of a stream that ended at once, without an event or an error.
var errNoEvents = status.Error(codes.Unimplemented, "the stream ended at once, without an event: "+
	"the runtime sends none (CRI-O: only with enable_pod_events = true in its configuration)")

// Events calls each with every container event until the stream ends, and returns why it ended,
// never nil. The first events may be old ones that were not received (containerd 2 keeps them for
// minutes), and events may be lost. A runtime without the stream ends it at once (see
// Unimplemented). each must not block for long. An event in which the text whole stands nowhere may
// come without its sandbox and containers: the value of a label, for those of other clients.
func (c *Client) Events(ctx context.Context, whole string, each func(*rt.ContainerEventResponse)) error {
	// An abandoned stream must be cancelled, or gRPC keeps it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start, none := time.Now(), true
	stream, err := c.runtime.GetContainerEvents(ctx, &rt.GetEventsRequest{}, grpc.ForceCodecV2(eventCodec{protobuf(), whole}))
	for err == nil {
		var event *rt.ContainerEventResponse
		if event, err = stream.Recv(); err == nil {
			none = false
			each(event)
		}
	}
	if none && errors.Is(err, io.EOF) && time.Since(start) < atOnce {
		err = errNoEvents
	}
	c.tell("GetContainerEvents", start, err)
	return failed("GetContainerEvents", "", 0, err)
}

func podName(config *rt.PodSandboxConfig) string {
	m := config.GetMetadata()
	return m.GetNamespace() + "/" + m.GetName()
}
