package critest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is guarded by Runtime.mu.
type container struct {
	serial  int
	id      string
	sandbox *sandbox
	config  *rt.ContainerConfig
	image   string // the image's id

	state                      rt.ContainerState
	created, started, finished time.Time
	exitCode                   int32
	reason, message            string
	resources                  *rt.ContainerResources

	starting, removing bool
	program            Program
	timers             []*time.Timer // exits to come
	done               chan struct{} // closed when it has exited
	reopened           int
	use                Use
	pid                int // 0: none is reported
}

const (
	killedCode  = 137 // 128 + SIGKILL
	unknownCode = 255 // containerd's for a container whose end it did not see
)

func (s *runtimeService) CreateContainer(ctx context.Context, q *rt.CreateContainerRequest) (*rt.CreateContainerResponse, error) {
	r, m, p := s.r, q.GetConfig().GetMetadata(), q.GetSandboxConfig().GetMetadata()
	if m == nil || p == nil {
		return nil, unknown("container config and pod sandbox config must include metadata")
	}
	if err := r.fit(q.PodSandboxId, "failed to find sandbox id %q"); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s_%s_%s_%s_%d", m.Name, p.Name, p.Namespace, p.Uid, m.Attempt)
	id, err := r.reserve("container", name)
	if err != nil {
		return nil, err
	}
	if err := r.work(ctx, "CreateContainer"); err != nil {
		r.unreserve(name)
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, image := r.sandboxes[q.PodSandboxId], r.image(q.Config.GetImage().GetImage())
	if b == nil || image == nil {
		delete(r.names, name)
		if b == nil {
			return nil, notFound("failed to find sandbox id %q", q.PodSandboxId)
		}
		return nil, notFound("failed to resolve image %q", q.Config.GetImage().GetImage())
	}
	c := &container{
		serial: r.serial, id: id, sandbox: b, config: q.Config, image: image.Id, created: time.Now(), done: make(chan struct{}),
		resources: &rt.ContainerResources{Linux: q.Config.GetLinux().GetResources()},
	}
	r.containers[id] = c
	r.emit(b, id, rt.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &rt.CreateContainerResponse{ContainerId: id}, nil
}

// fit refuses a sandbox that does not exist or is not ready.
func (r *Runtime) fit(sandboxID, missing string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.sandboxes[sandboxID]
	if b == nil {
		return notFound(missing, sandboxID)
	}
	if !b.ready {
		return unknown("sandbox container %q is not running", sandboxID)
	}
	return nil
}

func (s *runtimeService) StartContainer(ctx context.Context, q *rt.StartContainerRequest) (*rt.StartContainerResponse, error) {
	r := s.r
	c, err := r.starting(q.ContainerId)
	if err != nil {
		return nil, err
	}
	err = r.work(ctx, "StartContainer")
	r.mu.Lock()
	defer r.mu.Unlock()
	c.starting = false
	if r.containers[c.id] == nil {
		return nil, notFound("failed to start container %q", c.id)
	}
	if err == nil && !c.sandbox.ready {
		err = unknown("sandbox container %q is not running", c.sandbox.id)
	}
	c.program = r.programOf(c)
	r.starts[c.name()]++
	if err == nil && c.program.startError != nil {
		err = unknown("failed to start containerd task %q: %v", c.id, c.program.startError)
	}
	if err != nil {
		c.end(128, "StartError", status.Convert(err).Message())
		r.change()
		return nil, err
	}
	r.run(c)
	return &rt.StartContainerResponse{}, nil
}

// starting marks a container as being started, or says why it cannot be.
func (r *Runtime) starting(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	var refusal string
	switch {
	case c == nil:
		return nil, notFound("an error occurred when try to find container %q", id)
	case c.state != rt.ContainerState_CONTAINER_CREATED:
		refusal = fmt.Sprintf("container is in %s state", c.state)
	case c.removing:
		refusal = "container is in removing state, can't be started"
	case c.starting:
		refusal = "container is already in starting state"
	default:
		c.starting = true
		return c, nil
	}
	return nil, unknown("failed to set starting state for container %q: %s", id, refusal)
}

func (s *runtimeService) StopContainer(ctx context.Context, q *rt.StopContainerRequest) (*rt.StopContainerResponse, error) {
	r := s.r
	r.mu.Lock()
	c := r.containers[q.ContainerId]
	switch {
	case c == nil && r.containerd16:
		r.mu.Unlock()
		return nil, notFound("an error occurred when try to find container %q", q.ContainerId)
	case c == nil || !c.alive():
		r.mu.Unlock()
		return &rt.StopContainerResponse{}, nil
	case q.Timeout <= 0 || c.state == rt.ContainerState_CONTAINER_UNKNOWN:
		r.kill(c)
	default:
		r.terminate(c)
	}
	r.mu.Unlock()
	grace := time.NewTimer(time.Duration(q.Timeout) * time.Second)
	defer grace.Stop()
	select {
	case <-c.done:
	case <-grace.C:
		r.mu.Lock()
		r.kill(c)
		r.mu.Unlock()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &rt.StopContainerResponse{}, nil
}

func (s *runtimeService) RemoveContainer(ctx context.Context, q *rt.RemoveContainerRequest) (*rt.RemoveContainerResponse, error) {
	c, err := s.r.removing(q.ContainerId)
	if c == nil {
		return &rt.RemoveContainerResponse{}, err
	}
	err = s.r.work(ctx, "RemoveContainer")
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c.removing = false
	if err == nil && s.r.containers[c.id] == nil { // by now somebody else has removed it
		return nil, unknown("failed to delete container: no such id: %q", c.id)
	}
	if err == nil {
		s.r.removeContainer(c)
	}
	return &rt.RemoveContainerResponse{}, err
}

// removing kills a container and marks it as being removed, or says why it
// cannot be. It returns nil, nil for one that does not exist.
func (r *Runtime) removing(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return nil, nil
	}
	r.kill(c)
	if c.starting {
		return nil, unknown("failed to set removing state for container %q: container is in starting state, can't be removed", id)
	}
	if c.removing {
		return nil, unknown("failed to set removing state for container %q: container is already in removing state", id)
	}
	c.removing = true
	return c, nil
}

// removeContainer forgets a container, once. r.mu is held.
func (r *Runtime) removeContainer(c *container) {
	if r.containers[c.id] == nil {
		return
	}
	delete(r.containers, c.id)
	r.unreserveID(c.id)
	r.emit(c.sandbox, c.id, rt.ContainerEventType_CONTAINER_DELETED_EVENT)
}

// alive: it runs, or may run.
func (c *container) alive() bool {
	return c.state == rt.ContainerState_CONTAINER_RUNNING || c.state == rt.ContainerState_CONTAINER_UNKNOWN
}

// name returns "namespace/pod/container".
func (c *container) name() string {
	return podName(c.sandbox.config) + "/" + c.config.GetMetadata().GetName()
}

// containersInOrder returns the containers, oldest first. r.mu is held.
func (r *Runtime) containersInOrder() []*container {
	return r.sorted(func(*container) bool { return true })
}

// containersOf: r.mu is held.
func (r *Runtime) containersOf(sandbox string) []*container {
	return r.sorted(func(c *container) bool { return c.sandbox.id == sandbox })
}

// sorted returns those containers that are as wanted, oldest first. r.mu is held.
func (r *Runtime) sorted(wanted func(*container) bool) (all []*container) {
	for _, c := range r.containers {
		if wanted(c) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *container) int { return cmp.Compare(a.serial, b.serial) })
	return all
}
