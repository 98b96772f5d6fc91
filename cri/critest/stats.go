package critest

import (
	"context"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (s *runtimeService) ContainerStats(_ context.Context, q *rt.ContainerStatsRequest) (*rt.ContainerStatsResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c, err := s.r.running(q.ContainerId)
	if err != nil {
		return nil, err
	}
	return &rt.ContainerStatsResponse{Stats: c.stats()}, nil
}

func (s *runtimeService) ListContainerStats(_ context.Context, q *rt.ListContainerStatsRequest) (*rt.ListContainerStatsResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	f, response := q.GetFilter(), &rt.ListContainerStatsResponse{}
	for _, c := range s.r.containersInOrder() {
		if c.state != rt.ContainerState_CONTAINER_RUNNING ||
			f.GetId() != "" && f.Id != c.id ||
			f.GetPodSandboxId() != "" && f.PodSandboxId != c.sandbox.id ||
			!selects(f.GetLabelSelector(), c.config.Labels) {
			continue
		}
		response.Stats = append(response.Stats, c.stats())
	}
	return response, nil
}

func (s *runtimeService) PodSandboxStats(_ context.Context, q *rt.PodSandboxStatsRequest) (*rt.PodSandboxStatsResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	b := s.r.sandboxes[q.PodSandboxId]
	if b == nil {
		return nil, notFound("an error occurred when trying to find sandbox %q", q.PodSandboxId)
	}
	return &rt.PodSandboxStatsResponse{Stats: s.r.sandboxStats(b)}, nil
}

func (s *runtimeService) ListPodSandboxStats(_ context.Context, q *rt.ListPodSandboxStatsRequest) (*rt.ListPodSandboxStatsResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	f, response := q.GetFilter(), &rt.ListPodSandboxStatsResponse{}
	for _, b := range s.r.sandboxesInOrder() {
		if b.ready && (f.GetId() == "" || f.Id == b.id) && selects(f.GetLabelSelector(), b.config.Labels) {
			response.Stats = append(response.Stats, s.r.sandboxStats(b))
		}
	}
	return response, nil
}

// Use is what a container has used, as the stats calls tell it.
type Use struct {
	CPU               time.Duration
	WorkingSet, Layer uint64 // bytes; Layer is what it wrote
	Received, Sent    uint64 // bytes, of its pod
}

// SetUse sets what a container, named as for Exit, has used; nothing at first.
// Pods have used what their containers have.
func (r *Runtime) SetUse(which string, u Use) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.find(which)
	if c == nil {
		r.t.Errorf("critest: no container %q; there are:\n%s", which, r.describe())
		return
	}
	c.use = u
}

// sandboxStats: r.mu is held.
func (r *Runtime) sandboxStats(b *sandbox) *rt.PodSandboxStats {
	linux := &rt.LinuxPodSandboxStats{}
	var sum Use
	for _, c := range r.containersOf(b.id) {
		if c.state == rt.ContainerState_CONTAINER_RUNNING {
			linux.Containers = append(linux.Containers, c.stats())
			sum.CPU += c.use.CPU
			sum.WorkingSet += c.use.WorkingSet
			sum.Received += c.use.Received
			sum.Sent += c.use.Sent
		}
	}
	linux.Cpu, linux.Memory = sum.cpu(), sum.memory()
	linux.Network = &rt.NetworkUsage{Timestamp: time.Now().UnixNano(), DefaultInterface: &rt.NetworkInterfaceUsage{
		Name: "eth0", RxBytes: number(sum.Received), TxBytes: number(sum.Sent), RxErrors: number(0), TxErrors: number(0)}}
	linux.Process = &rt.ProcessUsage{Timestamp: time.Now().UnixNano(), ProcessCount: number(uint64(1 + len(linux.Containers)))}
	return &rt.PodSandboxStats{
		Attributes: &rt.PodSandboxAttributes{Id: b.id, Metadata: b.config.Metadata, Labels: b.config.Labels, Annotations: b.config.Annotations},
		Linux:      linux,
	}
}

func (c *container) stats() *rt.ContainerStats {
	return &rt.ContainerStats{
		Attributes:    &rt.ContainerAttributes{Id: c.id, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations},
		Cpu:           c.use.cpu(),
		Memory:        c.use.memory(),
		WritableLayer: &rt.FilesystemUsage{Timestamp: time.Now().UnixNano(), UsedBytes: number(c.use.Layer), InodesUsed: number(1)},
	}
}

func (u *Use) cpu() *rt.CpuUsage {
	return &rt.CpuUsage{Timestamp: time.Now().UnixNano(), UsageCoreNanoSeconds: number(uint64(u.CPU))}
}

func (u *Use) memory() *rt.MemoryUsage {
	return &rt.MemoryUsage{Timestamp: time.Now().UnixNano(), WorkingSetBytes: number(u.WorkingSet)}
}

func number(n uint64) *rt.UInt64Value { return &rt.UInt64Value{Value: n} }
