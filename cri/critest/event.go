package critest

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// subscriber is one client of the event stream; queue is guarded by Runtime.mu.
type subscriber struct {
	queue   []*rt.ContainerEventResponse
	wake    chan struct{} // one slot
	dropped chan struct{}
}

// DropEvents loses the next n events, for all subscribers.
func (r *Runtime) DropEvents(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loseEvents += n
}

// DropStreams ends the event streams of all subscribers; they may come again.
func (r *Runtime) DropStreams() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.subscribers {
		close(s.dropped)
		delete(r.subscribers, s)
	}
	r.change()
}

// Subscribers counts the event streams that are open.
func (r *Runtime) Subscribers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subscribers)
}

func (s *runtimeService) GetContainerEvents(_ *rt.GetEventsRequest, stream grpc.ServerStreamingServer[rt.ContainerEventResponse]) error {
	me, err := s.r.subscribe()
	if me == nil {
		return err
	}
	defer s.r.unsubscribe(me)
	for {
		for _, event := range s.r.take(me) {
			if err := stream.Send(event); err != nil {
				return err
			}
		}
		select {
		case <-me.wake:
		case <-me.dropped:
			return status.Error(codes.Unavailable, "the event stream was dropped")
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

func (r *Runtime) subscribe() (*subscriber, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.containerd16 {
		return nil, status.Error(codes.Unimplemented, "unknown method GetContainerEvents for service runtime.v1.RuntimeService")
	}
	if r.name == "cri-o" {
		return nil, nil
	}
	s := &subscriber{wake: make(chan struct{}, 1), dropped: make(chan struct{})}
	r.subscribers[s] = true
	r.change()
	return s, nil
}

func (r *Runtime) unsubscribe(s *subscriber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subscribers, s)
	r.change()
}

func (r *Runtime) take(s *subscriber) []*rt.ContainerEventResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// emit sends an event about a container, or about the sandbox itself if id is the
// sandbox's, to all streams. None is sent while the runtime is down. r.mu is
// held.
func (r *Runtime) emit(b *sandbox, id string, kind rt.ContainerEventType) {
	r.change()
	if r.isDown() {
		return
	}
	if r.loseEvents > 0 {
		r.loseEvents--
		return
	}
	event := &rt.ContainerEventResponse{
		ContainerId:        id,
		ContainerEventType: kind,
		CreatedAt:          time.Now().UnixNano(),
		PodSandboxStatus:   b.status(),
	}
	for _, c := range r.containersOf(b.id) {
		event.ContainersStatuses = append(event.ContainersStatuses, c.status())
	}
	for s := range r.subscribers {
		s.queue = append(s.queue, proto.CloneOf(event))
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
