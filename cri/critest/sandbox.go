package critest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeService is the CRI's RuntimeService; what it lacks is Unimplemented.
type runtimeService struct {
	rt.UnimplementedRuntimeServiceServer
	r *Runtime
}

// sandbox is guarded by Runtime.mu.
type sandbox struct {
	serial  int
	id      string
	config  *rt.PodSandboxConfig
	handler string
	ready   bool
	created time.Time
	ip      string // "" on the host's network
}

func (s *runtimeService) RunPodSandbox(ctx context.Context, q *rt.RunPodSandboxRequest) (*rt.RunPodSandboxResponse, error) {
	r, m := s.r, q.GetConfig().GetMetadata()
	if m == nil {
		return nil, unknown("sandbox config must include metadata")
	}
	name := fmt.Sprintf("%s_%s_%s_%d", m.Name, m.Namespace, m.Uid, m.Attempt)
	id, err := r.reserve("sandbox", name)
	if err != nil {
		return nil, err
	}
	if err := r.work(ctx, "RunPodSandbox"); err != nil {
		r.unreserve(name)
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++ // another may have come since the id was made, and no two have one address
	b := &sandbox{serial: r.serial, id: id, config: q.Config, handler: q.RuntimeHandler, ready: true, created: time.Now()}
	if q.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != rt.NamespaceMode_NODE {
		b.ip = fmt.Sprintf("10.88.%d.%d", r.serial/250, r.serial%250+2)
	}
	r.sandboxes[id] = b
	r.noteDoubles(b)
	r.emit(b, id, rt.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.emit(b, id, rt.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &rt.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (s *runtimeService) StopPodSandbox(_ context.Context, q *rt.StopPodSandboxRequest) (*rt.StopPodSandboxResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if b := s.r.sandboxes[q.PodSandboxId]; b != nil {
		s.r.stopSandbox(b)
	} else if s.r.containerd16 {
		return nil, notFound("an error occurred when try to find sandbox %q", q.PodSandboxId)
	}
	return &rt.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox fails while a container of the sandbox is being removed, as it does with
// containerd ("already in removing state") and CRI-O ("no such id").
func (s *runtimeService) RemovePodSandbox(ctx context.Context, q *rt.RemovePodSandboxRequest) (*rt.RemovePodSandboxResponse, error) {
	if err := s.r.work(ctx, "RemovePodSandbox"); err != nil {
		return nil, err
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	b := s.r.sandboxes[q.PodSandboxId]
	if b == nil {
		return &rt.RemovePodSandboxResponse{}, nil
	}
	s.r.stopSandbox(b)
	for _, c := range s.r.containersOf(b.id) {
		if c.removing {
			return nil, unknown("failed to remove container %q of the sandbox: no such id", c.id)
		}
	}
	s.r.removeSandbox(b)
	return &rt.RemovePodSandboxResponse{}, nil
}

func (s *runtimeService) PodSandboxStatus(_ context.Context, q *rt.PodSandboxStatusRequest) (*rt.PodSandboxStatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	b := s.r.sandboxes[q.PodSandboxId]
	if b == nil {
		return nil, notFound("an error occurred when try to find sandbox %q", q.PodSandboxId)
	}
	return &rt.PodSandboxStatusResponse{Status: b.status()}, nil
}

func (s *runtimeService) ListPodSandbox(_ context.Context, q *rt.ListPodSandboxRequest) (*rt.ListPodSandboxResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	f, response := q.GetFilter(), &rt.ListPodSandboxResponse{}
	for _, b := range s.r.sandboxesInOrder() {
		if f.GetId() != "" && f.Id != b.id ||
			f.GetState() != nil && f.State.State != b.state() ||
			!selects(f.GetLabelSelector(), b.config.Labels) {
			continue
		}
		response.Items = append(response.Items, &rt.PodSandbox{
			Id:             b.id,
			Metadata:       b.config.Metadata,
			State:          b.state(),
			CreatedAt:      b.created.UnixNano(),
			Labels:         b.config.Labels,
			Annotations:    b.config.Annotations,
			RuntimeHandler: b.handler,
		})
	}
	return response, nil
}

func (b *sandbox) state() rt.PodSandboxState {
	if b.ready {
		return rt.PodSandboxState_SANDBOX_READY
	}
	return rt.PodSandboxState_SANDBOX_NOTREADY
}

func (b *sandbox) status() *rt.PodSandboxStatus {
	status := &rt.PodSandboxStatus{
		Id:             b.id,
		Metadata:       b.config.Metadata,
		State:          b.state(),
		CreatedAt:      b.created.UnixNano(),
		Network:        &rt.PodSandboxNetworkStatus{},
		Linux:          &rt.LinuxPodSandboxStatus{Namespaces: &rt.Namespace{Options: b.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
		Labels:         b.config.Labels,
		Annotations:    b.config.Annotations,
		RuntimeHandler: b.handler,
	}
	if b.ready {
		status.Network.Ip = b.ip
	}
	return status
}

// stopSandbox kills what runs in the sandbox, then the sandbox. r.mu is held.
func (r *Runtime) stopSandbox(b *sandbox) {
	for _, c := range r.containersOf(b.id) {
		r.kill(c)
	}
	r.unready(b)
}

// unready ends a sandbox's own process. r.mu is held.
func (r *Runtime) unready(b *sandbox) {
	if b.ready {
		b.ready = false
		r.emit(b, b.id, rt.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

// removeSandbox forgets a sandbox and its containers. r.mu is held.
func (r *Runtime) removeSandbox(b *sandbox) {
	for _, c := range r.containersOf(b.id) {
		r.removeContainer(c)
	}
	r.emit(b, b.id, rt.ContainerEventType_CONTAINER_DELETED_EVENT)
	delete(r.sandboxes, b.id)
	r.unreserveID(b.id)
	r.change()
}

// sandboxesInOrder returns the sandboxes, oldest first. r.mu is held.
func (r *Runtime) sandboxesInOrder() []*sandbox {
	return slices.SortedFunc(maps.Values(r.sandboxes), func(a, b *sandbox) int { return cmp.Compare(a.serial, b.serial) })
}

// reserve returns a new id that holds the name, or the refusal of containerd's
// when another holds it.
func (r *Runtime) reserve(kind, name string) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder, taken := r.names[name]; taken {
		return "", unknown("failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, holder)
	}
	id = r.newID(name)
	r.names[name] = id
	return id, nil
}

func (r *Runtime) unreserve(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

// unreserveID: r.mu is held.
func (r *Runtime) unreserveID(id string) {
	maps.DeleteFunc(r.names, func(_, holder string) bool { return holder == id })
}

// selects: labels carries all of selector.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// podName returns "namespace/pod".
func podName(config *rt.PodSandboxConfig) string {
	return config.GetMetadata().GetNamespace() + "/" + config.GetMetadata().GetName()
}
