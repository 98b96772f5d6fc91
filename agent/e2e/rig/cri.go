package rig

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI looks at a runtime with the bare protocol, so that tests see what is there
// and not what monopod's own client makes of it.
type CRI struct {
	Runtime rt.RuntimeServiceClient
	Images  rt.ImageServiceClient
	conn    *grpc.ClientConn
}

// DialCRI returns a client that connects when it is first used and again whenever
// the runtime comes back.
func DialCRI(endpoint string) (*CRI, error) {
	b := backoff.Config{BaseDelay: Poll, Multiplier: 1, MaxDelay: Poll}
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: b, MinConnectTimeout: time.Second}))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", endpoint, err)
	}
	return &CRI{rt.NewRuntimeServiceClient(conn), rt.NewImageServiceClient(conn), conn}, nil
}

// Close ends the connection.
func (c *CRI) Close() error { return c.conn.Close() }

// Ready returns nil when the runtime and its network are ready.
func (c *CRI) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := c.Runtime.Status(ctx, &rt.StatusRequest{})
	if err != nil {
		return fmt.Errorf("runtime status: %w", err)
	}
	for _, cond := range s.Status.Conditions {
		if (cond.Type == rt.RuntimeReady || cond.Type == rt.NetworkReady) && !cond.Status {
			return fmt.Errorf("%s is false: %s: %s", cond.Type, cond.Reason, cond.Message)
		}
	}
	return nil
}

// Labels that a kubelet puts on sandboxes and containers.
const (
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
	labelContainer = "io.kubernetes.container.name"
)

// Sandbox is one pod sandbox as the runtime lists it.
type Sandbox struct {
	ID, Pod, Namespace, UID string
	Ready                   bool
	Attempt                 uint32
	Created                 time.Time
}

// Container is one container as the runtime lists it.
type Container struct {
	ID, Sandbox, Pod, Namespace, UID, Name string
	State                                  string // Created, Running, Exited, Unknown
	Attempt                                uint32
	Created                                time.Time
}

// Sandboxes lists those of a namespace, or all with "", oldest first.
func (c *CRI) Sandboxes(ctx context.Context, namespace string) ([]Sandbox, error) {
	f := &rt.PodSandboxFilter{LabelSelector: selector(namespace)}
	r, err := c.Runtime.ListPodSandbox(ctx, &rt.ListPodSandboxRequest{Filter: f})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var out []Sandbox
	for _, s := range r.Items {
		out = append(out, Sandbox{ID: s.Id, Pod: s.Labels[labelPod], Namespace: s.Labels[labelNamespace], UID: s.Labels[labelUID],
			Ready: s.State == rt.PodSandboxState_SANDBOX_READY, Attempt: s.Metadata.Attempt, Created: time.Unix(0, s.CreatedAt)})
	}
	slices.SortFunc(out, func(a, b Sandbox) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// Containers lists those of a namespace, or all with "", oldest first.
func (c *CRI) Containers(ctx context.Context, namespace string) ([]Container, error) {
	f := &rt.ContainerFilter{LabelSelector: selector(namespace)}
	r, err := c.Runtime.ListContainers(ctx, &rt.ListContainersRequest{Filter: f})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	states := []string{"Created", "Running", "Exited", "Unknown"}
	var out []Container
	for _, s := range r.Containers {
		out = append(out, Container{ID: s.Id, Sandbox: s.PodSandboxId, Pod: s.Labels[labelPod], Namespace: s.Labels[labelNamespace],
			UID: s.Labels[labelUID], Name: s.Labels[labelContainer], State: states[s.State], Attempt: s.Metadata.Attempt,
			Created: time.Unix(0, s.CreatedAt)})
	}
	slices.SortFunc(out, func(a, b Container) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

func selector(namespace string) map[string]string {
	if namespace == "" {
		return nil
	}
	return map[string]string{labelNamespace: namespace}
}

// Status returns the runtime's status of a container.
func (c *CRI) Status(ctx context.Context, id string) (*rt.ContainerStatus, error) {
	r, err := c.Runtime.ContainerStatus(ctx, &rt.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return nil, fmt.Errorf("status of container %s: %w", id, err)
	}
	return r.Status, nil
}

// Pid returns the process id of a running container.
func (c *CRI) Pid(ctx context.Context, id string) (int, error) {
	r, err := c.Runtime.ContainerStatus(ctx, &rt.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return 0, fmt.Errorf("status of container %s: %w", id, err)
	}
	var info struct{ Pid int }
	if err := json.Unmarshal([]byte(r.Info["info"]), &info); err != nil {
		return 0, fmt.Errorf("process of container %s: %w", id, err)
	}
	return info.Pid, nil
}

// IP returns a sandbox's first address, "" on the host's network.
func (c *CRI) IP(ctx context.Context, sandbox string) (string, error) {
	r, err := c.Runtime.PodSandboxStatus(ctx, &rt.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil {
		return "", fmt.Errorf("status of sandbox %s: %w", sandbox, err)
	}
	return r.Status.GetNetwork().GetIp(), nil
}

// ImageID returns the runtime's id of an image that it has.
func (c *CRI) ImageID(ctx context.Context, image string) (string, error) {
	r, err := c.Images.ImageStatus(ctx, &rt.ImageStatusRequest{Image: &rt.ImageSpec{Image: image}})
	if err != nil {
		return "", fmt.Errorf("status of image %s: %w", image, err)
	}
	if r.Image == nil {
		return "", fmt.Errorf("status of image %s: the runtime does not have it", image)
	}
	return r.Image.Id, nil
}

// Pull makes the runtime pull an image.
func (c *CRI) Pull(ctx context.Context, image string) error {
	if _, err := c.Images.PullImage(ctx, &rt.PullImageRequest{Image: &rt.ImageSpec{Image: image}}); err != nil {
		return fmt.Errorf("pull %s: %w", image, err)
	}
	return nil
}

// Exec runs a command in a container and waits for its end. A command that ends with another code
// than 0 is no error.
func (c *CRI) Exec(ctx context.Context, container string, command ...string) error {
	_, err := c.Runtime.ExecSync(ctx, &rt.ExecSyncRequest{ContainerId: container, Cmd: command, Timeout: 10})
	return err
}

// Words returns what the runtime said in an error of one of its calls, "" if err has none.
func Words(err error) string {
	var said interface{ GRPCStatus() *status.Status }
	if errors.As(err, &said) {
		return said.GRPCStatus().Message()
	}
	return ""
}
