package critest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ExecFunc answers ExecSync. A context that ended means that the command's own
// timeout has passed.
type ExecFunc func(ctx context.Context, c Container, command []string) (stdout string, exitCode int32, err error)

// OnExec tells what commands in containers do; at first they do nothing, with success.
func (r *Runtime) OnExec(f ExecFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = f
}

func (s *runtimeService) ListContainers(_ context.Context, q *rt.ListContainersRequest) (*rt.ListContainersResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	f, response := q.GetFilter(), &rt.ListContainersResponse{}
	for _, c := range s.r.containersInOrder() {
		if f.GetId() != "" && f.Id != c.id ||
			f.GetPodSandboxId() != "" && f.PodSandboxId != c.sandbox.id ||
			f.GetState() != nil && f.State.State != c.state ||
			!selects(f.GetLabelSelector(), c.config.Labels) {
			continue
		}
		response.Containers = append(response.Containers, &rt.Container{
			Id:           c.id,
			PodSandboxId: c.sandbox.id,
			Metadata:     c.config.Metadata,
			Image:        c.config.Image,
			ImageRef:     c.image,
			ImageId:      c.image,
			State:        c.state,
			CreatedAt:    c.created.UnixNano(),
			Labels:       c.config.Labels,
			Annotations:  c.config.Annotations,
		})
	}
	return response, nil
}

func (s *runtimeService) ContainerStatus(_ context.Context, q *rt.ContainerStatusRequest) (*rt.ContainerStatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c := s.r.containers[q.ContainerId]
	if c == nil {
		return nil, notFound("an error occurred when try to find container %q", q.ContainerId)
	}
	response := &rt.ContainerStatusResponse{Status: s.r.statusOf(c)}
	if q.Verbose && c.pid > 0 {
		response.Info = map[string]string{"info": fmt.Sprintf(`{"pid":%d,"runtimeSpec":{}}`, c.pid)}
	}
	return response, nil
}

// status is a copy: events carry it on after the lock is gone.
func (c *container) status() *rt.ContainerStatus {
	status := &rt.ContainerStatus{
		Id:          c.id,
		Metadata:    c.config.Metadata,
		State:       c.state,
		CreatedAt:   c.created.UnixNano(),
		ExitCode:    c.exitCode,
		Image:       c.config.Image,
		ImageRef:    c.image,
		ImageId:     c.image,
		Reason:      c.reason,
		Message:     c.message,
		Labels:      c.config.Labels,
		Annotations: c.config.Annotations,
		Mounts:      c.config.Mounts,
		LogPath:     c.logPath(),
		Resources:   proto.CloneOf(c.resources),
		User:        c.user(),
	}
	if !c.started.IsZero() {
		status.StartedAt = c.started.UnixNano()
	}
	if !c.finished.IsZero() {
		status.FinishedAt = c.finished.UnixNano()
	}
	return status
}

// statusOf is the status with the image by its name, as a container's status
// alone tells it. r.mu is held.
func (r *Runtime) statusOf(c *container) *rt.ContainerStatus {
	status := c.status()
	if image := r.image(c.image); image != nil && len(image.RepoTags) > 0 {
		status.Image = &rt.ImageSpec{Image: image.RepoTags[0]}
	}
	return status
}

// user is the user of the container's first process. Images bring no groups.
func (c *container) user() *rt.ContainerUser {
	s := c.config.GetLinux().GetSecurityContext()
	u := &rt.LinuxContainerUser{Uid: s.GetRunAsUser().GetValue(), Gid: s.GetRunAsGroup().GetValue()}
	u.SupplementalGroups = append([]int64{u.Gid}, s.GetSupplementalGroups()...)
	slices.Sort(u.SupplementalGroups)
	return &rt.ContainerUser{Linux: u}
}

func (s *runtimeService) UpdateContainerResources(_ context.Context, q *rt.UpdateContainerResourcesRequest) (*rt.UpdateContainerResourcesResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c := s.r.containers[q.ContainerId]
	if c == nil {
		return nil, notFound("failed to find container %q", q.ContainerId)
	}
	if !c.alive() && c.state != rt.ContainerState_CONTAINER_CREATED {
		return nil, unknown("failed to update resources: container %q is in %s state", c.id, c.state)
	}
	c.resources = &rt.ContainerResources{Linux: changed(c.resources.GetLinux(), q.Linux)}
	s.r.change()
	return &rt.UpdateContainerResourcesResponse{}, nil
}

// changed returns the resources after an update. One of CPUs alone changes nothing else, and one of
// all else leaves the CPUs.
func changed(has, update *rt.LinuxContainerResources) *rt.LinuxContainerResources {
	now := proto.CloneOf(update)
	if proto.Equal(update, &rt.LinuxContainerResources{CpusetCpus: update.GetCpusetCpus()}) && has != nil {
		now = proto.CloneOf(has)
		now.CpusetCpus = update.GetCpusetCpus()
	}
	now.CpusetCpus = cmp.Or(now.CpusetCpus, has.GetCpusetCpus())
	return now
}

func (s *runtimeService) ReopenContainerLog(_ context.Context, q *rt.ReopenContainerLogRequest) (*rt.ReopenContainerLogResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c, err := s.r.running(q.ContainerId)
	if err != nil {
		return nil, err
	}
	c.reopened++
	c.log("")
	s.r.change()
	return &rt.ReopenContainerLogResponse{}, nil
}

func (s *runtimeService) ExecSync(ctx context.Context, q *rt.ExecSyncRequest) (*rt.ExecSyncResponse, error) {
	s.r.mu.Lock()
	c, err := s.r.running(q.ContainerId)
	do := s.r.exec
	var seen Container
	if c != nil {
		seen = c.snapshot()
	}
	s.r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if do == nil {
		return &rt.ExecSyncResponse{}, nil
	}
	limit := time.Duration(q.Timeout) * time.Second
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	stdout, exitCode, err := do(ctx, seen, q.Cmd)
	if limit > 0 && ctx.Err() == context.DeadlineExceeded {
		return nil, status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded: context deadline exceeded", limit)
	}
	if err != nil {
		return nil, err
	}
	return &rt.ExecSyncResponse{Stdout: []byte(stdout), ExitCode: exitCode}, nil
}

// running returns a container that runs. r.mu is held.
func (r *Runtime) running(id string) (*container, error) {
	c := r.containers[id]
	if c == nil {
		return nil, notFound("an error occurred when try to find container %q", id)
	}
	if c.state != rt.ContainerState_CONTAINER_RUNNING {
		return nil, unknown("container is in %s state", c.state)
	}
	return c, nil
}
